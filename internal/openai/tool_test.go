package openai

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTools(t *testing.T) {
	const tools = `,"tools":[{"type":"function","function":{"name":"f"}},{"type":"custom","custom":{"name":"c"}},{"type":"web_search"}]`
	for _, choice := range []string{
		``, `,"tool_choice":"auto"`, `,"tool_choice":"none"`, `,"tool_choice":null`,
		`,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`,
		`,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[]}`,
	} {
		got, err := DecodeChat([]byte(chatBody(tools + choice)))
		if err != nil || cmp.Diff([]string{"tools"}, got.Ignored) != "" {
			t.Errorf("%s: ignored %q, %v", choice, got.Ignored, err)
		}
	}
	refuse(t, DecodeChat, []bad{
		{"required", chatBody(tools + `,"tool_choice":"required"`), "tool_choice", "cannot force"},
		{"function", chatBody(tools + `,"tool_choice":{"type":"function","function":{"name":"f"}}`), "tool_choice", "cannot force"},
		{"flat function", chatBody(tools + `,"tool_choice":{"type":"function","name":"f"}`), "tool_choice", "cannot force"},
		{"custom tool", chatBody(tools + `,"tool_choice":{"type":"custom","custom":{"name":"c"}}`), "tool_choice", "cannot force"},
		{"built-in tool", chatBody(tools + `,"tool_choice":{"type":"web_search"}`), "tool_choice", "cannot force"},
		{"unknown function", chatBody(tools + `,"tool_choice":{"type":"function","function":{"name":"g"}}`), "tool_choice", `names "g", which is not in tools`},
		{"function without tools", chatBody(`,"tool_choice":{"type":"function","function":{"name":"f"}}`), "tool_choice", `names "f", which is not in tools`},
		{"required of some", chatBody(tools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required"}}`), "tool_choice.allowed_tools.mode", "cannot force"},
		{"some without a mode", chatBody(tools + `,"tool_choice":{"type":"allowed_tools"}`), "tool_choice.mode", "required"},
		{"odd choice", chatBody(tools + `,"tool_choice":"always"`), "tool_choice", `"always"`},
		{"choice as number", chatBody(tools + `,"tool_choice":1`), "tool_choice", "must be a string or an object"},
		{"choice without a type", chatBody(tools + `,"tool_choice":{}`), "tool_choice.type", "required"},
		{"choice without a name", chatBody(tools + `,"tool_choice":{"type":"function"}`), "tool_choice.name", "required"},
		{"tool without a name", chatBody(`,"tools":[{"type":"function","function":{}}]`), "tools[0].function.name", "required"},
		{"tool without a type", chatBody(`,"tools":[{}]`), "tools[0].type", "required"},
		{"tool as text", chatBody(`,"tools":["f"]`), "tools[0]", "must be an object"},
		{"forced function call", chatBody(`,"functions":[{"name":"f"}],"function_call":{"name":"f"}`), "function_call", "cannot force"},
	})
}
