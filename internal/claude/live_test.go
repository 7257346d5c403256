package claude

import (
	"context"
	"testing"

	"ocp/internal/claude/claudetest"
	"ocp/internal/turn"
)

// A session can be seen from its start to its end, and how far it has come.
func TestLive(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l := keeping(t)
	if list := l.Live(); len(list) != 0 {
		t.Fatalf("before any: %+v", list)
	}
	script := claudetest.Script{Steps: session(claudetest.Answer("You said:\n", "{prompt}"))}
	s := prime(t, l, script)
	see := func(want Phase) {
		t.Helper()
		list := l.Live()
		if len(list) != 1 || list[0].ID != shortID(s.ID()) || list[0].Phase != want || list[0].Model != script.Model() || list[0].Started.IsZero() {
			t.Errorf("%+v, want one session, %s", list, want)
		}
	}
	<-s.Primed()
	see(Primed)
	if err := s.Give(ctx, question(script, "a question").Conversation, turn.Pooled); err != nil {
		t.Fatal(err)
	}
	first := true
	for more := true; more; {
		e, err := s.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if first {
			see(Running)
		}
		first = false
		_, finished := e.(turn.Finished)
		more = !finished
	}
	<-s.running.rests
	see(Kept)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if list := l.Live(); len(list) != 0 {
		t.Errorf("after its end: %+v", list)
	}
}
