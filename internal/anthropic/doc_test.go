package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"

	"ocp/internal/turn"
)

// table returns the cells of a table in this API's part of docs/api.md.
func table(t *testing.T, heading string) (rows [][]string) {
	t.Helper()
	doc, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(doc), "\n## POST /v1/messages\n")
	_, rest, found := strings.Cut(rest, "\n| "+heading+" |")
	if !ok || !found {
		t.Fatalf("docs/api.md has no table %s of /v1/messages", heading)
	}
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			if rows != nil {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		if len(cells) >= 3 && !strings.HasPrefix(cells[0], "---") {
			rows = append(rows, cells)
		}
	}
	return rows
}

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

// TestFieldTable holds docs/api.md to the fields that the official client can send and
// to those the code knows, and the code to what the table says of each.
func TestFieldTable(t *testing.T) {
	documented := map[string]bool{}
	for _, row := range table(t, "Field") {
		documented[row[0]] = true
		fields := map[string]any{
			"model": "opus", "max_tokens": 64000,
			"messages": []any{map[string]any{"role": "user", "content": "hi"}},
		}
		fields[row[0]] = json.RawMessage(row[1])
		if got := handling(t, fields, row[0]); got != row[2] {
			t.Errorf("%s with %s is %s, and documented as %s", row[0], row[1], got, row[2])
		}
	}
	for field := range reflect.TypeFor[sdk.MessageNewParams]().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" && !documented[name] {
			t.Errorf("%s of the official client is not in the table", name)
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
	for _, row := range table(t, "Block") {
		kind, ofAssistant := strings.CutSuffix(row[0], " (assistant)")
		documented[kind] = true
		messages := []any{map[string]any{"role": "user", "content": []any{json.RawMessage(row[1]), map[string]any{"type": "text", "text": "hi"}}}}
		if ofAssistant {
			answer := []any{map[string]any{"type": "text", "text": "go on"}}
			if kind == "tool_use" {
				answer = append(answer, map[string]any{"type": "tool_result", "tool_use_id": "t"})
			}
			messages = []any{
				map[string]any{"role": "assistant", "content": []any{json.RawMessage(row[1])}},
				map[string]any{"role": "user", "content": answer},
			}
		}
		fields := map[string]any{"model": "opus", "max_tokens": 100, "messages": messages}
		if got := handling(t, fields, "messages"); got != row[2] {
			t.Errorf("%s is %s, and documented as %s", row[1], got, row[2])
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
	for _, row := range table(t, "Status") {
		documented[row[0]+" "+row[1]] = true
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
