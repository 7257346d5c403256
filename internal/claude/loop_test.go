package claude

import (
	"errors"
	"io"
	"strings"
	"testing"

	"ocp/internal/claude/claudetest"
	"ocp/internal/hook"
	"ocp/internal/transcript"
	"ocp/internal/turn"
)

// typedInto is the loop of a session into which a text is typed, and a way to tell it
// that a prompt was submitted.
func typedInto(t *testing.T) (l *sessionLoop, submit func(promptID, text string)) {
	launcher := keeping(t)
	route := launcher.hooks.Register("s")
	t.Cleanup(route.Close)
	s := &Session{id: "s", launcher: launcher, route: route, busy: make(chan struct{})}
	l = &sessionLoop{Session: s, quiet: stoppedTimer(), starting: stoppedTimer()}
	l.now = s.newRunning(question(claudetest.Script{}, "a text").Conversation, turn.Continued)
	return l, func(promptID, text string) {
		t.Helper()
		call := `{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt_id":"` + promptID + `","prompt":"` + text + `"}`
		if err := hook.Forward(t.Context(), launcher.hooks.Socket(), route.Secret, strings.NewReader(call), io.Discard); err != nil {
			t.Fatal(err)
		}
	}
}

// A turn's user entry is known for one even if the hook call with its prompt's id, which
// came before, was not taken yet.
func TestPromptBeforeItsRecord(t *testing.T) {
	l, submit := typedInto(t)
	l.route.Expect("a text")
	submit("p", "a text")
	l.record(transcript.Record{Type: "user", PromptID: "p"}, true)
	if !l.now.begun {
		t.Error("the turn has not begun")
	}
}

// A prompt without an id ends its turn, of which nothing could be told from another's. More
// prompts, from wherever, do not keep the loop from its work.
func TestPromptWithoutID(t *testing.T) {
	l, submit := typedInto(t)
	l.route.Expect("a text")
	for range 3 {
		submit("", "a text")
		l.hooked(<-l.route.Events())
	}
	if err := <-l.now.submitted; !errors.Is(err, errNoPromptID) || !l.now.turn.Over() {
		t.Errorf("got %v; the turn is over: %v", err, l.now.turn.Over())
	}
}
