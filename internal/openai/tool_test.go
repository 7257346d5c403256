package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/prompt"
	"ocp/internal/turn"
)

// The tools of a response are ignored, whichever they are.
func TestResponseTools(t *testing.T) {
	const tools = `,"tools":[{"type":"function","function":{"name":"f"}},{"type":"custom","custom":{"name":"c"}},{"type":"web_search"}]`
	for _, choice := range []string{
		``, `,"tool_choice":"auto"`, `,"tool_choice":"none"`, `,"tool_choice":null`,
		`,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`,
		`,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[]}`,
	} {
		got, err := DecodeResponses([]byte(responseBody(tools + choice)))
		if err != nil || cmp.Diff([]string{"tools"}, got.Ignored) != "" {
			t.Errorf("%s: ignored %q, %v", choice, got.Ignored, err)
		}
	}
	refuse(t, DecodeResponses, []bad{
		{"required", responseBody(tools + `,"tool_choice":"required"`), "tool_choice", "cannot force"},
		{"function", responseBody(tools + `,"tool_choice":{"type":"function","function":{"name":"f"}}`), "tool_choice", "cannot force"},
		{"flat function", responseBody(tools + `,"tool_choice":{"type":"function","name":"f"}`), "tool_choice", "cannot force"},
		{"custom tool", responseBody(tools + `,"tool_choice":{"type":"custom","custom":{"name":"c"}}`), "tool_choice", "cannot force"},
		{"built-in tool", responseBody(tools + `,"tool_choice":{"type":"web_search"}`), "tool_choice", "cannot force"},
		{"unknown function", responseBody(tools + `,"tool_choice":{"type":"function","function":{"name":"g"}}`), "tool_choice", `names "g", which is not in tools`},
		{"function without tools", responseBody(`,"tool_choice":{"type":"function","function":{"name":"f"}}`), "tool_choice", `names "f", which is not in tools`},
		{"required of some", responseBody(tools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required"}}`), "tool_choice.allowed_tools.mode", "cannot force"},
		{"some without a mode", responseBody(tools + `,"tool_choice":{"type":"allowed_tools"}`), "tool_choice.mode", "required"},
		{"odd choice", responseBody(tools + `,"tool_choice":"always"`), "tool_choice", `"always"`},
		{"choice as number", responseBody(tools + `,"tool_choice":1`), "tool_choice", "must be a string or an object"},
		{"choice without a type", responseBody(tools + `,"tool_choice":{}`), "tool_choice.type", "required"},
		{"choice without a name", responseBody(tools + `,"tool_choice":{"type":"function"}`), "tool_choice.name", "required"},
		{"tool without a name", responseBody(`,"tools":[{"type":"function","function":{}}]`), "tools[0].function.name", "required"},
		{"tool without a type", responseBody(`,"tools":[{}]`), "tools[0].type", "required"},
		{"tool as text", responseBody(`,"tools":["f"]`), "tools[0]", "must be an object"},
	})
}

func responseBody(more string) string { return `{"model":"m","input":"hi"` + more + `}` }

const twoTools = `,"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","x":1.0},"strict":true}},{"type":"function","function":{"name":"g"}}]`

func TestTools(t *testing.T) {
	f := prompt.Tool{Name: "f", Description: "d", Schema: json.RawMessage(`{"type":"object","x":1.0}`)}
	g := prompt.Tool{Name: "g", Schema: json.RawMessage(`{"type":"object"}`)}
	for _, test := range []struct {
		more    string
		want    []prompt.Tool
		oneCall bool
	}{
		{`,"parallel_tool_calls":true`, []prompt.Tool{f, g}, false},
		{`,"tool_choice":"auto","parallel_tool_calls":false`, []prompt.Tool{f, g}, true},
		{`,"tool_choice":"none"`, nil, false},
		{`,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"g"}}]}}`, []prompt.Tool{g}, false},
		{`,"tool_choice":{"type":"allowed_tools","mode":"none","tools":[]}`, nil, false},
	} {
		got, err := DecodeChat([]byte(chatBody(twoTools + test.more)))
		if err != nil || cmp.Diff(test.want, got.Prompt.Tools) != "" || got.Prompt.OneCall != test.oneCall {
			t.Errorf("%s: %+v, %v", test.more, got.Prompt, err)
		}
		if diff := cmp.Diff([]string{"tools.function.strict"}, got.Ignored); diff != "" {
			t.Error(diff)
		}
	}
	tool := func(function string) string {
		return chatBody(`,"tools":[{"type":"function","function":` + function + `}]`)
	}
	refuse(t, DecodeChat, []bad{
		{"required", chatBody(twoTools + `,"tool_choice":"required"`), "tool_choice", "cannot force"},
		{"function", chatBody(twoTools + `,"tool_choice":{"type":"function","function":{"name":"f"}}`), "tool_choice", "cannot force"},
		{"forced function call", chatBody(`,"functions":[{"name":"f"}],"function_call":{"name":"f"}`), "function_call", "cannot force"},
		{"custom tool", chatBody(`,"tools":[{"type":"custom","custom":{"name":"c"}}]`), "tools[0].type", "only functions"},
		{"no function", chatBody(`,"tools":[{"type":"function"}]`), "tools[0].function", "required"},
		{"odd name", tool(`{"name":"a.b"}`), "tools[0].function.name", "use 1 to 128"},
		{"odd schema", tool(`{"name":"f","parameters":{"type":"string"}}`), "tools[0].function.parameters", "type object"},
		{"choice in a schema", tool(`{"name":"f","parameters":{"oneOf":[]}}`), "tools[0].function.parameters", "oneOf"},
		{"doubled", chatBody(`,"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}]`), "tools[1].function.name", "another tool"},
		{"odd wish", chatBody(`,"parallel_tool_calls":1`), "parallel_tool_calls", "must be a boolean"},
	})
}

func TestToolCallAnswers(t *testing.T) {
	a := Answer{ID: "c", Model: "m"}
	fin := turn.Finished{StopReason: turn.ToolUse, Usage: turn.Usage{Input: 1, Output: 2}}
	calls := []turn.ToolCall{{ID: "t1", Name: "f", Input: json.RawMessage(`{"a":"é"}`)}, {ID: "t2", Name: "g", Input: json.RawMessage(`{}`), At: 2}}
	whole := string(a.AppendCompletion(nil, "", fin, calls...))
	const message = `{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\":\"é\"}"}},{"id":"t2","type":"function","function":{"name":"g","arguments":"{}"}}]}`
	if !strings.Contains(whole, message) || !strings.Contains(whole, `"finish_reason":"tool_calls"`) {
		t.Error(whole)
	}
	s := NewStream(a)
	var got []byte
	for _, event := range []turn.Event{calls[0], turn.Delta{Text: "hm"}, calls[1], fin} {
		got = s.Append(got, event)
	}
	at := 0
	for _, want := range []string{
		`"content":"hm"`, `"tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"f","arguments":""}}]`,
		`"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":\"é\"}"}}]`, `"tool_calls":[{"index":1,"id":"t2"`, `"finish_reason":"tool_calls"`, "[DONE]",
	} {
		i := strings.Index(string(got)[at:], want)
		if i < 0 {
			t.Fatalf("no %s behind %d in %s", want, at, got)
		}
		at += i
	}
}
