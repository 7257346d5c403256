package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"ocp/internal/turn"
)

// row is a row of a table of docs/api.md.
type row struct {
	name, example, handling string
	cells                   []string
}

// table returns the rows of the document's table whose first column has the heading
// given, in the section given.
func table(t *testing.T, section, heading string) (rows []row) {
	t.Helper()
	doc, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(doc), "\n"+section+"\n")
	_, rest, found := strings.Cut(rest, "\n| "+heading+" |")
	if !ok || !found {
		t.Fatalf("docs/api.md has no table %s in %s", heading, section)
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
			rows = append(rows, row{cells[0], cells[1], cells[2], cells})
		}
	}
	if len(rows) == 0 {
		t.Fatalf("the table %s in %s is empty", heading, section)
	}
	return rows
}

// tags are the JSON names of a struct's fields.
func tags(v any) (names []string) {
	for field := range reflect.TypeOf(v).Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// TestFieldTables holds docs/api.md to the fields that the official client can send and
// to those the code knows, and the code to what the tables say of each.
func TestFieldTables(t *testing.T) {
	for _, api := range []struct {
		section string
		params  any
		rules   rules
		base    map[string]any
		decode  func([]byte) ([]string, error)
	}{
		{
			"## POST /v1/chat/completions",
			sdk.ChatCompletionNewParams{},
			chatRules,
			map[string]any{"model": "opus", "messages": []any{map[string]any{"role": "user", "content": "hi"}}},
			func(body []byte) ([]string, error) {
				req, err := DecodeChat(body)
				return req.Ignored, err
			},
		},
		{
			"## POST /v1/responses",
			responses.ResponseNewParams{},
			responsesRules,
			map[string]any{"model": "opus", "input": "hi"},
			func(body []byte) ([]string, error) {
				req, err := DecodeResponses(body)
				return req.Ignored, err
			},
		},
	} {
		documented := map[string]bool{}
		for _, r := range table(t, api.section, "Field") {
			documented[r.name] = true
			body := map[string]any{}
			for name, value := range api.base {
				body[name] = value
			}
			body[r.name] = json.RawMessage(r.example)
			if r.name == "tool_choice" { // of a tool that is there
				body["tools"] = []any{map[string]any{"type": "function", "name": "f"}}
			}
			checkRow(t, r, body, api.decode)
			if _, ok := api.rules[r.name]; !ok {
				t.Errorf("%s: the code does not know %s", api.section, r.name)
			}
		}
		for _, name := range append(tags(api.params), "stream") {
			if !documented[name] {
				t.Errorf("%s: %s of the official client is not in the table", api.section, name)
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
	for _, r := range table(t, "### Messages", "Part") {
		parts := []any{json.RawMessage(r.example), map[string]any{"type": "text", "text": "hi"}}
		body := map[string]any{"model": "opus", "messages": []any{map[string]any{"role": "user", "content": parts}}}
		checkRow(t, row{"messages", r.example, r.handling, nil}, body, func(body []byte) ([]string, error) {
			req, err := DecodeChat(body)
			return req.Ignored, err
		})
	}
	for _, r := range table(t, "## POST /v1/responses", "Item") {
		input := []any{json.RawMessage(r.example), map[string]any{"role": "user", "content": "hi"}}
		if r.name == "function_call" {
			input = slices.Insert(input, 1, any(map[string]any{"type": "function_call_output", "call_id": "c", "output": ""}))
		}
		checkRow(t, row{"input", r.example, r.handling, nil}, map[string]any{"model": "opus", "input": input}, func(body []byte) ([]string, error) {
			req, err := DecodeResponses(body)
			return req.Ignored, err
		})
	}
}

// checkRow sends a request and sees whether it is handled as a row says.
func checkRow(t *testing.T, r row, fields map[string]any, decode func([]byte) ([]string, error)) {
	t.Helper()
	body, err := json.Marshal(fields)
	if err != nil {
		t.Errorf("%s: the example is not JSON: %v", r.name, err)
		return
	}
	ignored, err := decode(body)
	named := slices.ContainsFunc(ignored, func(name string) bool {
		return name != "tools" && (name == r.name || strings.HasPrefix(name, r.name+".") || name == "image_url.detail")
	}) || r.name == "tools" && len(ignored) == 1
	got := "honoured"
	switch e, _ := errors.AsType[*Error](err); {
	case e != nil && (e.Param == r.name || strings.HasPrefix(e.Param, r.name+".") || strings.HasPrefix(e.Param, r.name+"[")):
		got = "refused"
	case err != nil:
		got = fmt.Sprintf("failing with %v", err)
	case named:
		got = "ignored"
	}
	if got != r.handling {
		t.Errorf("%s with %s is %s, and documented as %s (ignored: %q)", r.name, r.example, got, r.handling, ignored)
	}
}

// TestErrorTable holds docs/api.md to what failed turns look like.
func TestErrorTable(t *testing.T) {
	documented := map[string]bool{}
	for _, r := range table(t, "## Errors", "Status") {
		documented[strings.Join(r.cells[:3], " ")] = true
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
