package claude

import (
	"testing"

	"ocp/internal/turn"
)

// Deltas that a slow client has not taken yet are joined: they take no more memory than
// the answer is long, however many there are.
func TestDeltasWaitAsOne(t *testing.T) {
	l := sessionLoop{Session: &Session{}, turn: turn.New(turn.Options{})}
	l.take([]turn.Event{turn.Started{}}, nil)
	for range 1000 {
		l.take([]turn.Event{turn.Delta{Text: "ab"}}, nil)
	}
	if len(l.out) != 2 || len(l.out[1].(turn.Delta).Text) != 2000 {
		t.Errorf("%d events wait", len(l.out))
	}
}
