package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/prompt"
	"ocp/internal/wire"
)

// chatBody makes a request of the given fields, on top of a model and one message.
func chatBody(fields string) string {
	return `{"model":"opus","messages":[{"role":"user","content":"hi"}]` + fields + `}`
}

// withMessages makes a request of the given messages.
func withMessages(messages string) string {
	return `{"model":"opus","messages":[` + messages + `]}`
}

func user(texts ...string) prompt.Message      { return messageOf(prompt.User, texts) }
func assistant(texts ...string) prompt.Message { return messageOf(prompt.Assistant, texts) }

func messageOf(role prompt.Role, texts []string) prompt.Message {
	m := prompt.Message{Role: role}
	for _, text := range texts {
		m.Content = append(m.Content, prompt.Text(text))
	}
	return m
}

func TestDecodeChat(t *testing.T) {
	hi := prompt.Request{Model: "opus", Conversation: prompt.Conversation{Messages: []prompt.Message{user("hi")}}}
	withEffort := func(effort string) prompt.Request {
		r := hi
		r.Effort = effort
		return r
	}
	withLimit := func(n int) prompt.Request {
		r := hi
		r.MaxTokens = n
		return r
	}
	conversation := func(system string, messages ...prompt.Message) ChatRequest {
		return ChatRequest{Prompt: prompt.Request{Model: "opus", Conversation: prompt.Conversation{System: system, Messages: messages}}}
	}
	for _, test := range []struct {
		name string
		body string
		want ChatRequest
	}{
		{"plain", chatBody(""), ChatRequest{Prompt: hi}},
		{"white space around", " \n\t" + chatBody("") + "\r\n", ChatRequest{Prompt: hi}},
		{"unknown fields", chatBody(`,"x":[{"y":1}],"Model":7,"STREAM":true,"odd\nname":1`), ChatRequest{Prompt: hi, Ignored: []string{"?", "Model", "STREAM", "x"}}},
		{"nulls", chatBody(`,"n":null,"stream":null,"stream_options":null,"reasoning_effort":null,"tools":null,"tool_choice":null,"max_tokens":null,"logprobs":null,"response_format":null,"stop":null`), ChatRequest{Prompt: hi}},
		{"doubled keys", `{"model":"x","model":"opus","messages":5,"messages":[{"role":"tool","role":"user","content":"hi"}]}`, ChatRequest{Prompt: hi}},
		{"neutral values", chatBody(`,"n":1,"logprobs":false,"modalities":["text"],"response_format":{"type":"text"},"tool_choice":"auto","function_call":"none"`), ChatRequest{Prompt: hi}},

		{"stream", chatBody(`,"stream":true`), ChatRequest{Prompt: hi, Stream: true}},
		{"stream with usage", chatBody(`,"stream":true,"stream_options":{"include_usage":true}`), ChatRequest{Prompt: hi, Stream: true, IncludeUsage: true}},
		{"stream without usage", chatBody(`,"stream":true,"stream_options":{"include_usage":null}`), ChatRequest{Prompt: hi, Stream: true}},

		{"no effort", chatBody(`,"reasoning_effort":"none"`), ChatRequest{Prompt: withEffort("low")}},
		{"minimal effort", chatBody(`,"reasoning_effort":"minimal"`), ChatRequest{Prompt: withEffort("low")}},
		{"high effort", chatBody(`,"reasoning_effort":"high"`), ChatRequest{Prompt: withEffort("high")}},

		{
			"ignored", chatBody(`,"temperature":0.5,"seed":-1,"user":"me","store":true`),
			ChatRequest{Prompt: hi, Ignored: []string{"seed", "store", "temperature", "user"}},
		},
		{"not stored", chatBody(`,"store":false,"tools":[],"stream_options":{"include_obfuscation":false}`), ChatRequest{Prompt: hi}},
		{"one stop", chatBody(`,"stop":"a"`), ChatRequest{Prompt: hi, Stop: []string{"a"}}},
		{"stops", chatBody(`,"stop":["a","\n\n"]`), ChatRequest{Prompt: hi, Stop: []string{"a", "\n\n"}}},
		{"no stops", chatBody(`,"stop":[]`), ChatRequest{Prompt: hi}},
		{"limit", chatBody(`,"max_tokens":10`), ChatRequest{Prompt: withLimit(10)}},
		{"newer limit", chatBody(`,"max_completion_tokens":7.0`), ChatRequest{Prompt: withLimit(7)}},
		{"two limits", chatBody(`,"max_completion_tokens":7,"max_tokens":5`), ChatRequest{Prompt: withLimit(5)}},
		{"huge limit", chatBody(`,"max_tokens":1e300`), ChatRequest{Prompt: withLimit(noLimit)}},
		{"names", withMessages(`{"role":"user","name":"ann","content":"hi"}`), ChatRequest{Prompt: hi, Ignored: []string{"messages.name"}}},

		{
			"system texts", withMessages(`{"role":"system","content":"a"},{"role":"user","content":"hi"},{"role":"developer","content":[{"type":"text","text":"b"},{"type":"text","text":"c"}]},{"role":"assistant","content":"yo"},{"role":"user","content":"and?"}`),
			conversation("a\n\nb\n\nc", user("hi"), assistant("yo"), user("and?")),
		},
		{
			"parts", withMessages(`{"role":"user","content":[{"type":"text","text":"a "},{"type":"input_text","text":"\nb"},{"type":"text","text":""}]}`),
			conversation("", user("a ", "\nb")),
		},
		{
			"assistant without text", withMessages(`{"role":"user","content":"a"},{"role":"assistant","content":null,"refusal":null,"tool_calls":[]},{"role":"user","content":"b"},{"role":"assistant"},{"role":"assistant","content":""},{"role":"assistant","content":[]},{"role":"user","content":"c"}`),
			conversation("", user("a", "b", "c")),
		},
		{
			"odd characters", withMessages(`{"role":"user","content":"\u0000\u001b\ud83d\ude00\u2028\\ud800 \\\\\" <b>&amp;\r\n é"}`),
			conversation("", user("\x00\x1b😀\u2028\\ud800 \\\\\" <b>&amp;\r\n é")),
		},
		{"replacement character", withMessages(`{"role":"user","content":"�\ufffd"}`), conversation("", user("\ufffd\ufffd"))},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := DecodeChat([]byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeChatRefuses(t *testing.T) {
	deep := strings.Repeat("[", wire.MaxDepth) + strings.Repeat("]", wire.MaxDepth)
	for _, test := range []struct {
		name  string
		body  string
		param string
		says  string
	}{
		{"empty", "", "", "not valid JSON"},
		{"cut", chatBody("")[:40], "", "at byte 40"},
		{"two values", chatBody("") + "{}", "", "not valid JSON"},
		{"array", `[1]`, "", "must be a JSON object"},
		{"null", `null`, "", "must be a JSON object"},
		{"byte order mark", "\ufeff" + chatBody(""), "", "not valid JSON"},
		{"too deep", chatBody(`,"x":` + deep), "", "deeper than 200"},
		{"endless", strings.Repeat("[", 1_000_000), "", "deeper than 200"},
		{"invalid UTF-8", withMessages(`{"role":"user","content":"` + "\xff" + `"}`), "", "UTF-8"},
		{"encoded surrogate", withMessages(`{"role":"user","content":"` + "\xed\xa0\x80" + `"}`), "", "UTF-8"},
		{"lone high half", withMessages(`{"role":"user","content":"\ud83d"}`), "", "surrogate"},
		{"lone low half", withMessages(`{"role":"user","content":"\ude00\ud83d"}`), "", "surrogate"},
		{"two high halves", withMessages(`{"role":"user","content":"\ud83d\ud83d\ude00"}`), "", "surrogate"},
		{"lone half after a backslash", withMessages(`{"role":"user","content":"\\\uD83Dx"}`), "", "surrogate"},

		{"no model", `{"messages":[{"role":"user","content":"hi"}]}`, "model", "required"},
		{"null model", `{"model":null,"messages":[]}`, "model", "required"},
		{"number as model", `{"model":4,"messages":[]}`, "model", "must be a string, not a number"},
		{"empty model", `{"model":"","messages":[]}`, "model", "empty"},
		{"control in model", `{"model":"a\nb","messages":[]}`, "model", "control"},
		{"long model", `{"model":"` + strings.Repeat("x", maxModel+1) + `","messages":[]}`, "model", "longer"},

		{"no messages", `{"model":"opus"}`, "messages", "required"},
		{"messages as text", `{"model":"opus","messages":"hi"}`, "messages", "must be an array, not a string"},
		{"empty messages", withMessages(``), "messages", "at least one user message"},
		{"system only", withMessages(`{"role":"system","content":"a"}`), "messages", "at least one user message"},
		{"assistant last", withMessages(`{"role":"user","content":"a"},{"role":"assistant","content":"b"}`), "messages", "prefilling"},
		{"empty last", withMessages(`{"role":"user","content":""}`), "messages", "empty"},
		{"message as text", withMessages(`{"role":"user","content":"a"},"b"`), "messages[1]", "must be an object, not a string"},
		{"null message", withMessages(`null`), "messages[0]", "not null"},
		{"no role", withMessages(`{"content":"a"}`), "messages[0].role", "required"},
		{"odd role", withMessages(`{"role":"User","content":"a"}`), "messages[0].role", `"User": use system`},
		{"role as number", withMessages(`{"role":1,"content":"a"}`), "messages[0].role", "must be a string"},
		{"no content", withMessages(`{"role":"user"}`), "messages[0].content", "required"},
		{"null content", withMessages(`{"role":"system","content":null}`), "messages[0].content", "required"},
		{"content as object", withMessages(`{"role":"user","content":{}}`), "messages[0].content", "must be a string or an array of parts, not an object"},
		{"part as text", withMessages(`{"role":"user","content":["a"]}`), "messages[0].content[0]", "must be an object"},
		{"part without type", withMessages(`{"role":"user","content":[{"text":"a"}]}`), "messages[0].content[0].type", "required"},
		{"part without text", withMessages(`{"role":"user","content":[{"type":"text"}]}`), "messages[0].content[0].text", "required"},
		{"part of a number", withMessages(`{"role":"user","content":[{"type":"text","text":1}]}`), "messages[0].content[0].text", "must be a string, not a number"},
		{"function role", withMessages(`{"role":"function","name":"f","content":"a"}`), "messages[0].role", "use tool_calls"},
		{"audio of the assistant", withMessages(`{"role":"assistant","audio":{"id":"x"}}`), "messages[0].audio", "not supported"},
		{"function call", withMessages(`{"role":"assistant","content":null,"function_call":{}}`), "messages[0].function_call", "not supported"},

		{"many", chatBody(`,"n":3`), "n", "must be 1"},
		{"n as text", chatBody(`,"n":"two"`), "n", "must be a number, not a string"},
		{"huge n", chatBody(`,"n":1e999`), "n", "number"},
		{"stream as text", chatBody(`,"stream":"yes"`), "stream", "must be a boolean"},
		{"stream options as bool", chatBody(`,"stream_options":true`), "stream_options", "must be an object"},
		{"usage as number", chatBody(`,"stream_options":{"include_usage":1}`), "stream_options.include_usage", "must be a boolean"},
		{"effort", chatBody(`,"reasoning_effort":"huge"`), "reasoning_effort", "not known"},
		{"effort as number", chatBody(`,"reasoning_effort":3`), "reasoning_effort", "must be a string"},
		{"logprobs", chatBody(`,"logprobs":true`), "logprobs", "not to be had"},
		{"audio", chatBody(`,"audio":{}`), "audio", "not supported"},
		{"modalities", chatBody(`,"modalities":["text","audio"]`), "modalities", `"audio"`},
		{"required tool", chatBody(`,"tool_choice":"required"`), "tool_choice", "cannot force"},
		{"stop as number", chatBody(`,"stop":5`), "stop", "must be a string or an array of strings, not a number"},
		{"five stops", chatBody(`,"stop":["a","b","c","d","e"]`), "stop", "at most 4"},
		{"empty stop", chatBody(`,"stop":["a",""]`), "stop[1]", "empty"},
		{"one empty stop", chatBody(`,"stop":""`), "stop", "empty"},
		{"stop with a number", chatBody(`,"stop":["a",5]`), "stop[1]", "must be a string"},
		{"tools as object", chatBody(`,"tools":{}`), "tools", "must be an array"},
		{"no tokens", chatBody(`,"max_tokens":0`), "max_tokens", "at least 1"},
		{"limit as text", chatBody(`,"max_completion_tokens":"9"`), "max_completion_tokens", "must be a number"},
		{"moderation", chatBody(`,"moderation":{}`), "moderation", "not supported"},
		{"fraction of a token", chatBody(`,"max_tokens":1.5`), "max_tokens", "must be an integer"},
		{"temperature as text", chatBody(`,"temperature":"hot"`), "temperature", "must be a number"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := DecodeChat([]byte(test.body))
			bad, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("got %v, want an *Error", err)
			}
			if bad.Status != http.StatusBadRequest || bad.Type != TypeInvalidRequest || bad.Param != test.param || !strings.Contains(bad.Message, test.says) {
				t.Errorf("got %v, want a 400 for %q that says %q", err, test.param, test.says)
			}
		})
	}
}

// TestQuoteIsShort pins that a message to the client does not grow with its request.
func TestQuoteIsShort(t *testing.T) {
	_, err := DecodeChat([]byte(withMessages(`{"role":"` + strings.Repeat("é", 100_000) + `","content":"a"}`)))
	if bad, ok := errors.AsType[*Error](err); !ok || len(bad.Message) > 300 || !strings.Contains(bad.Message, "é…") {
		t.Errorf("got %v", err)
	}
}

func FuzzDecodeChat(f *testing.F) {
	for _, body := range []string{
		"", "null", `{"model":`, chatBody(""), chatBody(`,"n":1,"stop":["a"],"tools":[{}],"stream":true`),
		withMessages(`{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"\ud83d\ude00"}]},{"role":"assistant","content":null},{"role":"user","content":"\\\u2028"}`),
		withMessages(`{"role":"user","content":"\ud83d"}`),
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := DecodeChat(body)
		if err != nil {
			bad, ok := errors.AsType[*Error](err)
			if !ok || bad.Status != http.StatusBadRequest || !json.Valid(bad.AppendJSON(nil)) {
				t.Fatalf("not a proper error: %v", err)
			}
			return
		}
		checkAccepted(t, got.Prompt)
		if plain, ok := textOf(got.Prompt); ok {
			again, err := DecodeChat(encodeChat(t, plain))
			if err != nil {
				t.Fatalf("what was accepted is refused: %v", err)
			}
			plain.Effort, plain.MaxTokens = "", 0
			if diff := cmp.Diff(plain, again.Prompt); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// checkAccepted checks what must hold of every request that is passed on.
func checkAccepted(t *testing.T, req prompt.Request) {
	t.Helper()
	if n := len(req.Messages); n == 0 || req.Messages[n-1].Role != prompt.User {
		t.Fatalf("the last message is not the user's: %+v", req.Messages)
	}
	called := map[string]bool{}
	for _, m := range req.Messages {
		for _, b := range m.Content {
			var block struct {
				ID, Name  string
				ToolUseID string `json:"tool_use_id"`
				Input     map[string]any
			}
			if b.Raw == nil {
				continue
			}
			if err := json.Unmarshal(b.Raw, &block); err != nil {
				t.Fatalf("%s is no block: %v", b.Raw, err)
			}
			switch b.Type {
			case "tool_use":
				if called[block.ID] || !plainName(block.ID) || !plainName(block.Name) || block.Input == nil || m.Role != prompt.Assistant {
					t.Fatalf("a bad call: %s", b.Raw)
				}
				called[block.ID] = true
			case "tool_result":
				if !called[block.ToolUseID] || m.Role != prompt.User {
					t.Fatalf("a result without a call: %s", b.Raw)
				}
			}
		}
	}
}

// textOf returns a request if its blocks are all text.
func textOf(req prompt.Request) (prompt.Request, bool) {
	for _, m := range req.Messages {
		for _, b := range m.Content {
			if b.Raw != nil {
				return req, false
			}
		}
	}
	return req, true
}

// encodeChat makes the body of a request for a conversation.
func encodeChat(t *testing.T, req prompt.Request) []byte {
	type part struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	type message struct {
		Role    string `json:"role"`
		Content []part `json:"content"`
	}
	messages := []message{{"system", []part{{"text", req.System}}}}
	for _, m := range req.Messages {
		encoded := message{Role: string(m.Role)}
		for _, block := range m.Content {
			encoded.Content = append(encoded.Content, part{block.Type, block.Text})
		}
		messages = append(messages, encoded)
	}
	body, err := json.Marshal(map[string]any{"model": req.Model, "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	return body
}
