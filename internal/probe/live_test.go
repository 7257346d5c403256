package probe

import (
	"slices"
	"strings"
	"testing"

	"ocp/internal/claude/claudetest"
	"ocp/internal/messagesapi"
)

// A live run judges by the transcript. The account here is a scripted model.
func TestLive(t *testing.T) {
	for fault, fails := range map[claudetest.Fault]string{
		"": "", claudetest.Silent: "hook-fires", claudetest.TailLost: "deltas-complete",
		claudetest.OtherRecord: "prefix-stable", claudetest.Gap: "index-order", claudetest.TwoMessages: "one-message-id",
		claudetest.NeverFinal: "final-flag", claudetest.StopTwice: "stop-once", claudetest.AtTheEnd: "live-incremental",
		claudetest.NotCLI: "live-entrypoint",
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			model, err := messagesapi.Start(messagesapi.Options{Script: flow()})
			if err != nil {
				t.Fatal(err)
			}
			defer model.Close()
			e := standIn(t, fault)
			e.Real = []string{"PATH=" + e.Path, "ANTHROPIC_BASE_URL=" + model.URL(), "ANTHROPIC_API_KEY=" + noAccount}
			findings, err := Run(t.Context(), e, Options{Live: true})
			if err != nil {
				t.Fatal(err)
			}
			var failed []string
			for _, f := range findings {
				if f.Status != OK && f.Status != Skip {
					failed = append(failed, f.ID)
					t.Logf("%s: %s", f.ID, f.Evidence)
				}
			}
			if !slices.Equal(failed, strings.Fields(fails)) {
				t.Errorf("failed: %q, want %q", failed, fails)
			}
			if n := len(model.Turns()); n != LiveTurns {
				t.Errorf("%d turns, said to be %d", n, LiveTurns)
			}
		})
	}
}
