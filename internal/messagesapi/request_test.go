package messagesapi

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecode(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, c := range []struct {
		name, body string
		want       Request
	}{
		{"nothing", `{}`, Request{}},
		{
			"strings", `{"model":"m","max_tokens":7,"stream":true,"system":"be terse","messages":[{"role":"user","content":"a\ud83d\ude00"}]}`,
			Request{
				Model: "m", MaxTokens: 7, Stream: true,
				System:   []Block{{Type: "text", Text: "be terse", Raw: raw(`"be terse"`)}},
				Messages: []Message{{Role: "user", Content: []Block{{Type: "text", Text: "a😀", Raw: raw(`"a\ud83d\ude00"`)}}}},
			},
		},
		{
			"blocks", `{"system":[{"type":"text","text":"s"}],"tools":[{"name":"t"}],"messages":[
				{"role":"user","content":[{"type":"image","source":{"type":"base64"}},{"type":"text","text":"x"}]},
				{"role":"assistant","content":[]},{"role":"user","content":[{"type":"tool_result","content":"r"}]}]}`,
			Request{
				System: []Block{{Type: "text", Text: "s", Raw: raw(`{"type":"text","text":"s"}`)}},
				Tools:  []json.RawMessage{raw(`{"name":"t"}`)},
				Messages: []Message{
					{Role: "user", Content: []Block{
						{Type: "image", Source: raw(`{"type":"base64"}`), Raw: raw(`{"type":"image","source":{"type":"base64"}}`)},
						{Type: "text", Text: "x", Raw: raw(`{"type":"text","text":"x"}`)},
					}},
					{Role: "assistant", Content: []Block{}},
					{Role: "user", Content: []Block{{Type: "tool_result", Raw: raw(`{"type":"tool_result","content":"r"}`)}}},
				},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			have, err := (&Recorded{Body: []byte(c.body)}).Decode()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, have); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, body := range []string{
		``, `[]`, `{"model":1}`, `{"system":1}`, `{"messages":[{"content":"x"}]}`,
		`{"messages":[{"role":"user","content":{}}]}`, `{"messages":[{"role":"user","content":["x"]}]}`,
		`{"messages":[{"role":"user","content":[{"text":"x"}]}]}`,
	} {
		if r, err := decodeRequest([]byte(body)); err == nil {
			t.Errorf("%s decodes as %+v", body, r)
		}
	}
}

func TestPrompt(t *testing.T) {
	for body, want := range map[string]string{
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`:                                            "a",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"image"}]}]}`:          "b",
		`{"messages":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"tool_result"}]},{"role":"x","content":"b"}]}`: "",
		`{}`: "",
	} {
		r, err := decodeRequest([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if have := r.Prompt(); have != want {
			t.Errorf("%s: %q, want %q", body, have, want)
		}
	}
}

// FuzzDecode: a body that decodes, written again from its blocks, decodes the same.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(streamed))
	f.Add([]byte(`{"system":[{"type":"text","text":"s"}],"tools":[{}],"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]}`))
	f.Add([]byte(`{"system":null,"messages":[{"role":"user","content":null},{"role":"user","content":"\ud83d"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		first, err := decodeRequest(body)
		if err != nil {
			return
		}
		type message struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
		}
		var messages []message
		for _, m := range first.Messages {
			messages = append(messages, message{m.Role, rewrite(m.Content)})
		}
		again, err := json.Marshal(map[string]any{
			"model": first.Model, "max_tokens": first.MaxTokens, "stream": first.Stream,
			"system": rewrite(first.System), "tools": first.Tools, "messages": messages,
		})
		if err != nil {
			t.Fatal(err)
		}
		second, err := decodeRequest(again)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if diff := cmp.Diff(first, second, cmp.Transformer("compact", compact)); diff != "" {
			t.Fatal(diff)
		}
		first.Prompt()
	})
}

// rewrite is the content that decodes to these blocks.
func rewrite(blocks []Block) any {
	if blocks == nil {
		return nil
	}
	if len(blocks) == 1 && blocks[0].Raw[0] == '"' {
		return blocks[0].Raw
	}
	list := []json.RawMessage{}
	for _, b := range blocks {
		list = append(list, b.Raw)
	}
	return list
}

// compact makes raw JSON comparable: what json.Marshal does to it is no difference.
func compact(raw json.RawMessage) any {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return string(raw)
	}
	return v
}
