package anthropic

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/prompt"
	"ocp/internal/turn"
)

func TestTools(t *testing.T) {
	const tools = `,"tools":[{"name":"f","description":"d","input_schema":{"type":"object","x":1.0},"cache_control":{"type":"ephemeral"}},{"type":"custom","name":"g","input_schema":{"properties":{}}}]`
	all := []prompt.Tool{
		{Name: "f", Description: "d", Schema: json.RawMessage(`{"type":"object","x":1.0}`)},
		{Name: "g", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
	}
	for choice, want := range map[string]prompt.Request{
		``:                               {Conversation: prompt.Conversation{Tools: all}},
		`,"tool_choice":{"type":"none"}`: {},
		`,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`: {OneCall: true, Conversation: prompt.Conversation{Tools: all}},
	} {
		got, err := DecodeMessages([]byte(body(tools + choice)))
		if err != nil || cmp.Diff(want.Tools, got.Prompt.Tools) != "" || got.Prompt.OneCall != want.OneCall {
			t.Errorf("%s: %+v, %v", choice, got.Prompt, err)
		}
		if diff := cmp.Diff([]string{"tools.cache_control"}, got.Ignored); diff != "" {
			t.Error(diff)
		}
	}
}

// Anthropic's clients go by these details.
func TestThread(t *testing.T) {
	_, err := DecodeMessages([]byte(body(`,"thread":{"type":"continue","previous_message_id":"m"},"messages":[]`)))
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Status != 400 || !strings.Contains(string(e.AppendJSON(nil)), `,"details":{"error_code":"thread_unsupported_request","unsupported":["thread"]}}`) {
		t.Errorf("got %v", err)
	}
}

func TestToolUseAnswers(t *testing.T) {
	a := Answer{ID: "m", Model: "m"}
	fin := turn.Finished{StopReason: turn.ToolUse}
	first := turn.ToolCall{ID: "t1", Name: "f", Input: json.RawMessage(`{"a":"é"}`), At: 1}
	last := turn.ToolCall{ID: "t2", Name: "g", Input: json.RawMessage(`{}`), At: 3}
	const content = `"content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t1","name":"f","input":{"a":"é"}},{"type":"text","text":"bc"},{"type":"tool_use","id":"t2","name":"g","input":{}}],"stop_reason":"tool_use"`
	if got := string(a.AppendMessage(nil, "abc", fin, first, last)); !strings.Contains(got, content) {
		t.Error(got)
	}
	s := NewStream(a)
	var got []byte
	for _, event := range []turn.Event{turn.Delta{Text: "a"}, first, turn.Delta{Text: "bc"}, last, fin} {
		got = s.Append(got, event)
	}
	for _, want := range []string{
		`{"type":"content_block_start","index":0,"content_block":{"type":"text"`, `{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":\"é\"}"}}`, `{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"text"`, `{"type":"content_block_start","index":3,"content_block":{"type":"tool_use"`,
		`"stop_reason":"tool_use"`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}
