package openai

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

// The first bytes of files, as many as are looked at.
const (
	pngHead  = "\x89PNG\r\n\x1a\n..."
	jpegHead = "\xff\xd8\xff\xe0..."
	gifHead  = "GIF89a..."
	webpHead = "RIFF\x00\x00\x00\x00WEBPVP8 "
	pdfHead  = "%PDF-1.4\n..."
)

func dataOf(media, data string) string {
	return "data:" + media + ";base64," + base64.StdEncoding.EncodeToString([]byte(data))
}

// compact is a conversation in a form that tests can compare at a glance.
func compact(t *testing.T, messages []prompt.Message) (lines []string) {
	t.Helper()
	for _, m := range messages {
		raw, err := json.Marshal(m.Content)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(m.Role)+" "+string(raw))
	}
	return lines
}

const (
	callA  = `{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}}`
	callB  = `{"id":"b","type":"function","function":{"name":"g","arguments":""}}`
	useA   = `{"id":"a","input":{"x":1},"name":"f","type":"tool_use"}`
	useB   = `{"id":"b","input":{},"name":"g","type":"tool_use"}`
	toolA  = `{"role":"tool","tool_call_id":"a","content":"one"}`
	toolB  = `{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"t"},{"type":"text","text":"wo"}]}`
	gotA   = `{"content":"one","tool_use_id":"a","type":"tool_result"}`
	gotB   = `{"content":"two","tool_use_id":"b","type":"tool_result"}`
	asks   = `{"role":"user","content":"q"},`
	called = `{"role":"assistant","content":null,"tool_calls":[`
)

