package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"ocp/internal/claude/claudetest"
)

func TestLogFormats(t *testing.T) {
	for format, want := range map[string]string{
		"text": `msg=turn took=1.5s`,
		"json": `"msg":"turn","took":"1.5s"}`,
	} {
		var out bytes.Buffer
		logger := newLogger(&out, "info", format)
		logger.Debug("not this")
		logger.Info("turn", "took", 1500*time.Millisecond)
		if got := out.String(); !strings.HasSuffix(got, want+"\n") || strings.Contains(got, "not this") {
			t.Errorf("%s: got %s", format, got)
		}
	}
}

// TestTurnIsOneLine checks what is logged of a turn, in all dialects and both modes: one
// line that has the stages, in which they come in order.
func TestTurnIsOneLine(t *testing.T) {
	r := serveStandin(t, nil)
	for i, path := range append(paths, paths...) {
		if got, err := r.do(r.request(path, r.model(claudetest.Answer("You said:\n", "{prompt}")), i < len(paths))); err != nil || got.status != http.StatusOK {
			t.Fatalf("%s: %+v, %v", path, got, err)
		}
	}
	turns := 0
	for line := range strings.Lines(r.log.String()) {
		var entry struct {
			Msg, ID, Outcome, Dialect, Way string
			Queued                         *int `json:"queued_ms"`
			Started                        int  `json:"started_ms"`
			First                          int  `json:"first_ms"`
			Stopped                        int  `json:"stopped_ms"`
			Total                          int  `json:"total_ms"`
			Output                         int  `json:"output_tokens"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if entry.Msg != "turn" {
			continue
		}
		turns++
		if entry.ID == "" || entry.Outcome != "ok" || entry.Way != "cold" || entry.Queued == nil || entry.Started == 0 ||
			entry.First < entry.Started || entry.Stopped < entry.First || entry.Total < entry.Stopped || entry.Output == 0 {
			t.Errorf("logged %s", line)
		}
	}
	if turns != 2*len(paths) {
		t.Errorf("%d lines, want one a turn", turns)
	}
}
