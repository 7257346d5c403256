package claude

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/prompt"
)

func toolResult(raw string) prompt.Block {
	return prompt.Block{Type: "tool_result", Raw: json.RawMessage(raw)}
}

func TestBlockResults(t *testing.T) {
	for before, want := range map[string]string{
		`{"type":"tool_result","tool_use_id":"a","content":" x\n"}`:                       `{"content":[{"type":"text","text":" x\n"}],"tool_use_id":"a","type":"tool_result"}`,
		`{"type":"tool_result","tool_use_id":"a","content":"  "}`:                         `{"type":"tool_result","tool_use_id":"a","content":"  "}`,
		`{"type":"tool_result","tool_use_id":"a"}`:                                        `{"type":"tool_result","tool_use_id":"a"}`,
		`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"}]}`: `{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"}]}`,
	} {
		c := prompt.Conversation{Messages: []prompt.Message{{Role: prompt.User, Content: []prompt.Block{toolResult(before), prompt.Text("?")}}}}
		got := blockResults(c)
		if diff := cmp.Diff(want, string(got.Messages[0].Content[0].Raw)); diff != "" {
			t.Error(diff)
		}
		if string(c.Messages[0].Content[0].Raw) != before {
			t.Error("the client's own conversation was changed")
		}
	}
}

func TestEntries(t *testing.T) {
	r, text := toolResult(`{"type":"tool_result","tool_use_id":"a"}`), prompt.Text("x")
	for _, test := range []struct {
		name     string
		messages []prompt.Message
		want     []int // blocks of each entry
	}{
		{"text", []prompt.Message{{Role: prompt.User, Content: []prompt.Block{text, text}}}, []int{2}},
		{"results last", []prompt.Message{{Role: prompt.User, Content: []prompt.Block{r, r}}}, []int{2, 1}},
		{"results and text last", []prompt.Message{{Role: prompt.User, Content: []prompt.Block{r, r, text}}}, []int{2, 1}},
		{
			"results and text before",
			[]prompt.Message{
				{Role: prompt.User, Content: []prompt.Block{r, text}}, {Role: prompt.Assistant, Content: []prompt.Block{text}}, {Role: prompt.User, Content: []prompt.Block{text}},
			},
			[]int{2, 1, 1},
		},
	} {
		var got []int
		for _, e := range entries(prompt.Conversation{Messages: test.messages}) {
			got = append(got, len(e.Content.([]prompt.Block)))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func TestLimits(t *testing.T) {
	if got := limits(Key{}); got != nil {
		t.Errorf("without a limit: %q", got)
	}
	if diff := cmp.Diff([]string{"CLAUDE_CODE_MAX_OUTPUT_TOKENS=17"}, limits(Key{MaxTokens: 17})); diff != "" {
		t.Error(diff)
	}
}
