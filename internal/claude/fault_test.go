package claude

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ocp/internal/claude/claudetest"
	"ocp/internal/turn"
)

// Whatever happens to the hook calls and to the pace of the records, the answer is
// exact.
func TestExactInSpiteOf(t *testing.T) {
	boot, end, all := claudetest.Boot(), claudetest.End(), pick(0, 1, 2, 3, 4)
	lag := wait(claudetest.Lag)
	silentBoot := steps(
		claudetest.Step{Do: claudetest.ReadSystem}, claudetest.Step{Do: claudetest.Onboard}, claudetest.Step{Do: claudetest.Resume})
	late := func(by time.Duration) []claudetest.Step {
		return deltas(func(i int, call *claudetest.Step) { call.Async, call.After = true, by })
	}
	tests := map[string][]claudetest.Step{
		"nothing":    claudetest.Answer(pieces...),
		"late hooks": session(boot, late(200*time.Millisecond), steps(stopNow(), lag, record()), end),
		"very late hooks, behind the records": session(boot, steps(stopNow(), record()), late(50*time.Millisecond),
			steps(claudetest.Step{Do: claudetest.Settle}), end),
		"hooks that overtake each other": session(boot, deltas(func(i int, call *claudetest.Step) {
			call.Async, call.After = true, time.Duration((5-i)*40)*time.Millisecond
		}), steps(stopNow(), lag, record()), end),
		"shuffled hooks":     session(boot, pick(3, 1, 4, 0, 2), steps(stopNow(), lag, record()), end),
		"doubled hooks":      session(boot, pick(0, 0, 2, 1, 2, 3, 4, 4), steps(stopNow(), stopNow(), lag, record()), end),
		"a lost first delta": session(boot, pick(1, 2, 3, 4), steps(stopNow(), lag, record()), end),
		"a lost last delta":  session(boot, pick(0, 1, 2, 3), steps(stopNow(), lag, record()), end),
		"all deltas lost":    session(boot, steps(stopNow(), lag, record()), end),
		"a lost delta and no end record": session(boot, pick(0, 1, 3, 4),
			steps(stopNow(), lag, record())),
		"no Stop":                session(boot, all, steps(lag, record()), end),
		"no Stop and no end":     session(boot, all, steps(lag, record())),
		"no SessionStart":        session(silentBoot, all, steps(stopNow(), lag, record()), end),
		"a late SessionStart":    session(silentBoot, all, steps(claudetest.Step{Do: claudetest.SessionStart}, stopNow(), lag, record()), end),
		"no hooks at all":        session(silentBoot, steps(lag, record()), end),
		"no hooks and no end":    session(silentBoot, steps(lag, record())),
		"no turn_duration":       session(boot, all, steps(stopNow(), lag, record())),
		"Stop before the record": session(boot, all, steps(stopNow(), wait(800*time.Millisecond), record()), end),
		"a record in halves": session(boot, all, steps(stopNow(), lag,
			claudetest.Step{Do: claudetest.TextRecord, Message: "m", Text: wholeText, Reason: "end_turn", Halves: 500 * time.Millisecond}), end),
		"records of others": session(boot, all, steps(stopNow(), lag,
			claudetest.Step{Do: claudetest.RawRecord, Text: `{"type":"attachment","attachment":{"type":"x"}}` + "\n"},
			claudetest.Step{Do: claudetest.SideRecord, Message: "side", Text: "a sub-agent's text", Reason: "end_turn"},
			claudetest.Step{Do: claudetest.ThinkingRecord, Message: "m", Text: "a thought", Reason: "end_turn"},
			record(),
			claudetest.Step{Do: claudetest.SideRecord, Message: "side", Text: "a sub-agent's text", Reason: "end_turn"},
			claudetest.Step{Do: claudetest.RawRecord, Text: "this is no record\n"}), end),
		"another session's hook calls": session(boot,
			deltas(func(i int, call *claudetest.Step) {
				call.Session, call.Text = "00000000-0000-4000-8000-000000000000", "stray"
			}),
			all, steps(stopNow(), lag, record()), end),
		"a flood on the terminal": session(boot, steps(claudetest.Step{Do: claudetest.Flood, N: 4 << 20}), pick(0, 1, 2),
			steps(claudetest.Step{Do: claudetest.Flood, N: 4 << 20}), pick(3, 4), steps(stopNow(), lag, record()), end),
		"an exit after the end":          session(boot, all, steps(stopNow(), record()), end, steps(claudetest.Step{Do: claudetest.Exit, N: 1})),
		"an exit before the end records": session(boot, all, steps(stopNow(), record(), claudetest.Step{Do: claudetest.Exit, N: 1})),
	}
	for _, transport := range []Transport{HTTP, Command} {
		l := standinLauncher(t, func(o *Options) { o.HookTransport = transport })
		t.Run(string(transport), func(t *testing.T) {
			together(t, tests, func(t *testing.T, script []claudetest.Step) {
				input := filepath.Join(t.TempDir(), "input")
				r := perform(t, l, claudetest.Script{Steps: script, Input: input}, marker)
				if r.finished == nil || r.text != wantText {
					t.Fatalf("got %q, error %v; want %q", r.text, r.err, wantText)
				}
				if f := r.finished; f.StopReason != turn.EndTurn || f.Usage.Output != 7 || f.Stats.InputDiffs != 0 {
					t.Errorf("finished with %+v", f)
				}
				noInput(t, input)
			})
		})
		if refused := l.hooks.Stats().Refused; refused < int64(len(pieces)) {
			t.Errorf("%d hook calls were refused, want those of another session", refused)
		}
		closeLauncher(t, l)
	}
}

