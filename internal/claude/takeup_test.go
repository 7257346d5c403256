package claude

import (
	"strings"
	"testing"
	"time"

	"ocp/internal/claude/claudetest"
	"ocp/internal/transcript"
	"ocp/internal/turn"
)

// raw is a record of a type alone.
func raw(kind string) claudetest.Step {
	return claudetest.Step{Do: claudetest.RawRecord, Text: `{"type":"` + kind + `"}` + "\n"}
}

// turnless are the records that the CLI writes with a turn and without.
func turnless() []claudetest.Step {
	return steps(raw("custom-title"), raw("agent-name"), raw("atis-latch"))
}

// A session that starts and lets the conversation lie fails, and says so. One that is
// late but shows life, by a record of its turn or by its screen, does not.
func TestNotTakenUp(t *testing.T) {
	const bound = 3 * time.Second
	drawing := func() []claudetest.Step {
		var list []claudetest.Step
		for i := range 12 {
			list = append(list, claudetest.Step{Do: claudetest.Print, After: 500 * time.Millisecond, Text: strings.Repeat("*", i+1)})
		}
		return list
	}
	answer := session(claudetest.Deltas("m", pieces...), steps(stopNow(), record()), claudetest.End())
	type row struct {
		steps []claudetest.Step
		fails bool
	}
	together(t, map[string]row{
		"nothing more":         {session(claudetest.Boot(), turnless()), true},
		"late records of none": {session(claudetest.Boot(), steps(wait(time.Second)), turnless()), true},
		"a snapshot":           {session(claudetest.Boot(), turnless(), steps(raw("file-history-snapshot"), wait(2*bound)), answer), false},
		"a request":            {session(claudetest.Boot(), steps(raw("api-request-shape"), wait(2*bound)), answer), false},
		"a delta":              {session(claudetest.Boot(), claudetest.Deltas("m", pieces...)[:1], steps(wait(2*bound)), claudetest.Deltas("m", pieces...)[1:], steps(stopNow(), record()), claudetest.End()), false},
		"drawing":              {session(claudetest.Boot(), drawing(), answer), false},
	}, func(t *testing.T, test row) {
		l := standinLauncher(t, func(o *Options) { o.TakeUpTimeout = bound })
		defer closeLauncher(t, l)
		r := perform(t, l, claudetest.Script{Steps: test.steps}, marker)
		switch {
		case !test.fails && (r.err != nil || r.text != wantText):
			t.Errorf("got %q, %v", r.text, r.err)
		case test.fails && (r.err == nil || r.err.Kind != turn.SessionFailed || !strings.Contains(r.err.Message, "not taken the conversation up")):
			t.Errorf("got %q, %v", r.text, r.err)
		}
	})
}

// Only time in which nothing is seen to happen counts.
func TestTakeUpCountsIdleLooks(t *testing.T) {
	var u takeUp
	for _, look := range []struct {
		screen string
		stirs  int
		idle   time.Duration
	}{
		{"❯", 1, 0},
		{"❯", 1, lookEvery},
		{"❯ footer", 1, lookEvery}, // drew
		{"❯ footer", 1, 2 * lookEvery},
		{"❯ footer", 2, 2 * lookEvery}, // wrote
		{"❯ footer", 2, 3 * lookEvery},
	} {
		if u.look(look.screen, look.stirs); u.idle != look.idle {
			t.Errorf("after %q with %d: idle %s, want %s", look.screen, look.stirs, u.idle, look.idle)
		}
	}
}

func TestOfTurn(t *testing.T) {
	for kind, want := range map[string]bool{
		"file-history-snapshot": true, "assistant": true, "api-request": true, "api-request-blob": true, "api-request-shape": true,
		"custom-title": false, "agent-name": false, "atis-latch": false, "attachment": false, "system": false, "": false,
	} {
		if got := ofTurn(transcript.Record{Type: kind}); got != want {
			t.Errorf("%q: got %v", kind, got)
		}
	}
}
