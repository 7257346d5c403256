package claude

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/prompt"
	"ocp/internal/transcript"
	"ocp/internal/turn"
)

func TestOffersTools(t *testing.T) {
	for version, want := range map[string]bool{"2.1.332": true, "2.1.400": true, "2.2.0": true, "2.1.331": false, "2.1.207": false, "": false, "x": false} {
		if got := OffersTools(version); got != want {
			t.Errorf("%q: %t", version, got)
		}
	}
}

// Every name the model is told is one that the upstream takes, is another tool's than any
// other, and leads back.
func TestNaming(t *testing.T) {
	long := strings.Repeat("n", 130)
	var tools []prompt.Tool
	for _, name := range []string{"a", "a.b", "a_b", "a:b", long + "1", long + "2", strings.Repeat("n", 120), "Bash", "mcp__t__a"} {
		tools = append(tools, prompt.Tool{Name: name})
	}
	n := newNaming(tools)
	seen := map[string]bool{}
	for _, tool := range tools {
		name := n.models[tool.Name]
		if seen[name] || len(name) > 128 || !strings.HasPrefix(name, "mcp__t__") || plain(name, 128) != name || n.client(name) != tool.Name {
			t.Errorf("%q is %q, and that %q", tool.Name, name, n.client(name))
		}
		seen[name] = true
	}
	if got := n.models["a"]; got != "mcp__t__a" {
		t.Errorf("a is %q", got)
	}
	for model, want := range map[string]string{"Bash": "Bash", "mcp__t__unknown": "unknown", "mcp__u__a": "mcp__u__a"} {
		if got := n.client(model); got != want {
			t.Errorf("%q is the client's %q, want %q", model, got, want)
		}
	}
}

func TestRename(t *testing.T) {
	use := prompt.Block{Type: "tool_use", Raw: json.RawMessage(`{"type":"tool_use","id":"i","name":"f","input":{"b":1.0,"a":"<é>"}}`)}
	c := prompt.Conversation{Messages: []prompt.Message{{Role: prompt.Assistant, Content: []prompt.Block{prompt.Text("x"), use}}}}
	if got := newNaming(nil).rename(c); string(got.Messages[0].Content[1].Raw) != string(use.Raw) {
		t.Errorf("without tools the call has become %s", got.Messages[0].Content[1].Raw)
	}
	c.Tools = []prompt.Tool{{Name: "g"}}
	got := newNaming(c.Tools).rename(c)
	if want := `{"id":"i","input":{"b":1.0,"a":"<é>"},"name":"mcp__t__f","type":"tool_use"}`; string(got.Messages[0].Content[1].Raw) != want {
		t.Errorf("got %s", got.Messages[0].Content[1].Raw)
	}
	if string(c.Messages[0].Content[1].Raw) != string(use.Raw) {
		t.Error("the client's own conversation was changed")
	}
}

func TestToolCheck(t *testing.T) {
	tools := []prompt.Tool{{Name: "f", Description: "d", Schema: json.RawMessage(`{"type":"object","x":1}`)}, {Name: "g", Schema: json.RawMessage(`{"type":"object"}`)}}
	const f, g = `{"name":"mcp__t__f","description":"d","input_schema":{"x":1,"type":"object"}}`, `{"name":"mcp__t__g","description":"","input_schema":{"type":"object"}}`
	for _, test := range []struct {
		name, sent string
		kind       turn.Kind
		diffs      int
	}{
		{"as offered", f + `,` + g, "", 0},
		{"another description", strings.Replace(f, `"d"`, `"e"`, 1) + `,` + g, "", 1},
		{"another schema", f + `,` + strings.Replace(g, `"object"`, `"array"`, 1), "", 1},
		{"one is missing", f, turn.InvalidRequest, 0},
		{"none", ``, turn.SessionFailed, 0},
	} {
		c := toolCheck{naming: newNaming(tools), tools: tools}
		if err := c.record(transcript.Record{Type: "api-request"}); err != nil || c.seen {
			t.Errorf("%s: another record is taken for the tools, %v", test.name, err)
		}
		r, err := transcript.Parse([]byte(`{"type":"api-request-shape","shape":{"tools":[` + test.sent + `]}}`))
		if err != nil {
			t.Fatal(err)
		}
		var kind turn.Kind
		if err := c.record(r); err != nil {
			kind = err.Kind
		}
		if kind != test.kind || c.diffs != test.diffs || !c.seen {
			t.Errorf("%s: %q, %d differences", test.name, kind, c.diffs)
		}
	}
}

func TestToolSession(t *testing.T) {
	args := arguments(Key{Tools: true}, place{mcp: "/m"}, "id")
	if !strings.HasSuffix(strings.Join(args, " "), "--mcp-config /m") || strings.Contains(strings.Join(args, " "), "allowed") {
		t.Errorf("%q", args)
	}
	if args := arguments(Key{}, place{mcp: "/m"}, "id"); strings.Contains(strings.Join(args, " "), "/m") {
		t.Errorf("without tools: %q", args)
	}
	if diff := cmp.Diff([]string{"CLAUDE_CODE_MAX_MCP_DESCRIPTION_LENGTH=1000000000"}, limits(Key{Tools: true})); diff != "" {
		t.Error(diff)
	}
}
