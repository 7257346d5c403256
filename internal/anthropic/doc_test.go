package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"ocp/internal/dialecttest"
	"ocp/internal/turn"
)

// section is this API's part of docs/api.md.
const section = "## POST /v1/messages"

// handling sends a request and says what became of a field.
func handling(t *testing.T, fields map[string]any, field string) string {
	t.Helper()
	body, err := json.Marshal(fields)
	if err != nil {
		t.Errorf("%s: the example is not JSON: %v", field, err)
		return ""
	}
	req, err := DecodeMessages(body)
	of := func(name string) bool { return name == field || strings.HasPrefix(name, field+".") }
	switch bad, _ := errors.AsType[*Error](err); {
	case bad != nil && of(bad.Field):
		return "refused"
	case err != nil:
		return fmt.Sprintf("failing with %v", err)
	case slices.ContainsFunc(req.Ignored, of):
		return "ignored"
	case len(req.Ignored) > 0:
		return fmt.Sprintf("ignoring %q", req.Ignored)
	}
	return "honoured"
}

// TestFieldTable holds docs/api.md to the fields that the code knows, and the code to what
// the table says of each.
func TestFieldTable(t *testing.T) {
	documented := map[string]bool{}
	for _, row := range dialecttest.Table(t, section, "Field") {
		documented[row.Name] = true
		fields := map[string]any{
			"model": "opus", "max_tokens": 64000,
			"messages": []any{map[string]any{"role": "user", "content": "hi"}},
		}
		fields[row.Name] = json.RawMessage(row.Example)
		if got := handling(t, fields, row.Name); got != row.Handling {
			t.Errorf("%s with %s is %s, and documented as %s", row.Name, row.Example, got, row.Handling)
		}
	}
	for _, name := range slices.Concat(honoured, slices.Collect(maps.Keys(ignoredParams)), slices.Collect(maps.Keys(refusedParams))) {
		if !documented[name] {
			t.Errorf("%s of the code is not in the table", name)
		}
	}
}

// TestBlockTable does the same for the blocks of a message.
func TestBlockTable(t *testing.T) {
	documented := map[string]bool{}
	for _, row := range dialecttest.Table(t, section, "Block") {
		kind, ofAssistant := strings.CutSuffix(row.Name, " (assistant)")
		documented[kind] = true
		messages := []any{map[string]any{"role": "user", "content": []any{json.RawMessage(row.Example), map[string]any{"type": "text", "text": "hi"}}}}
		if ofAssistant {
			answer := []any{map[string]any{"type": "text", "text": "go on"}}
			if kind == "tool_use" {
				answer = append(answer, map[string]any{"type": "tool_result", "tool_use_id": "t"})
			}
			messages = []any{
				map[string]any{"role": "assistant", "content": []any{json.RawMessage(row.Example)}},
				map[string]any{"role": "user", "content": answer},
			}
		}
		fields := map[string]any{"model": "opus", "max_tokens": 100, "messages": messages}
		if got := handling(t, fields, "messages"); got != row.Handling {
			t.Errorf("%s is %s, and documented as %s", row.Example, got, row.Handling)
		}
	}
	for _, kind := range slices.Concat(userBlocks, assistantBlocks) {
		if !documented[kind] {
			t.Errorf("%s is not in the table", kind)
		}
	}
}

// TestErrorTable holds docs/api.md to what errors look like.
func TestErrorTable(t *testing.T) {
	documented := map[string]bool{}
	for _, row := range dialecttest.Table(t, section, "Status") {
		documented[row.Name+" "+row.Example] = true
	}
	var shown []*Error
	for kind := range failures {
		shown = append(shown, FromTurn(&turn.Error{Kind: kind}))
	}
	for _, status := range []int{401, 403, 404, 405, 408, 413, 415, 429, 500} {
		shown = append(shown, FromStatus(status, ""))
	}
	for _, e := range shown {
		if line := fmt.Sprintf("%d %s", e.Status, e.Type); !documented[line] {
			t.Errorf("%s is not in the table", line)
		}
	}
}
