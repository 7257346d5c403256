package probe

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/claude/claudetest"
)

// standIn is an environment whose CLI is the stand-in.
func standIn(t *testing.T, fault claudetest.Fault) *Env {
	t.Helper()
	return &Env{
		CLI: claudetest.Path(), Name: claudetest.Version, Self: []string{claudetest.Path()}, Path: "/usr/bin:/bin",
		Dir: t.TempDir(), Model: claudetest.Asking(fault).Model(),
		quiet: time.Second, gate: 5 * time.Second,
	}
}

// failing are the claims of a probe that fail on the stand-in with a fault.
func failing(t *testing.T, name string, fault claudetest.Fault) []string {
	t.Helper()
	i := slices.IndexFunc(all(), func(p probe) bool { return p.name == name })
	if i < 0 {
		t.Fatalf("there is no probe %q", name)
	}
	p := all()[i]
	found := p.carryOut(t.Context(), standIn(t, fault))
	var list []string
	for _, c := range p.claims {
		if found[c.ID].status == Fail {
			list = append(list, c.ID)
			t.Logf("%s: %s", c.ID, found[c.ID].evidence)
		}
	}
	return list
}

// sound are the probes that a stand-in without a fault passes. It draws nothing, so the
// pane is not among them; and what the ways that must be asked for do, it does not know.
var sound = []string{
	"streaming", "incremental", "incremental-command", "plain", "slow-hook", "failing-hook", "held-stop",
	"failures", "exactness-1", "exactness-2", "not-run", "isolation", "primed", "box",
	"dead-files", "dead-debug", "dead-partial-env", "dead-output-format", "dead-mirror",
}

func TestStandInPasses(t *testing.T) {
	for _, name := range sound {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if list := failing(t, name, ""); list != nil {
				t.Errorf("failed: %q", list)
			}
		})
	}
}

// Each claim fails, and no other of its probe does, when the CLI breaks just that.
func TestEachBreakFailsItsCheck(t *testing.T) {
	for _, tt := range []struct {
		probe string
		fault claudetest.Fault
		fails string
	}{
		{"streaming", claudetest.Silent, "hook-fires"},
		{"streaming", claudetest.Drawn, "deltas-are-source"},
		{"streaming", claudetest.OtherRecord, "transcript-exact"},
		{"streaming", claudetest.Altered, "prefix-stable"},
		{"streaming", claudetest.TailLost, "deltas-complete"},
		{"streaming", claudetest.Gap, "index-order"},
		{"streaming", claudetest.Again, "index-order"},
		{"streaming", claudetest.TwoMessages, "one-message-id"},
		{"streaming", claudetest.NeverFinal, "final-flag"},
		{"streaming", claudetest.StopTwice, "stop-once"},
		{"streaming", claudetest.ThinkingShown, "thinking-excluded"},
		{"streaming", claudetest.NotCLI, "entrypoint"},
		{"streaming", claudetest.Tools, "no-tools"},
		{"streaming", claudetest.Large, "request-small"},
		{"streaming", claudetest.Title, "one-request"},
		{"streaming", claudetest.Leak + "transcript", "transcript-whole"},
		{"incremental", claudetest.AtTheEnd, "incremental"},
		{"incremental-command", claudetest.AtTheEnd, "incremental-command"},
		{"plain", claudetest.Silent, "hook-fires-plain"},
		{"bare", "", "bare-silent"}, // to the stand-in, --bare means nothing
		{"slow-hook", claudetest.Dropping, "hook-slow"},
		{"failing-hook", claudetest.Again, "hook-failing"},
		{"held-stop", claudetest.StopAwaited, "transcript-lag"},
		{"failures", claudetest.Unmarked + "401", "failure-authentication"},
		{"failures", claudetest.Unmarked + "429", "failure-rate-limit"},
		{"failures", claudetest.Unmarked + "529", "failure-overloaded"},
		{"failures", claudetest.Unmarked + "400", "failure-too-long"},
		{"failures", claudetest.Unmarked + "0", "failure-cut"},
		{"exactness-1", claudetest.NoOdd, "exact-text"},
		{"exactness-1", claudetest.NoSlash, "exact-command"},
		{"exactness-1", claudetest.NoExit, "exact-exit"},
		{"exactness-1", claudetest.NoImage, "exact-blocks"},
		{"exactness-2", claudetest.NoResult, "exact-tool-result"},
		{"exactness-2", claudetest.Merged, "exact-history"},
		{"exactness-2", claudetest.Short, "exact-long"},
		{"exactness-2", claudetest.OldSystem, "exact-system"},
		{"not-run", claudetest.RunAnyway, "no-turn"},
		{"isolation", claudetest.ShellChanged, "inert-shell"},
		{"isolation", claudetest.MentionSent, "inert-mention"},
		{"isolation", claudetest.NoSlash, "inert-command"},
		{"primed", claudetest.Eager, "primed-waits"},
		{"primed", claudetest.OldSystem, "primed-exact"},
		{"box", claudetest.TypedChanged, "box-exact"},
		{"box", claudetest.Unblocked, "box-blocks"},
		{"dead-files", claudetest.Leak + "projects/x/x.jsonl", "dead-transcript"},
		{"dead-files", claudetest.Leak + "history.jsonl", "dead-history"},
		{"dead-files", claudetest.Leak + "sessions/1.json", "dead-registry"},
		{"dead-files", claudetest.Leak + "cache/x", "dead-files"},
		{"dead-debug", claudetest.Leak + "debug", "dead-debug"},
		{"dead-partial-env", claudetest.Events, "dead-partial-env"},
		{"dead-output-format", claudetest.Events, "dead-output-format"},
		{"dead-mirror", claudetest.Events, "dead-mirror"},
	} {
		t.Run(tt.fails+"/"+string(tt.fault), func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff([]string{tt.fails}, failing(t, tt.probe, tt.fault)); diff != "" {
				t.Errorf("on the stand-in of which %s (-want +failed):\n%s", tt.fault, diff)
			}
		})
	}
}
