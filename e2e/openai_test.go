package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"ocp/internal/messagesapi"
)

// TestOpenAIFields pins what the OpenAI dialect makes of a request by the real CLI: what
// reaches the model of limits, tool calls, images and documents, and where answers end.
func TestOpenAIFields(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{args: []string{"--concurrency", "1"}})
		for name, test := range map[string]func(*testing.T, *proxy){
			"limit": testLimit, "stop sequence": testStopSequence, "tool results": testToolResults,
			"text behind tool results": testTextBehindResults, "media": testMedia, "schema": testSchema,
		} {
			t.Run(name, func(t *testing.T) {
				p.model.Reset()
				test(t, p)
			})
		}
	})
}

// says sets the model's answer.
func (p *proxy) says(a messagesapi.Answer) { p.model.SetScript(messagesapi.Always(a)) }

// firstRequest is the first request to the model since the last Reset.
func (p *proxy) firstRequest(t *testing.T) messagesapi.Request {
	t.Helper()
	turns := p.model.Turns()
	if len(turns) == 0 {
		t.Fatal("the model was not asked")
	}
	request, err := turns[0].Decode()
	if err != nil {
		t.Fatal(err)
	}
	return request
}

func testLimit(t *testing.T, p *proxy) {
	const begun = "one\ntwo thr"
	p.model.SetScript(messagesapi.ByRequest(func(r messagesapi.Request) messagesapi.Answer {
		a := messagesapi.Answer{Parts: []messagesapi.Part{messagesapi.Text(begun)}, StopReason: "max_tokens", Usage: messagesapi.Usage{Input: 9, Output: 5}}
		if len(r.Messages) > 1 { // the CLI's own wish for a continuation
			a = messagesapi.Answer{Parts: []messagesapi.Part{messagesapi.Text("ee")}, Pace: messagesapi.Pace{First: time.Second}}
		}
		return a
	}))
	client := p.client()
	got, err := client.Chat.Completions.New(withPatience(t), openai.ChatCompletionNewParams{Model: modelName, Messages: user("hi"), MaxTokens: openai.Int(17)})
	if err != nil {
		t.Fatal(err)
	}
	if choice := got.Choices[0]; choice.Message.Content != begun || choice.FinishReason != "length" || got.Usage.CompletionTokens != 5 {
		t.Errorf("got %s", got.RawJSON())
	}
	if limit := p.firstRequest(t).MaxTokens; limit != 17 {
		t.Errorf("the model was asked for %d tokens, want 17", limit)
	}
	if n := len(p.model.Turns()); n > 2 {
		t.Errorf("the model was asked %d times", n)
	}
}