// A turn with a tool: both texts, once, and no thinking.
func TestTextAroundATool(t *testing.T) {
	l := standinLauncher(t, nil)
	defer closeLauncher(t, l)
	r := perform(t, l, claudetest.Script{Steps: session(
		claudetest.Boot(),
		claudetest.Deltas("a", "I look.\n", "Now."),
		steps(
			claudetest.Step{Do: claudetest.TextRecord, Message: "a", Text: "I look.\nNow.", Reason: "tool_use"},
			claudetest.Step{Do: claudetest.ToolRecord, Message: "a", Text: "ls", Reason: "tool_use"},
			// A tool that takes longer than several bounds: the turn has not ended.
			wait(time.Second),
			claudetest.Step{Do: claudetest.MetaRecord, Text: "result"},
			claudetest.Step{Do: claudetest.ThinkingRecord, Message: "n", Text: "narration", Reason: "tool_use"},
			claudetest.Step{Do: claudetest.ToolRecord, Message: "n", Text: "ls", Reason: "tool_use"},
			claudetest.Step{Do: claudetest.MetaRecord, Text: "result"},
		),
		claudetest.Deltas("b", "Done ", "{prompt}."),
		steps(claudetest.Step{Do: claudetest.Stop, Text: "Done {prompt}."}, wait(claudetest.Lag), claudetest.Record("b", "Done {prompt}.")),
		claudetest.End(),
	)}, marker)
	if want := "I look.\nNow.\n\nDone " + marker + "."; r.finished == nil || r.text != want {
		t.Errorf("got %q, error %v; want %q", r.text, r.err, want)
	}
}

