package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/prompt"
)

// refused are requests that are not possible, with the field at fault.
var refused = []struct {
	name, body  string
	field, says string
}{
	{"no JSON", `{`, "", "not valid JSON"},
	{"an array", `[]`, "", "must be a JSON object"},
	{"half a surrogate", body(`,"system":"\ud800"`), "", "surrogate"},
	{"no model", `{"max_tokens":1,"messages":[]}`, "model", "required"},
	{"model of a wrong type", `{"model":1}`, "model", "must be a string, not a number"},
	{"no max_tokens", `{"model":"opus","messages":[]}`, "max_tokens", "required"},
	{"max_tokens of zero", strings.Replace(body(""), "100", "0", 1), "max_tokens", "at least 1"},
	{"half a token", strings.Replace(body(""), "100", "1.5", 1), "max_tokens", "an integer"},
	{"max_tokens as text", strings.Replace(body(""), "100", `"1"`, 1), "max_tokens", "must be a number, not a string"},
	{"too many tokens", strings.Replace(body(""), "100", "1e99", 1), "max_tokens", "out of range"},
	{"no messages", `{"model":"opus","max_tokens":1}`, "messages", "required"},
	{"empty messages", withMessages(""), "messages", "empty"},
	{"a message of a wrong type", withMessages(`"hi"`), "messages.0", "must be an object, not a string"},
	{"no role", withMessages(`{"content":"a"}`), "messages.0.role", "required"},
	{"unknown role", withMessages(`{"role":"tool","content":"a"}`), "messages.0.role", `is "tool": use user or assistant`},
	{"no content", withMessages(`{"role":"user"}`), "messages.0.content", "required"},
	{"content of a wrong type", withMessages(`{"role":"user","content":{}}`), "messages.0.content", "must be a string or an array of blocks, not an object"},
	{"prefill", withMessages(`{"role":"user","content":"a"},{"role":"assistant","content":"b"}`), "messages", "ends with an assistant message"},
	{"nothing asked", withMessages(`{"role":"user","content":" "}`), "messages", "empty"},
	{"only a system message", withMessages(`{"role":"system","content":"a"}`), "messages", "empty"},
	{"system of a wrong type", body(`,"system":5`), "system", "must be a string or an array of text blocks, not a number"},
	{"image as system", body(`,"system":[{"type":"image"}]`), "system.0.type", "use text"},
	{"system without text", body(`,"system":[{"type":"text"}]`), "system.0.text", "required"},

	{"no type", withBlocks(`{"text":"a"}`), "messages.0.content.0.type", "required"},
	{"unknown type", withBlocks(`{"type":"text","text":"a"},{"type":"audio"}`), "messages.0.content.1.type", `is "audio"`},
	{"block of a wrong type", withBlocks(`"a"`), "messages.0.content.0", "must be an object"},
	{"text of a wrong type", withBlocks(`{"type":"text","text":null}`), "messages.0.content.0.text", "required"},
	{"thinking of a user", withBlocks(`{"type":"thinking"}`), "messages.0.content.0.type", "use text, image"},
	{"image of the assistant", withMessages(`{"role":"assistant","content":[{"type":"image"}]}`), "messages.0.content.0.type", "use text, tool_use"},
	{"server tool", withMessages(`{"role":"assistant","content":[{"type":"server_tool_use"}]}`), "messages.0.content.0.type", "server_tool_use"},
	{"image by address", withBlocks(`{"type":"image","source":{"type":"url","url":"http://x"}}`), "messages.0.content.0.source.type", "nothing is fetched"},
	{"image without source", withBlocks(`{"type":"image"}`), "messages.0.content.0.source", "required"},
	{"image of an unknown type", withBlocks(`{"type":"image","source":{"type":"base64","media_type":"image/tiff","data":""}}`), "messages.0.content.0.source.media_type", "image/tiff"},
	{"image of another type", withBlocks(imagePNG + gif + `"}}`), "messages.0.content.0.source.data", "image/png"},
	{"image that is no base64", withBlocks(imagePNG + `data:x"}}`), "messages.0.content.0.source.data", "base64"},
	{"image without data", withBlocks(imagePNG + `"}}`), "messages.0.content.0.source.data", "is empty"},
	{"too large an image", withBlocks(imagePNG + base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n"+strings.Repeat("x", 5<<20))) + `"}}`), "messages.0.content.0.source.data", "the most is 5242880"},
	{"document that is no PDF", withBlocks(`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + png + `"}}`), "messages.0.content.0.source.data", "application/pdf"},
	{"document of an image", withBlocks(`{"type":"document","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}}`), "messages.0.content.0.source.media_type", "use application/pdf"},
	{"document from a file", withBlocks(`{"type":"document","source":{"type":"file","file_id":"x"}}`), "messages.0.content.0.source.type", "nothing is fetched"},
	{"empty document", withBlocks(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"\n"}}`), "messages.0.content.0.source.data", "white space"},
	{"document of nothing", withBlocks(`{"type":"document","source":{"type":"content","content":[]}}`), "messages.0.content.0.source.content", "is empty"},
	{"document in a document", withBlocks(`{"type":"document","source":{"type":"content","content":[{"type":"document"}]}}`), "messages.0.content.0.source.content.0.type", "use text or image"},
	{"long title", withBlocks(`{"type":"document","title":"` + strings.Repeat("x", 501) + `"}`), "messages.0.content.0.title", "500"},

	{"result without a call", withBlocks(toolResult("t1", "")), "messages.0.content.0.tool_use_id", `"t1"`},
	{"second result", withMessages(toolCall("t1") + `,{"role":"user","content":[` + toolResult("t1", "") + `,` + toolResult("t1", "") + `]}`), "messages.1.content.1.tool_use_id", `"t1"`},
	{"call without a result", withMessages(toolCall("t1", "t2") + `,{"role":"user","content":[` + toolResult("t1", "") + `]}`), "messages.0", `"t2"`},
	{"late result", withMessages(toolCall("t1") + `,{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":[` + toolResult("t1", "") + `]}`), "messages.0", `"t1"`},
	{"doubled call", withMessages(toolCall("t1", "t1")), "messages.0.content.1.id", "unique"},
	{"odd id", withMessages(toolCall("t 1")), "messages.0.content.0.id", "must match"},
	{"call without a name", withMessages(`{"role":"assistant","content":[{"type":"tool_use","id":"a","input":{}}]}`), "messages.0.content.0.name", "required"},
	{"call without input", withMessages(`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f"}]}`), "messages.0.content.0.input", "required"},
	{"input of a wrong type", withMessages(`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":"x"}]}`), "messages.0.content.0.input", "must be an object"},
	{"result in a result", withMessages(toolCall("t1") + `,{"role":"user","content":[` + toolResult("t1", `,"content":[`+toolResult("t2", "")+`]`) + `]}`), "messages.1.content.0.content.0.type", "tool_result"},

	{"any tool", body(`,"tool_choice":{"type":"any"}`), "tool_choice", "cannot be forced"},
	{"one tool", body(`,"tool_choice":{"type":"tool","name":"f"}`), "tool_choice", "cannot be forced"},
	{"unknown choice", body(`,"tool_choice":{"type":"x"}`), "tool_choice.type", "use auto, none, any or tool"},
	{"choice as text", body(`,"tool_choice":"auto"`), "tool_choice", "must be an object"},
	{"tools as an object", body(`,"tools":{}`), "tools", "must be an array"},
	{"nameless tool", body(`,"tools":[{"name":"a","input_schema":{}},{}]`), "tools.1.name", "required"},
	{"oddly named tool", body(`,"tools":[{"name":"a.b","input_schema":{}}]`), "tools.0.name", "must match"},
	{"doubled tool", body(`,"tools":[{"name":"a","input_schema":{}},{"name":"a","input_schema":{}}]`), "tools.1.name", "another tool"},
	{"tool without a schema", body(`,"tools":[{"name":"a"}]`), "tools.0.input_schema", "required"},
	{"schema of a wrong type", body(`,"tools":[{"name":"a","input_schema":{"type":"array"}}]`), "tools.0.input_schema", "type object"},
	{"schema with a choice", body(`,"tools":[{"name":"a","input_schema":{"type":"object","anyOf":[]}}]`), "tools.0.input_schema", "anyOf"},
	{"schema with an odd property", body(`,"tools":[{"name":"a","input_schema":{"type":"object","properties":{"ü":{}}}}]`), "tools.0.input_schema", "property"},
	{"tool of the upstream", body(`,"tools":[{"type":"web_search_20250305","name":"web_search"}]`), "tools.0.type", "use custom"},
	{"odd wish for one call", body(`,"tool_choice":{"type":"auto","disable_parallel_tool_use":1}`), "tool_choice.disable_parallel_tool_use", "must be a boolean"},
	{"stop as text", body(`,"stop_sequences":"a"`), "stop_sequences", "must be an array, not a string"},
	{"blank stop", body(`,"stop_sequences":["a","\n"]`), "stop_sequences.1", "white space"},
	{"stop of a wrong type", body(`,"stop_sequences":[5]`), "stop_sequences.0", "must be a string"},
	{"stream of a wrong type", body(`,"stream":"yes"`), "stream", "must be a boolean"},
	{"thinking of an unknown type", body(`,"thinking":{"type":"x"}`), "thinking.type", "use enabled"},
	{"no budget", body(`,"thinking":{"type":"enabled"}`), "thinking.budget_tokens", "required"},
	{"small budget", body(`,"thinking":{"type":"enabled","budget_tokens":1023}`), "thinking.budget_tokens", "at least 1024"},
	{"budget over max_tokens", body(`,"thinking":{"type":"enabled","budget_tokens":1024}`), "thinking.budget_tokens", "less than max_tokens"},
	{"unknown effort", body(`,"output_config":{"effort":"least"}`), "output_config.effort", `is "least": use low`},
	{"output format", body(`,"output_config":{"format":{"type":"json_schema"}}`), "output_config.format", "not supported"},
	{"temperature as text", body(`,"temperature":"hot"`), "temperature", "must be a number"},
	{"top_k of a half", body(`,"top_k":0.5`), "top_k", "an integer"},
	{"container", body(`,"container":"x"`), "container", "not supported"},
}

