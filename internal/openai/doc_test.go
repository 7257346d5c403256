package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ocp/internal/dialecttest"
	"ocp/internal/turn"
)

// TestFieldTables holds docs/api.md to the fields that the code knows, and the code to
// what the tables say of each.
func TestFieldTables(t *testing.T) {
	for _, api := range []struct {
		section string
		rules   rules
		base    map[string]any
		decode  func([]byte) ([]string, error)
	}{
		{
			"## POST /v1/chat/completions",
			chatRules,
			map[string]any{"model": "opus", "messages": []any{map[string]any{"role": "user", "content": "hi"}}},
			func(body []byte) ([]string, error) {
				req, err := DecodeChat(body)
				return req.Ignored, err
			},
		},
		{
			"## POST /v1/responses",
			responsesRules,
			map[string]any{"model": "opus", "input": "hi"},
			func(body []byte) ([]string, error) {
				req, err := DecodeResponses(body)
				return req.Ignored, err
			},
		},
	} {
		documented := map[string]bool{}
		for _, r := range dialecttest.Table(t, api.section, "Field") {
			documented[r.Name] = true
			body := map[string]any{}
			for name, value := range api.base {
				body[name] = value
			}
			body[r.Name] = json.RawMessage(r.Example)
			if r.Name == "tool_choice" { // of a tool that is there
				body["tools"] = []any{map[string]any{"type": "function", "name": "f", "function": map[string]any{"name": "f"}}}
			}
			checkRow(t, r, body, api.decode)
			if _, ok := api.rules[r.Name]; !ok {
				t.Errorf("%s: the code does not know %s", api.section, r.Name)
			}
		}
		for name := range api.rules {
			if !documented[name] {
				t.Errorf("%s: %s of the code is not in the table", api.section, name)
			}
		}
	}
}

func TestPartTable(t *testing.T) {
	for _, r := range dialecttest.Table(t, "### Messages", "Part") {
		parts := []any{json.RawMessage(r.Example), map[string]any{"type": "text", "text": "hi"}}
		body := map[string]any{"model": "opus", "messages": []any{map[string]any{"role": "user", "content": parts}}}
		checkRow(t, dialecttest.Row{Name: "messages", Example: r.Example, Handling: r.Handling}, body, func(body []byte) ([]string, error) {
			req, err := DecodeChat(body)
			return req.Ignored, err
		})
	}
	for _, r := range dialecttest.Table(t, "## POST /v1/responses", "Item") {
		input := []any{json.RawMessage(r.Example), map[string]any{"role": "user", "content": "hi"}}
		if r.Name == "function_call" {
			input = slices.Insert(input, 1, any(map[string]any{"type": "function_call_output", "call_id": "c", "output": ""}))
		}
		checkRow(t, dialecttest.Row{Name: "input", Example: r.Example, Handling: r.Handling}, map[string]any{"model": "opus", "input": input}, func(body []byte) ([]string, error) {
			req, err := DecodeResponses(body)
			return req.Ignored, err
		})
	}
}

// checkRow sends a request and sees whether it is handled as a row says.
func checkRow(t *testing.T, r dialecttest.Row, fields map[string]any, decode func([]byte) ([]string, error)) {
	t.Helper()
	body, err := json.Marshal(fields)
	if err != nil {
		t.Errorf("%s: the example is not JSON: %v", r.Name, err)
		return
	}
	ignored, err := decode(body)
	named := slices.ContainsFunc(ignored, func(name string) bool {
		return name != "tools" && (name == r.Name || strings.HasPrefix(name, r.Name+".") || name == "image_url.detail")
	}) || r.Name == "tools" && len(ignored) == 1
	got := "honoured"
	switch e, _ := errors.AsType[*Error](err); {
	case e != nil && (e.Param == r.Name || strings.HasPrefix(e.Param, r.Name+".") || strings.HasPrefix(e.Param, r.Name+"[")):
		got = "refused"
	case err != nil:
		got = fmt.Sprintf("failing with %v", err)
	case named:
		got = "ignored"
	}
	if got != r.Handling {
		t.Errorf("%s with %s is %s, and documented as %s (ignored: %q)", r.Name, r.Example, got, r.Handling, ignored)
	}
}

// TestErrorTable holds docs/api.md to what failed turns look like.
func TestErrorTable(t *testing.T) {
	documented := map[string]bool{}
	for _, r := range dialecttest.Table(t, "## Errors", "Status") {
		documented[strings.Join(r.Cells[:3], " ")] = true
	}
	for kind := range failures {
		e := FromTurn(&turn.Error{Kind: kind})
		if line := fmt.Sprintf("%d %s %s", e.Status, e.Type, e.Code); !documented[line] {
			t.Errorf("%s is not in the table of errors: %s", kind, line)
		}
	}
	for _, e := range []*Error{badRequest("x", ""), unsupported("x", ""), NoSuchModel("x")} {
		if line := strings.TrimSpace(fmt.Sprintf("%d %s %s", e.Status, e.Type, e.Code)); !documented[line] && !documented[line+" "] {
			t.Errorf("not in the table of errors: %s", line)
		}
	}
}
