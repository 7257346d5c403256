package anthropic

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/prompt"
)

var (
	png  = base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n rest"))
	jpeg = base64.StdEncoding.EncodeToString([]byte("\xff\xd8\xff rest"))
	gif  = base64.StdEncoding.EncodeToString([]byte("GIF89a rest"))
	webp = base64.StdEncoding.EncodeToString([]byte("RIFF....WEBP rest"))
	pdf  = base64.StdEncoding.EncodeToString([]byte("%PDF-1.7 rest"))
)

// body makes a request with further fields.
func body(more string) string {
	return `{"model":"opus","max_tokens":100,"messages":[{"role":"user","content":"hi"}]` + more + `}`
}

// withMessages makes a request of the messages given.
func withMessages(messages string) string {
	return `{"model":"opus","max_tokens":100,"messages":[` + messages + `]}`
}

// withBlocks makes a request of one user message of the blocks given.
func withBlocks(blocks string) string {
	return withMessages(`{"role":"user","content":[` + blocks + `]}`)
}

// conversation makes the request that is expected.
func conversation(system string, messages ...prompt.Message) MessageRequest {
	return MessageRequest{Prompt: prompt.Request{
		Model: "opus", MaxTokens: 100,
		Conversation: prompt.Conversation{System: system, Messages: messages},
	}}
}

func user(blocks ...prompt.Block) prompt.Message {
	return prompt.Message{Role: prompt.User, Content: blocks}
}

func assistant(blocks ...prompt.Block) prompt.Message {
	return prompt.Message{Role: prompt.Assistant, Content: blocks}
}

func raw(kind, json string) prompt.Block { return prompt.Block{Type: kind, Raw: []byte(json)} }

func (r MessageRequest) ignoring(names ...string) MessageRequest {
	r.Ignored = names
	return r
}

func (r MessageRequest) effort(effort string) MessageRequest {
	r.Prompt.Effort = effort
	return r
}

var hi = conversation("", user(prompt.Text("hi")))