func TestDecodeRefuses(t *testing.T) {
	for _, test := range refused {
		t.Run(test.name, func(t *testing.T) {
			_, err := DecodeMessages([]byte(test.body))
			bad, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("got %v, want an *Error", err)
			}
			if bad.Status != http.StatusBadRequest || bad.Type != TypeInvalidRequest || bad.Field != test.field || !strings.Contains(bad.Message, test.says) {
				t.Errorf("got %v, want a 400 for %q that says %q", err, test.field, test.says)
			}
		})
	}
}

func TestIgnoredIsBounded(t *testing.T) {
	var more strings.Builder
	for i := range 1000 {
		more.WriteString(`,"` + strings.Repeat("x", i) + `":1`)
	}
	got, err := DecodeMessages([]byte(body(more.String())))
	if err != nil || len(got.Ignored) > maxIgnored+1 {
		t.Errorf("%d names (%v)", len(got.Ignored), err)
	}
}

func TestDecodeCount(t *testing.T) {
	count := func(body string) int {
		t.Helper()
		n, err := DecodeCount([]byte(body))
		if err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		return n
	}
	const least = `{"model":"opus","messages":[{"role":"user","content":"hi"}]}`
	with := func(more string) string { return strings.TrimSuffix(least, "}") + more + "}" }
	n := count(least)
	if n < 1 || n > 20 {
		t.Errorf("a word is %d tokens", n)
	}
	for name, body := range map[string]string{
		"system":   with(`,"system":"be brief"`),
		"tools":    with(`,"tools":[{"name":"f","input_schema":{"type":"object"}}]`),
		"messages": strings.Replace(least, `]}`, `,{"role":"assistant","content":"yo"}]}`, 1), // a prefill may be counted
		"text":     strings.Replace(least, "hi", "hi there, how are you?", 1),
	} {
		if got := count(body); got <= n {
			t.Errorf("with more %s it is %d, which is no more than %d", name, got, n)
		}
	}
	image := count(strings.Replace(withBlocks(imagePNG+png+`"}}`), `"max_tokens":100,`, "", 1))
	larger := count(withBlocks(imagePNG + base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n"+strings.Repeat("x", 1<<20))) + `"}}`))
	if image != larger || image < 1600 || image > 1700 {
		t.Errorf("images are %d and %d tokens", image, larger)
	}
	_, err := DecodeCount([]byte(`{"model":"opus"}`))
	if bad, ok := errors.AsType[*Error](err); !ok || bad.Field != "messages" {
		t.Errorf("got %v", err)
	}
}

// TestDecodeCountChecks checks that a count refuses in a field what a message does.
func TestDecodeCountChecks(t *testing.T) {
	for fields, field := range map[string]string{
		`,"max_tokens":"many"`:          "max_tokens",
		`,"max_tokens":0`:               "max_tokens",
		`,"stream":"yes"`:               "stream",
		`,"stop_sequences":"END"`:       "stop_sequences",
		`,"stop_sequences":[" "]`:       "stop_sequences.0",
		`,"temperature":"hot"`:          "temperature",
		`,"thinking":{"type":"x"}`:      "thinking.type",
		`,"output_config":{"effort":1}`: "output_config.effort",
	} {
		_, err := DecodeCount([]byte(`{"model":"opus","messages":[{"role":"user","content":"hi"}]` + fields + `}`))
		if bad, ok := errors.AsType[*Error](err); !ok || bad.Field != field {
			t.Errorf("%s: got %v", fields, err)
		}
	}
}

func FuzzDecodeMessages(f *testing.F) {
	for _, body := range []string{
		"", "null", `{"model":`, body(`,"system":"s","stop_sequences":["a"],"tools":[{"name":"a"}],"stream":true,"thinking":{"type":"adaptive"}`),
		withBlocks(`{"type":"text","text":"\ud83d\ude00"},` + imagePNG + png + `"}},{"type":"document","source":{"type":"content","content":"a"}}`),
		withMessages(toolCall("t1") + `,{"role":"user","content":[` + toolResult("t1", `,"content":[{"type":"text","text":"r"}]`) + `]}`),
		withMessages(`{"role":"user","content":"\ud83d"}`),
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := DecodeMessages(body)
		if n, countErr := DecodeCount(body); err == nil && (countErr != nil || n < 1) {
			t.Fatalf("%d tokens in what was accepted (%v)", n, countErr)
		}
		if err != nil {
			bad, ok := errors.AsType[*Error](err)
			if !ok || bad.Status != http.StatusBadRequest || !json.Valid(bad.AppendJSON(nil)) {
				t.Fatalf("not a proper error: %v", err)
			}
			return
		}
		encoded, err := json.Marshal(map[string]any{
			"model": got.Prompt.Model, "max_tokens": got.Prompt.MaxTokens, "system": got.Prompt.System, "messages": wireMessages(got.Prompt.Messages),
		})
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeMessages(encoded)
		if err != nil {
			t.Fatalf("what was accepted is refused: %v", err)
		}
		want := got.Prompt
		want.Effort = ""
		if diff := cmp.Diff(want, again.Prompt); diff != "" {
			t.Fatal(diff)
		}
	})
}

// wireMessages is a conversation as this API takes it.
func wireMessages(messages []prompt.Message) []map[string]any {
	var list []map[string]any
	for _, m := range messages {
		list = append(list, map[string]any{"role": m.Role, "content": m.Content})
	}
	return list
}
