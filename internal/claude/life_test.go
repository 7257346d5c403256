package claude

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ocp/internal/claude/claudetest"
	"ocp/internal/turn"
)

// A session that does nothing ends when it is told to, or when its start takes too long.
func TestHangingSession(t *testing.T) {
	hang := claudetest.Script{Steps: claudetest.Boot()}
	t.Run("its client leaves", func(t *testing.T) {
		t.Parallel()
		l := standinLauncher(t, nil)
		defer closeLauncher(t, l)
		s, err := startTurn(l, question(hang, marker))
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		r := receive(ctx, t, s, func(turn.Event) { leave() })
		if !r.started || r.err == nil || r.err.Kind != turn.Canceled {
			t.Errorf("got started %v, error %v", r.started, r.err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if r := receive(t.Context(), t, s, nil); r.err == nil || r.err.Kind != turn.Canceled {
			t.Errorf("after Close: error %v", r.err)
		}
	})
	for name, test := range map[string]struct {
		boot []claudetest.Step
		says string
	}{
		"it does not read its system text": {steps(wait(time.Hour)), "did not start in time"},
		"no input box":                     {session(claudetest.Boot()[:2], steps(wait(time.Hour))), "did not start in time"},
		"no SessionStart":                  {claudetest.Boot()[:3], "hooks do not reach ocp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := standinLauncher(t, func(o *Options) { o.StartTimeout = time.Second })
			defer closeLauncher(t, l)
			r := perform(t, l, claudetest.Script{Steps: test.boot}, marker)
			if r.err == nil || r.err.Kind != turn.SessionFailed || !strings.Contains(r.err.Message, test.says) {
				t.Errorf("got %v", r.err)
			}
		})
	}
}

// Close ends a session that no signal but SIGKILL ends, and its child, whether it gets
// time to end by itself or not.
func TestCloseEndsTheDeaf(t *testing.T) {
	for name, env := range map[string]string{"own configuration": "ANTHROPIC_API_KEY=k", "operator's login": "HOME="} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.HasSuffix(env, "=") {
				env += t.TempDir()
				config := filepath.Join(strings.TrimPrefix(env, "HOME="), ".claude.json")
				if err := os.WriteFile(config, []byte(`{"hasCompletedOnboarding":true}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			l := standinLauncher(t, func(o *Options) { o.Env = []string{"PATH=" + os.Getenv("PATH"), env} })
			s, err := startTurn(l, question(claudetest.Script{Steps: session(
				steps(claudetest.Step{Do: claudetest.Deaf}, claudetest.Step{Do: claudetest.Fork}), claudetest.Boot(),
			)}, marker))
			if err != nil {
				t.Fatal(err)
			}
			if event, err := s.Next(t.Context()); event != (turn.Started{}) {
				t.Fatalf("got %v, %v", event, err)
			}
			child := func(cmdline string) bool { return strings.HasPrefix(cmdline, "sleep ") }
			if running := processesOf(l.state.root); !slices.ContainsFunc(running, child) {
				t.Fatalf("%q, want the session and its child", running)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			closeLauncher(t, l)
		})
	}
}

// After many failures in a row all is as before: files, processes, descriptors,
// goroutines, routes and memory.
func TestManyFailuresLeaveNothing(t *testing.T) {
	l := standinLauncher(t, nil)
	failures := []claudetest.Script{
		{Steps: session(claudetest.Boot(), pick(0, 1), steps(
			claudetest.Step{Do: claudetest.StopFailure, Reason: "rate_limit", Text: "limit"},
			claudetest.Step{Do: claudetest.BannerRecord, Reason: "rate_limit", Status: 429, Text: "limit"}))},
		{Steps: steps(claudetest.Step{Do: claudetest.Exit, N: 1})},
		{Steps: session(claudetest.Boot(), steps(claudetest.Step{Do: claudetest.Kill}))},
		{Steps: session(claudetest.Boot(), pick(0), steps(
			claudetest.Step{Do: claudetest.Fork}, claudetest.Step{Do: claudetest.Exit}))},
	}
	fail := func(n int) {
		atOnce(n, 16, func(i int) {
			s, err := startTurn(l, question(failures[i%len(failures)], marker))
			if err != nil {
				t.Error(err)
				return
			}
			if r := receive(t.Context(), t, s, nil); r.err == nil {
				t.Errorf("turn %d did not fail: %q", i, r.text)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	fail(16) // what is made once, and kept
	before := inventory(t)
	fail(200)
	after := inventory(t)
	if after.descriptors > before.descriptors || after.goroutines > before.goroutines {
		t.Errorf("before %+v, after %+v", before, after)
	}
	// A session's screen alone takes more than 300 KB.
	const bound = 10 << 20
	if grown := after.heap - before.heap; grown > bound {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	closeLauncher(t, l)
}
