package claude

import (
	"testing"

	"ocp/internal/turn"
)

// Deltas that a slow client has not taken yet are joined: they take no more memory than
// the answer is long, however many there are.
func TestDeltasWaitAsOne(t *testing.T) {
	var r running
	r.queue(turn.Started{})
	for range 1000 {
		r.queue(turn.Delta{Text: "ab"})
	}
	if len(r.out) != 2 || len(r.out[1].(turn.Delta).Text) != 2000 {
		t.Errorf("%d events wait", len(r.out))
	}
}
