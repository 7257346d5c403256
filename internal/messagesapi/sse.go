package messagesapi

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// event is one SSE event of an answer.
type event struct {
	name string
	data []byte // one line of JSON
	// reaches is the point that the answer is at when the event has been sent.
	reaches Point
	// step: the event has to pass the answer's gate.
	step bool
}

// bytes is the event as it stands in the body.
func (e event) bytes() []byte {
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", e.name, e.data)
}

// The JSON objects of the wire, with the API's order of fields.
type (
	wireMessage struct {
		ID           string    `json:"id"`
		Type         string    `json:"type"`
		Role         string    `json:"role"`
		Model        string    `json:"model"`
		Content      []any     `json:"content"`
		StopReason   *string   `json:"stop_reason"`
		StopSequence *string   `json:"stop_sequence"`
		Usage        wireUsage `json:"usage"`
	}
	wireUsage struct {
		Input         int `json:"input_tokens"`
		CacheCreation int `json:"cache_creation_input_tokens"`
		CacheRead     int `json:"cache_read_input_tokens"`
		Output        int `json:"output_tokens"`
	}
	wireText struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	wireThinking struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	wireToolUse struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	wireMessageStart struct {
		Type    string      `json:"type"`
		Message wireMessage `json:"message"`
	}
	wireBlockEvent struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Block any    `json:"content_block,omitempty"`
		Delta any    `json:"delta,omitempty"`
	}
	// wireDelta has the one field of its type set, be it to an empty string.
	wireDelta struct {
		Type        string  `json:"type"`
		Text        *string `json:"text,omitempty"`
		Thinking    *string `json:"thinking,omitempty"`
		Signature   *string `json:"signature,omitempty"`
		PartialJSON *string `json:"partial_json,omitempty"`
	}
	wireStop struct {
		StopReason   string  `json:"stop_reason"`
		StopSequence *string `json:"stop_sequence"`
	}
	wireMessageDelta struct {
		Type  string         `json:"type"`
		Delta wireStop       `json:"delta"`
		Usage map[string]int `json:"usage"`
	}
	wireError struct {
		Type      string          `json:"type"`
		Error     wireErrorDetail `json:"error"`
		RequestID string          `json:"request_id,omitempty"`
	}
	wireErrorDetail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
)

// encode is v as one line of JSON. Text stays UTF-8: an escaped surrogate pair cut
// in two would be a fault that the API does not have.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Only raw JSON can fail, and validate has checked that of an answer.
		panic("messagesapi: encode: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// events is the answer as a stream. The answer has its defaults and is valid.
func (a Answer) events() []event {
	start := wireMessage{
		ID: a.ID, Type: "message", Role: "assistant", Model: a.Model,
		Content: []any{}, Usage: a.Usage.wire(1),
	}
	list := []event{{
		name:    "message_start",
		data:    encode(wireMessageStart{Type: "message_start", Message: start}),
		reaches: AfterStart(),
	}}
	deltas := 0
	for i, p := range a.Parts {
		for _, e := range p.events(i, a.Split) {
			if e.step {
				deltas++
				if a.PingEvery > 0 && deltas%a.PingEvery == 0 {
					list = append(list, event{name: "ping", data: []byte(`{"type":"ping"}`)})
				}
			}
			list = append(list, e)
		}
	}
	return append(list,
		event{
			name: "message_delta",
			data: encode(wireMessageDelta{
				Type:  "message_delta",
				Delta: wireStop{StopReason: a.StopReason, StopSequence: optional(a.StopSequence)},
				Usage: map[string]int{"output_tokens": a.Usage.Output},
			}),
			reaches: BeforeStop(),
			step:    true,
		},
		event{name: "message_stop", data: []byte(`{"type":"message_stop"}`)},
	)
}

// events is the part as the index-th block of a stream.
func (p Part) events(index int, split Split) []event {
	list := []event{{
		name:    "content_block_start",
		data:    encode(wireBlockEvent{Type: "content_block_start", Index: index, Block: p.empty()}),
		reaches: InBlock(index, 0),
	}}
	for i, delta := range p.deltas(split) {
		list = append(list, event{
			name:    "content_block_delta",
			data:    encode(wireBlockEvent{Type: "content_block_delta", Index: index, Delta: delta}),
			reaches: InBlock(index, i+1),
			step:    true,
		})
	}
	return append(list, event{
		name:    "content_block_stop",
		data:    encode(wireBlockEvent{Type: "content_block_stop", Index: index}),
		reaches: AfterBlock(index),
	})
}

// deltas are the delta objects of the part's events, in order.
func (p Part) deltas(split Split) []wireDelta {
	var list []wireDelta
	for _, chunk := range p.chunks(split) {
		switch p.Type {
		case "thinking":
			list = append(list, wireDelta{Type: "thinking_delta", Thinking: &chunk})
		case "tool_use":
			list = append(list, wireDelta{Type: "input_json_delta", PartialJSON: &chunk})
		default:
			list = append(list, wireDelta{Type: "text_delta", Text: &chunk})
		}
	}
	if p.Type == "thinking" && p.Signature != "" {
		list = append(list, wireDelta{Type: "signature_delta", Signature: &p.Signature})
	}
	return list
}

// empty is the part as content_block_start shows it.
func (p Part) empty() any {
	return Part{Type: p.Type, ID: p.ID, Name: p.Name, Input: json.RawMessage("{}")}.whole()
}

// whole is the part as an answer that is not streamed shows it.
func (p Part) whole() any {
	switch p.Type {
	case "thinking":
		return wireThinking{Type: p.Type, Thinking: p.Text, Signature: p.Signature}
	case "tool_use":
		return wireToolUse{Type: p.Type, ID: p.ID, Name: p.Name, Input: p.Input}
	default:
		return wireText{Type: p.Type, Text: p.Text}
	}
}

// message is the answer as a body that is not streamed.
func (a Answer) message() []byte {
	content := []any{}
	for _, p := range a.Parts {
		content = append(content, p.whole())
	}
	return encode(wireMessage{
		ID: a.ID, Type: "message", Role: "assistant", Model: a.Model,
		Content:    content,
		StopReason: &a.StopReason, StopSequence: optional(a.StopSequence),
		Usage: a.Usage.wire(a.Usage.Output),
	})
}

// wire is the usage with another count of output tokens.
func (u Usage) wire(output int) wireUsage {
	return wireUsage{Input: u.Input, CacheCreation: u.CacheCreation, CacheRead: u.CacheRead, Output: output}
}

// body is the error in the API's envelope; an SSE error event has no request id.
func (e APIError) body(requestID string) []byte {
	kind := e.Type
	if kind == "" {
		kind = ErrorType(e.Status)
	}
	return encode(wireError{
		Type:      "error",
		Error:     wireErrorDetail{Type: kind, Message: e.Message},
		RequestID: requestID,
	})
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
