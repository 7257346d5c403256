package turn

import (
	"encoding/json"

	"ocp/internal/transcript"
)

// newCall reads a tool_use block. The input of a call that is not JSON is nil: the CLI
// keeps the text of one under a key of its own (2.1.332).
func newCall(b transcript.Block, at int) ToolCall {
	var block struct {
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	_ = json.Unmarshal(b.Raw, &block) // a block of a record that was read
	var unparsed struct {
		Text json.RawMessage `json:"__unparsedToolInput"`
	}
	if json.Unmarshal(block.Input, &unparsed) != nil || unparsed.Text != nil {
		block.Input = nil
	}
	return ToolCall{ID: block.ID, Name: block.Name, Input: block.Input, At: at}
}

// leaves reports whether a record is of a message behind the last one.
func (a *answer) leaves(r transcript.Record) bool {
	return r.Type == "assistant" && !r.IsSidechain && r.Message != nil && r.Message.ID != a.id
}

// callAll appends the calls, each behind its text. One that the token limit has cut is
// left out.
func (t *Turn) callAll(events []Event) ([]Event, *Error) {
	for _, call := range t.answer.calls {
		if call.Input == nil {
			switch t.answer.stop {
			case MaxTokens, ContextWindow:
				continue
			}
			return events, &Error{Kind: Upstream, Message: "the model has called a tool with arguments that are not JSON"}
		}
		events = append(t.topUp(events, call.At), call)
	}
	return events, nil
}

// topUp appends what was not sent of T up to a place in it.
func (t *Turn) topUp(events []Event, end int) []Event {
	if len(t.sent) >= end {
		return events
	}
	rest := t.answer.text.String()[len(t.sent):end]
	if !t.calling { // it was held, not lost
		t.stats.ToppedUp += len(rest)
	}
	t.sent = append(t.sent, rest...)
	return append(events, Delta{Text: rest})
}