// Whatever a session does instead of answering, the turn fails with an error that says
// so, and what was sent before is a beginning of the answer.
func TestFailsTyped(t *testing.T) {
	boot, some := claudetest.Boot(), pick(0, 1, 2)
	exit := claudetest.Step{Do: claudetest.Exit, N: 1}
	kill := claudetest.Step{Do: claudetest.Kill}
	failed := func(word string, status int, banner string) []claudetest.Step {
		return steps(
			claudetest.Step{Do: claudetest.StopFailure, Reason: word, Text: banner},
			wait(claudetest.Lag),
			claudetest.Step{Do: claudetest.BannerRecord, Reason: word, Status: status, Text: banner})
	}
	type failure struct {
		steps []claudetest.Step
		kind  turn.Kind
		sent  string // how much was sent before
		says  string // part of the error, with its cause
	}
	together(t, map[string]failure{
		"exits before it reads its system text": {steps(exit), turn.SessionFailed, "", "exit code 1"},
		"exits before SessionStart":             {session(boot[:3], steps(exit)), turn.SessionFailed, "", "exit code 1"},
		"exits after SessionStart":              {session(boot, steps(exit)), turn.SessionFailed, "", "exit code 1"},
		"exits in the answer":                   {session(boot, some, steps(exit)), turn.SessionFailed, wantSome, "exit code 1"},
		"exits between Stop and the record":     {session(boot, some, steps(stopNow(), exit)), turn.SessionFailed, wantSome, "exit code 1"},
		"is killed at the start":                {session(boot[:2], steps(kill)), turn.SessionFailed, "", "killed"},
		"is killed in the answer":               {session(boot, some, steps(kill)), turn.SessionFailed, wantSome, "killed"},
		"cannot connect": {
			session(boot[:1], steps(claudetest.Step{Do: claudetest.Print, Text: claudetest.Offline}, exit)),
			turn.SessionFailed, "", "cannot connect to the upstream",
		},
		"writes another transcript": {
			session(boot, steps(claudetest.Step{Do: claudetest.Stray}), pick(0, 1, 2, 3, 4), steps(stopNow(), record()), claudetest.End()),
			turn.Unverified, wantText, "did not show the answer in time",
		},
		"records half of a line and no more": {
			session(boot, pick(0, 1, 2, 3, 4), steps(stopNow(), claudetest.Step{Do: claudetest.RawRecord, Text: `{"type":"assist`})),
			turn.Unverified, wantText, "did not show the answer in time",
		},
		"records another text than it shows": {
			session(boot, some, steps(claudetest.Record("m", "one {prompt}\nanother"), stopNow())),
			turn.Diverged, wantSome, "is not what the session's transcript says",
		},
		"is not logged in": {
			session(boot, failed("authentication_failed", 401, "Please run /login · API Error: 401")),
			turn.Authentication, "", "",
		},
		"is at its limit":  {session(boot, failed("rate_limit", 429, "You've hit your limit")), turn.RateLimited, "", ""},
		"is overloaded":    {session(boot, failed("server_error", 529, "Overloaded")), turn.Overloaded, "", ""},
		"got too much":     {session(boot, failed("invalid_request", 400, "Prompt is too long")), turn.ContextLength, "", ""},
		"loses the stream": {session(boot, some, failed("server_error", 0, "API Error: Connection lost")), turn.Upstream, wantSome, ""},
		"writes an error record and says nothing": {
			session(boot, some, steps(claudetest.Step{Do: claudetest.BannerRecord, Reason: "server_error", Text: "API Error"})),
			turn.Upstream, wantSome, "",
		},
		"says that it failed and writes nothing": {
			session(boot, steps(claudetest.Step{Do: claudetest.StopFailure, Reason: "rate_limit", Text: "limit"})),
			turn.RateLimited, "", "",
		},
	}, func(t *testing.T, test failure) {
		l := standinLauncher(t, nil)
		defer closeLauncher(t, l)
		input := filepath.Join(t.TempDir(), "input")
		r := perform(t, l, claudetest.Script{Steps: test.steps, Input: input}, marker)
		if r.err == nil || r.err.Kind != test.kind || !strings.Contains(r.err.Error(), test.says) {
			t.Errorf("got error %v, finished %v; want kind %s that says %q", r.err, r.finished, test.kind, test.says)
		}
		if r.text != test.sent {
			t.Errorf("sent %q, want %q", r.text, test.sent)
		}
		noInput(t, input)
	})
}

// Without hooks (a host's policy can silence them), a session that writes records is at
// work and may take its time.
func TestSilencedHooksAreNoFailedStart(t *testing.T) {
	t.Parallel()
	const timeout = 4 * time.Second
	l := standinLauncher(t, func(o *Options) { o.StartTimeout = timeout })
	defer closeLauncher(t, l)
	r := perform(t, l, claudetest.Script{Steps: session(
		claudetest.Boot()[:3],
		steps(claudetest.Step{Do: claudetest.ThinkingRecord, Message: "m", Text: "a thought", Reason: "end_turn"}, wait(timeout), record()),
		claudetest.End(),
	)}, marker)
	if r.finished == nil || r.text != wantText {
		t.Errorf("got %q, error %v", r.text, r.err)
	}
}