const imagePNG = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`

func TestDecodeMessages(t *testing.T) {
	streamed, stopped, long := hi, hi, hi
	streamed.Stream, stopped.Stop = true, []string{"a", "\n\nb"}
	long.Prompt.MaxTokens = 64000
	for _, test := range []struct {
		name string
		body string
		want MessageRequest
	}{
		{"least", body(""), hi},
		{"stream", body(`,"stream":true`), streamed},
		{"nulls", body(`,"stream":null,"system":null,"tools":null,"metadata":null,"new":null`), hi},
		{"stop", body(`,"stop_sequences":["a","\n\nb"]`), stopped},
		{"no stop", body(`,"stop_sequences":[]`), hi},
		{"system", body(`,"system":" be\tbrief\n"`), conversation(" be\tbrief\n", user(prompt.Text("hi")))},
		{
			"system blocks", body(`,"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":""},{"type":"text","text":"b"}]`),
			conversation("a\n\nb", user(prompt.Text("hi"))).ignoring("system.cache_control"),
		},
		{
			"system message", withMessages(`{"role":"user","content":"a"},{"role":"system","content":"s"},{"role":"user","content":"b"}`),
			conversation("s", user(prompt.Text("a"), prompt.Text("b"))),
		},
		{
			"roles", withMessages(`{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"assistant","content":[{"type":"text","text":"c"}]},{"role":"user","content":[{"type":"text","text":"d "},{"type":"text","text":""},{"type":"text","text":"\ne"}]}`),
			conversation("", user(prompt.Text("a")), assistant(prompt.Text("b"), prompt.Text("c")), user(prompt.Text("d "), prompt.Text("\ne"))),
		},
		{
			"thinking is dropped", withMessages(`{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"redacted_thinking","data":"x"},{"type":"text","text":"b","citations":[]}]},{"role":"user","content":"c"}`),
			conversation("", user(prompt.Text("a")), assistant(prompt.Text("b")), user(prompt.Text("c"))).
				ignoring("messages.content.citations", "messages.content.redacted_thinking", "messages.content.thinking"),
		},
		{
			"ignored", body(`,"temperature":0.5,"top_p":1,"top_k":5,"metadata":{"user_id":"x"},"service_tier":"auto","cache_control":{"type":"ephemeral"},"context_management":{"edits":[]},"a_new_one":1,"odd name\n":1`),
			hi.ignoring("a_new_one", "cache_control", "context_management", "metadata", "others", "service_tier", "temperature", "top_k", "top_p"),
		},
		{"no tools", body(`,"tool_choice":{"type":"none"}`), hi},

		{"disabled", body(`,"thinking":{"type":"disabled"}`), hi.effort("low")},
		{"adaptive", body(`,"thinking":{"type":"adaptive","display":"omitted"}`), hi.effort("high").ignoring("thinking.display")},
		{"between tools", body(`,"thinking":{"type":"between_tools"}`), hi.effort("low")},
		{"effort", body(`,"output_config":{"effort":"xhigh"},"thinking":{"type":"disabled"}`), hi.effort("xhigh")},
		{"no effort", body(`,"output_config":{}`), hi},
		{"least budget", strings.Replace(body(`,"thinking":{"type":"enabled","budget_tokens":1024}`), "100", "64000", 1), long.effort("low")},
		{"medium budget", strings.Replace(body(`,"thinking":{"type":"enabled","budget_tokens":4096}`), "100", "64000", 1), long.effort("medium")},
		{"high budget", strings.Replace(body(`,"thinking":{"type":"enabled","budget_tokens":16384}`), "100", "64000", 1), long.effort("high")},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := DecodeMessages([]byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeBlocks(t *testing.T) {
	image := func(media, data string) string {
		return `{"type":"image","source":{"type":"base64","media_type":"image/` + media + `","data":"` + data + `"}}`
	}
	for _, test := range []struct {
		name   string
		blocks string
		want   prompt.Block
	}{
		{"png", image("png", png), raw("image", image("png", png))},
		{"jpeg", image("jpeg", jpeg), raw("image", image("jpeg", jpeg))},
		{"gif", image("gif", gif), raw("image", image("gif", gif))},
		{"webp", image("webp", webp), raw("image", image("webp", webp))},
		{"lines of base64", image("gif", gif[:8]+`\r\n`+gif[8:]), raw("image", image("gif", gif))},
		{
			"unknown fields of a block go no further", imagePNG + png + `"},"cache_control":{"type":"ephemeral"},"x":1}`,
			raw("image", image("png", png)),
		},
		{
			"pdf", `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + pdf + `"},"title":"T","context":"C","citations":{"enabled":true}}`,
			raw("document", `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"`+pdf+`"},"title":"T","context":"C"}`),
		},
		{
			"text document", `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a\tb"}}`,
			raw("document", `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a\tb"}}`),
		},
		{
			"document of a string", `{"type":"document","source":{"type":"content","content":"a"}}`,
			raw("document", `{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a"}]}}`),
		},
		{
			"document of blocks", `{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a"},{"type":"text","text":""},` + image("png", png) + `]}}`,
			raw("document", `{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a"},`+image("png", png)+`]}}`),
		},
		{
			"search result", `{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"a"}],"citations":{"enabled":true}}`,
			raw("search_result", `{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"a"}]}`),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := DecodeMessages([]byte(withBlocks(test.blocks)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(user(test.want), got.Prompt.Messages[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// toolCall is an assistant message with a call of each id.
func toolCall(ids ...string) string {
	var blocks []string
	for _, id := range ids {
		blocks = append(blocks, `{"type":"tool_use","id":"`+id+`","name":"f","input":{"n":1.0,"s":"<é>"}}`)
	}
	return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
}

func toolResult(id, more string) string {
	return `{"type":"tool_result","tool_use_id":"` + id + `"` + more + `}`
}

func TestDecodeTools(t *testing.T) {
	const use = `{"type":"tool_use","id":"t1","name":"f","input":{"n":1.0,"s":"\u003cé\u003e"}}`
	for _, test := range []struct {
		name   string
		result string
		want   string
	}{
		{"string", toolResult("t1", `,"content":"r\n"`), toolResult("t1", `,"content":"r\n"`)},
		{"empty string", toolResult("t1", `,"content":""`), toolResult("t1", `,"content":""`)},
		{"nothing", toolResult("t1", ``), toolResult("t1", ``)},
		{"empty blocks", toolResult("t1", `,"content":[{"type":"text","text":""}]`), toolResult("t1", ``)},
		{
			"blocks and an error", toolResult("t1", `,"content":[{"type":"text","text":"r"},`+imagePNG+png+`"}}],"is_error":true`),
			toolResult("t1", `,"content":[{"type":"text","text":"r"},`+imagePNG+png+`"}}],"is_error":true`),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := DecodeMessages([]byte(withMessages(`{"role":"user","content":"a"},` + toolCall("t1") + `,{"role":"user","content":[` + test.result + `]}`)))
			if err != nil {
				t.Fatal(err)
			}
			want := conversation("", user(prompt.Text("a")), assistant(raw("tool_use", use)), user(raw("tool_result", test.want)))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestToolResultsMayBeSplit takes calls and results of several messages in a row.
func TestToolResultsMayBeSplit(t *testing.T) {
	_, err := DecodeMessages([]byte(withMessages(toolCall("a") + `,` + toolCall("b", "c") +
		`,{"role":"user","content":[` + toolResult("c", "") + `]},{"role":"user","content":[` + toolResult("a", "") + `,` + toolResult("b", "") + `,{"type":"text","text":"go on"}]}`)))
	if err != nil {
		t.Error(err)
	}
}