func TestToolMessages(t *testing.T) {
	for _, test := range []struct {
		name     string
		messages string
		want     []string
	}{
		{
			"one call", asks + called + callA + `]},` + toolA,
			[]string{`user [{"type":"text","text":"q"}]`, `assistant [` + useA + `]`, `user [` + gotA + `]`},
		},
		{
			"results in another order, then text",
			asks + `{"role":"assistant","content":"let me see","tool_calls":[` + callA + `,` + callB + `]},` + toolB + `,` + toolA + `,{"role":"user","content":"and?"}`,
			[]string{
				`user [{"type":"text","text":"q"}]`,
				`assistant [{"type":"text","text":"let me see"},` + useA + `,` + useB + `]`,
				`user [` + gotB + `,` + gotA + `,{"type":"text","text":"and?"}]`,
			},
		},
		{
			"a system message in between", asks + called + callA + `]},{"role":"system","content":"s"},` + toolA,
			[]string{`user [{"type":"text","text":"q"}]`, `assistant [` + useA + `]`, `user [` + gotA + `]`},
		},
		{
			"ids that the upstream refuses, and one that comes again",
			asks + called + strings.Replace(callA, `"a"`, `"functions.f:0"`, 1) + `]},` + strings.Replace(toolA, `"a"`, `"functions.f:0"`, 1) + `,` +
				called + callB + `]},` + toolB + `,` + called + callB + `]},` + toolB,
			[]string{
				`user [{"type":"text","text":"q"}]`,
				`assistant [` + strings.Replace(useA, `"a"`, `"call_1"`, 1) + `]`,
				`user [` + strings.Replace(gotA, `"a"`, `"call_1"`, 1) + `]`,
				`assistant [` + useB + `]`,
				`user [` + gotB + `]`,
				`assistant [` + strings.Replace(useB, `"b"`, `"call_3"`, 1) + `]`,
				`user [` + strings.Replace(gotB, `"b"`, `"call_3"`, 1) + `]`,
			},
		},
		{
			"an empty result", asks + called + callA + `]},{"role":"tool","tool_call_id":"a","content":""}`,
			[]string{`user [{"type":"text","text":"q"}]`, `assistant [` + useA + `]`, `user [{"tool_use_id":"a","type":"tool_result"}]`},
		},
		{
			"a refusal that comes back", asks + `{"role":"assistant","content":null,"refusal":"no"},` + asks + `{"role":"assistant","content":[{"type":"refusal","refusal":"never"}]},{"role":"user","content":"q"}`,
			[]string{
				`user [{"type":"text","text":"q"}]`, `assistant [{"type":"text","text":"no"}]`, `user [{"type":"text","text":"q"}]`,
				`assistant [{"type":"text","text":"never"}]`, `user [{"type":"text","text":"q"}]`,
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := DecodeChat([]byte(withMessages(test.messages)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, compact(t, got.Prompt.Messages)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMediaParts(t *testing.T) {
	image := func(url string) string { return `{"type":"image_url","image_url":{"url":"` + url + `"}}` }
	for _, test := range []struct {
		part string
		want string // of the Messages API
	}{
		{image(dataOf("image/png", pngHead)), `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgouLi4="}}`},
		{image(dataOf("IMAGE/JPG", jpegHead)), `{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"/9j/4C4uLg=="}}`},
		{image(dataOf("image/gif", gifHead)), `{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"R0lGODlhLi4u"}}`},
		{image(dataOf("image/webp", webpHead)), `{"type":"image","source":{"type":"base64","media_type":"image/webp","data":"UklGRgAAAABXRUJQVlA4IA=="}}`},
		{`{"type":"input_image","detail":"auto","image_url":"` + dataOf("image/gif", gifHead) + `"}`, `{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"R0lGODlhLi4u"}}`},
		{
			`{"type":"file","file":{"filename":"a.pdf","file_data":"` + dataOf("application/pdf", pdfHead) + `"}}`,
			`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0xLjQKLi4u"},"title":"a.pdf"}`,
		},
		{
			`{"type":"input_file","file_data":"` + dataOf("text/plain;charset=utf-8", "a é") + `"}`,
			`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a é"}}`,
		},
	} {
		got, err := DecodeChat([]byte(withMessages(`{"role":"user","content":[` + test.part + `,{"type":"text","text":"?"}]}`)))
		if err != nil {
			t.Errorf("%s: %v", test.part, err)
			continue
		}
		want := []string{`user [` + test.want + `,{"type":"text","text":"?"}]`}
		if diff := cmp.Diff(want, compact(t, got.Prompt.Messages)); diff != "" || got.Ignored != nil {
			t.Errorf("%s: %s, ignored %q", test.part, diff, got.Ignored)
		}
	}

	detailed := strings.Replace(image(dataOf("image/png", pngHead)), `{"url"`, `{"detail":"high","url"`, 1)
	got, err := DecodeChat([]byte(withMessages(`{"role":"user","content":[` + detailed + `]}`)))
	if err != nil || cmp.Diff([]string{"image_url.detail"}, got.Ignored) != "" {
		t.Errorf("got %q, %v", got.Ignored, err)
	}
}

// bad is a request that is refused.
type bad struct {
	name  string
	body  string
	param string
	says  string
}

// refuse checks that a decoder refuses requests.
func refuse[T any](t *testing.T, decode func([]byte) (T, error), tests []bad) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := decode([]byte(test.body))
			e, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("got %v, want an *Error", err)
			}
			if e.Status != http.StatusBadRequest || e.Type != TypeInvalidRequest || e.Param != test.param || !strings.Contains(e.Message, test.says) {
				t.Errorf("got %v, want a 400 for %q that says %q", err, test.param, test.says)
			}
		})
	}
}

func TestMessagesRefused(t *testing.T) {
	content := func(part string) string { return withMessages(`{"role":"user","content":[` + part + `]}`) }
	image := func(url string) string { return content(`{"type":"image_url","image_url":{"url":"` + url + `"}}`) }
	file := func(fields string) string { return content(`{"type":"file","file":{` + fields + `}}`) }
	const (
		url  = "messages[0].content[0].image_url.url"
		data = "messages[0].content[0].file.file_data"
	)
	refuse(t, DecodeChat, []bad{
		{"result without a call", withMessages(asks + toolA), "messages[1].tool_call_id", `"a": the assistant's last message has no such tool call`},
		{"second result", withMessages(asks + called + callA + `]},` + toolA + `,` + toolA), "messages[3].tool_call_id", "has its result already"},
		{"result of another call", withMessages(asks + called + callA + `]},` + toolB), "messages[2].tool_call_id", `"b"`},
		{"call without a result", withMessages(asks + called + callA + `]},{"role":"user","content":"x"}`), "messages[1].tool_calls[0]", `"a" has no result`},
		{"one of two without a result", withMessages(asks + called + callA + `,` + callB + `]},` + toolA + `,{"role":"user","content":"x"}`), "messages[1].tool_calls[1]", `"b" has no result`},
		{"calls last", withMessages(asks + called + callA + `]}`), "messages[1].tool_calls[0]", `"a" has no result`},
		{"two calls of one id", withMessages(asks + called + callA + `,` + callA + `]},` + toolA), "messages[1].tool_calls[1]", "another call"},
		{"call without an id", withMessages(asks + called + `{"type":"function","function":{"name":"f"}}]}`), "messages[1].tool_calls[0].id", "required"},
		{"call of a custom tool", withMessages(asks + called + `{"id":"a","type":"custom","custom":{"name":"f"}}]}`), "messages[1].tool_calls[0].type", `"custom"`},
		{"call without a function", withMessages(asks + called + `{"id":"a"}]}`), "messages[1].tool_calls[0].function", "required"},
		{"odd name", withMessages(asks + called + strings.Replace(callA, `"f"`, `"f.g"`, 1) + `]},` + toolA), "messages[1].tool_calls[0].function.name", `"f.g"`},
		{"arguments that are cut", withMessages(asks + called + strings.Replace(callA, `1}`, `1`, 1) + `]},` + toolA), "messages[1].tool_calls[0]", "is not valid JSON"},
		{"arguments that are a list", withMessages(asks + called + strings.Replace(callA, `{\"x\": 1}`, `[1]`, 1) + `]},` + toolA), "messages[1].tool_calls[0]", "must be a JSON object"},
		{"result with an image", withMessages(asks + called + callA + `]},{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"x"}}]}`), "messages[2].content[0].type", `"image_url"`},
		{"result without an id", withMessages(asks + `{"role":"tool","content":"x"}`), "messages[1].tool_call_id", "required"},
		{"result without content", withMessages(asks + called + callA + `]},{"role":"tool","tool_call_id":"a"}`), "messages[2].content", "required"},

		{"image to be fetched", image("https://example.org/a.png"), url, "nothing is fetched"},
		{"image in a file", image("file:///etc/passwd"), url, "nothing is fetched"},
		{"image as a path", image("/etc/passwd"), url, "must be a data URL"},
		{"image not in base64", image("data:image/png,abc"), url, "must be a data URL in base64"},
		{"image in bad base64", image("data:image/png;base64,@@@"), url, "base64"},
		{"empty image", image("data:image/png;base64,"), url, "empty"},
		{"image of another type", image(dataOf("image/png", jpegHead)), url, "does not begin as image/png"},
		{"drawing", image(dataOf("image/svg+xml", "<svg/>")), url, "image/webp"},
		{"too large an image", image(dataOf("image/png", pngHead+strings.Repeat("x", 5<<20))), url, "the most is 5242880"},
		{"image without address", content(`{"type":"image_url"}`), "messages[0].content[0].image_url", "required"},
		{"image with an empty object", content(`{"type":"image_url","image_url":{}}`), url, "required"},
		{"uploaded image", content(`{"type":"input_image","file_id":"file-1"}`), "messages[0].content[0].file_id", "no uploaded files"},
		{"image of the assistant", withMessages(`{"role":"assistant","content":[{"type":"image_url","image_url":{"url":"x"}}]}`), "messages[0].content[0].type", "not supported in this message"},
		{"image in a system text", withMessages(`{"role":"system","content":[{"type":"image_url","image_url":{"url":"x"}}]}`), "messages[0].content[0].type", "not supported in this message"},
		{"sound", content(`{"type":"input_audio","input_audio":{"data":"","format":"wav"}}`), "messages[0].content[0].type", `"input_audio"`},

		{"uploaded file", file(`"file_id":"file-1"`), "messages[0].content[0].file.file_id", "no uploaded files"},
		{"file to be fetched", content(`{"type":"input_file","file_url":"http://x/"}`), "messages[0].content[0].file_url", "nothing is fetched"},
		{"file without data", file(`"filename":"a.pdf"`), data, "required"},
		{"file of another type", file(`"file_data":"` + dataOf("application/zip", "PK") + `"`), data, "application/pdf or text/plain"},
		{"no PDF", file(`"file_data":"` + dataOf("application/pdf", "hello") + `"`), data, "does not begin as application/pdf"},
		{"text of another encoding", file(`"file_data":"` + dataOf("text/plain", "\xff") + `"`), data, "UTF-8"},
		{"empty text", file(`"file_data":"` + dataOf("text/plain", " \n") + `"`), data, "empty"},
		{"long name", file(`"filename":"` + strings.Repeat("é", 501) + `","file_data":"` + dataOf("text/plain", "x") + `"`), data, "longer than 500"},
	})
}