func testStopSequence(t *testing.T, p *proxy) {
	p.says(messagesapi.Answer{
		Parts: []messagesapi.Part{messagesapi.Text(strings.Repeat("a line\n", 3) + "END\n" + strings.Repeat("a line\n", 500))},
		Pace:  messagesapi.Pace{Between: 50 * time.Millisecond},
	})
	client := p.client()
	got, err := client.Chat.Completions.New(withPatience(t), openai.ChatCompletionNewParams{
		Model: modelName, Messages: user("hi"), Stop: openai.ChatCompletionNewParamsStopUnion{OfStringArray: []string{"X", "END\n"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if choice := got.Choices[0]; choice.Message.Content != strings.Repeat("a line\n", 3) || choice.FinishReason != "stop" || got.JSON.Usage.Valid() {
		t.Errorf("got %s", got.RawJSON())
	}
	if outcome, err := p.model.Turns()[0].Wait(withPatience(t)); err != nil || outcome != messagesapi.Disconnected {
		t.Errorf("the session was not ended: the model's answer was %s (%v)", outcome, err)
	}
}

// toolMessages are a conversation with two rounds of calls.
func toolMessages(more ...string) json.RawMessage {
	return json.RawMessage(`[{"role":"user","content":"q"},
		{"role":"assistant","content":"let me see","tool_calls":[{"id":"call:1","type":"function","function":{"name":"Read","arguments":"{\"p\": \" a\"}"}}]},
		{"role":"tool","tool_call_id":"call:1","content":"one"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"b","type":"function","function":{"name":"Bash","arguments":""}},{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"b","content":"  two \n"},{"role":"tool","tool_call_id":"c","content":"three"}` + strings.Join(append([]string{""}, more...), ",") + `]`)
}

func (p *proxy) askTools(t *testing.T, messages json.RawMessage) []string {
	t.Helper()
	p.says(messagesapi.TextAnswer("ok"))
	var body map[string]any
	raw, _ := json.Marshal(map[string]any{"model": modelName, "messages": messages})
	client := p.client()
	if err := client.Post(withPatience(t), "chat/completions", json.RawMessage(raw), &body); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, m := range p.firstRequest(t).Messages {
		for _, block := range m.Content {
			if !strings.HasPrefix(block.Text, "<system-reminder>") {
				lines = append(lines, m.Role+" "+plainBlock(t, block))
			}
		}
	}
	return lines
}

// plainBlock is a block without the mark for the cache.
func plainBlock(t *testing.T, block messagesapi.Block) string {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(block.Raw, &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "cache_control")
	raw, _ := json.Marshal(fields)
	return string(raw)
}

var toolLines = []string{
	`user {"text":"q","type":"text"}`,
	`assistant {"text":"let me see","type":"text"}`,
	`assistant {"id":"call_1","input":{"p":" a"},"name":"Read","type":"tool_use"}`,
	`user {"content":[{"text":"one","type":"text"}],"tool_use_id":"call_1","type":"tool_result"}`,
	`assistant {"id":"b","input":{},"name":"Bash","type":"tool_use"}`,
	`assistant {"id":"c","input":{},"name":"f","type":"tool_use"}`,
	`user {"content":[{"text":"  two \n","type":"text"}],"tool_use_id":"b","type":"tool_result"}`,
	`user {"content":[{"text":"three","type":"text"}],"tool_use_id":"c","type":"tool_result"}`,
}

func testToolResults(t *testing.T, p *proxy) {
	if diff := cmp.Diff(toolLines, p.askTools(t, toolMessages())); diff != "" {
		t.Error(diff)
	}
}

func testTextBehindResults(t *testing.T, p *proxy) {
	want := append(toolLines[:len(toolLines):len(toolLines)], `user {"text":"and?","type":"text"}`)
	if diff := cmp.Diff(want, p.askTools(t, toolMessages(`{"role":"user","content":"and?"}`))); diff != "" {
		t.Error(diff)
	}
	p.model.Reset()
	want = append(want, `assistant {"text":"yes","type":"text"}`, `user {"text":"why","type":"text"}`)
	got := p.askTools(t, toolMessages(`{"role":"user","content":"and?"}`, `{"role":"assistant","content":"yes"}`, `{"role":"user","content":"why"}`))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// tinyPNG is an image of one pixel.
const tinyPNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="

func testMedia(t *testing.T, p *proxy) {
	p.says(messagesapi.TextAnswer("a dot"))
	client := p.client()
	got, err := client.Responses.New(withPatience(t), responses.ResponseNewParams{
		Model: modelName,
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
			responses.ResponseInputItemParamOfMessage(responses.ResponseInputMessageContentListParam{
				{OfInputImage: &responses.ResponseInputImageParam{Detail: "auto", ImageURL: openai.String("data:image/png;base64," + tinyPNG)}},
				{OfInputFile: &responses.ResponseInputFileParam{Filename: openai.String("a.txt"), FileData: openai.String("data:text/plain;base64,SGVsbG8=")}},
				{OfInputText: &responses.ResponseInputTextParam{Text: "what is it?"}},
			}, "user"),
		}},
	})
	if err != nil || got.OutputText() != "a dot" || got.Usage.OutputTokens == 0 {
		t.Fatalf("got %v, %v", got, err)
	}
	var blocks []string
	for _, block := range p.firstRequest(t).Messages[0].Content {
		if !strings.HasPrefix(block.Text, "<system-reminder>") {
			blocks = append(blocks, block.Type+block.Text+string(block.Source))
		}
	}
	want := []string{
		`image{"type":"base64","media_type":"image/png","data":"` + tinyPNG + `"}`,
		`document{"type":"text","media_type":"text/plain","data":"Hello"}`,
		`textwhat is it?`,
	}
	if diff := cmp.Diff(want, blocks); diff != "" {
		t.Error(diff)
	}
}

func testSchema(t *testing.T, p *proxy) {
	client := p.client()
	params := openai.ChatCompletionNewParams{Model: modelName, Messages: user("hi")}
	params.ResponseFormat.OfJSONSchema = &openai.ResponseFormatJSONSchemaParam{JSONSchema: openai.ResponseFormatJSONSchemaJSONSchemaParam{
		Name: "x", Schema: map[string]any{"type": "object", "required": []string{"a"}},
	}}
	for said, want := range map[string]string{"```json\n{\"a\": 1}\n```\n": `{"a": 1}`, "{}": ""} {
		p.says(messagesapi.TextAnswer(said))
		stream := client.Chat.Completions.NewStreaming(withPatience(t), params)
		var acc openai.ChatCompletionAccumulator
		for stream.Next() {
			acc.AddChunk(stream.Current())
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		if message := acc.Choices[0].Message; message.Content != want || (message.Refusal == "") != (want != "") {
			t.Errorf("%q became %q, refused with %q", said, message.Content, message.Refusal)
		}
	}
	system := ""
	for _, block := range p.firstRequest(t).System {
		system += block.Text + "\n"
	}
	if !strings.Contains(system, `{"required":["a"],"type":"object"}`) {
		t.Errorf("the schema is not in the system text: %q", system)
	}
}
