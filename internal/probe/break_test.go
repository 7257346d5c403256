package probe

import (
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/claude/claudetest"
)

// standIn is an environment whose CLI is the stand-in.
func standIn(t *testing.T, fault claudetest.Fault) *Env {
	t.Helper()
	return &Env{
		CLI: claudetest.Path(), Name: claudetest.Version, Self: []string{claudetest.Path()}, Path: os.Getenv("PATH"),
		Dir: t.TempDir(), Model: claudetest.Asking(fault).Model(),
		quiet: time.Second, gate: 5 * time.Second,
	}
}

// atOnce is how many stand-ins run at once: what they do most is to wait.
const atOnce = 6

// outcome is what was found by one probe of a stand-in.
type outcome struct {
	failed  []string
	skipped bool // nothing was found
	log     string
}

// tried runs probes, each on a stand-in with a fault, and returns what they found.
func tried(t *testing.T, names []string, faults []claudetest.Fault) []outcome {
	t.Helper()
	outcomes := make([]outcome, len(names))
	slots := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for i := range names {
		at := slices.IndexFunc(all(), func(p probe) bool { return p.name == names[i] })
		if at < 0 {
			t.Fatalf("there is no probe %q", names[i])
		}
		p, e := all()[at], standIn(t, faults[i])
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			outcomes[i] = outcomeOf(p, p.carryOut(t.Context(), e))
		})
	}
	running.Wait()
	return outcomes
}

func outcomeOf(p probe, found seen) outcome {
	o := outcome{skipped: true}
	for _, c := range p.claims {
		v := found[c.ID]
		o.skipped = o.skipped && v.status == Skip
		if v.status == Fail {
			o.failed = append(o.failed, c.ID)
			o.log += c.ID + ": " + v.evidence + "\n"
		}
	}
	return o
}

// sound are the probes that a stand-in without a fault passes. It draws the source, and
// knows nothing of --bare; and the others that are not here it would pass.
var sound = []string{
	"streaming", "incremental", "incremental-command", "plain", "slow-hook", "failing-hook", "held-stop",
	"failures", "exactness-1", "exactness-2", "not-run", "isolation", "primed", "box",
	"dead-files", "dead-debug", "dead-partial-env", "dead-output-format", "dead-mirror",
}

func TestStandInPasses(t *testing.T) {
	for i, o := range tried(t, sound, make([]claudetest.Fault, len(sound))) {
		if o.failed != nil {
			t.Errorf("%s: failed: %q\n%s", sound[i], o.failed, o.log)
		}
	}
}

// Each claim fails, and no other of its probe does, when the CLI breaks just that.
func TestEachBreakFailsItsCheck(t *testing.T) {
	table := []struct {
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
		{"dead-input-format", claudetest.Events, "dead-input-format"},
		{"dead-mirror", claudetest.Events, "dead-mirror"},
		{"dead-sdk-url", claudetest.Events, "dead-sdk-url"},
		{"dead-print", claudetest.Events, "dead-print"}, // and the entrypoint is cli
		{"pane-tmux", "", "pane-tmux"},                  // the stand-in draws the source
	}
	var names []string
	var faults []claudetest.Fault
	for _, tt := range table {
		names, faults = append(names, tt.probe), append(faults, tt.fault)
	}
	for i, o := range tried(t, names, faults) {
		tt := table[i]
		t.Run(tt.fails+"/"+string(tt.fault), func(t *testing.T) {
			if o.skipped {
				t.Skip("nothing could be found")
			}
			if diff := cmp.Diff([]string{tt.fails}, o.failed); diff != "" {
				t.Errorf("-want +failed:\n%s\n%s", diff, o.log)
			}
		})
	}
}
