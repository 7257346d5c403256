package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/dialecttest"
	"ocp/internal/prompt"
	"ocp/internal/turn"
)

// withInput makes a responses request of the given input and fields.
func withInput(input, fields string) string {
	return `{"model":"opus","input":` + input + fields + `}`
}

func TestDecodeResponses(t *testing.T) {
	conversation := func(system string, messages ...prompt.Message) prompt.Request {
		return prompt.Request{Model: "opus", Conversation: prompt.Conversation{System: system, Messages: messages}}
	}
	limited := conversation("", user("hi"))
	limited.MaxTokens, limited.Effort = 50, "low"
	for _, test := range []struct {
		name    string
		body    string
		want    prompt.Request
		ignored []string
	}{
		{"text", withInput(`"hi"`, ``), conversation("", user("hi")), nil},
		{"instructions", withInput(`[{"role":"developer","content":"b"},{"role":"user","content":"hi"}]`, `,"instructions":"a"`), conversation("a\n\nb", user("hi")), nil},
		{
			"a conversation", withInput(`[{"role":"user","content":"a"},{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"b","annotations":[]},{"type":"refusal","refusal":"c"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"d"}]}]`, ``),
			conversation("", user("a"), assistant("b", "c"), user("d")), nil,
		},
		{"limit and effort", withInput(`"hi"`, `,"max_output_tokens":50,"reasoning":{"effort":"minimal","summary":null}`), limited, nil},
		{
			"without effect", withInput(`[{"type":"reasoning","summary":[]},{"role":"user","content":"hi"}]`, `,"reasoning":{"summary":"auto"},"text":{"verbosity":"low"},"store":true,"include":[],"temperature":1,"stop":"x"`),
			conversation("", user("hi")),
			[]string{"include", "input.reasoning", "reasoning.summary", "stop", "store", "temperature", "text.verbosity"},
		},
		{"nulls", withInput(`"hi"`, `,"previous_response_id":null,"conversation":null,"text":null,"reasoning":null,"instructions":null,"store":false,"background":false`), conversation("", user("hi")), nil},
	} {
		got, err := DecodeResponses([]byte(test.body))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if diff := cmp.Diff(test.want, got.Prompt) + cmp.Diff(test.ignored, got.Ignored); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}

	got, err := DecodeResponses([]byte(withInput(`[{"role":"user","content":"q"},{"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":1}"},{"type":"function_call","call_id":"b","name":"g","arguments":""},
		{"type":"function_call_output","call_id":"b","output":[{"type":"input_text","text":"two"}]},{"type":"function_call_output","call_id":"a","output":"one"}]`, ``)))
	want := []string{`user [{"type":"text","text":"q"}]`, `assistant [` + useA + `,` + useB + `]`, `user [` + gotB + `,` + gotA + `]`}
	if diff := cmp.Diff(want, compact(t, got.Prompt.Messages)); err != nil || diff != "" {
		t.Errorf("calls: %v %s", err, diff)
	}
}

func TestDecodeResponsesRefuses(t *testing.T) {
	refuse(t, DecodeResponses, []bad{
		{"no input", `{"model":"opus"}`, "input", "required"},
		{"no model", `{"input":"hi"}`, "model", "required"},
		{"empty text", withInput(`""`, ``), "input", "empty"},
		{"no items", withInput(`[]`, ``), "input", "at least one"},
		{"input as number", withInput(`1`, ``), "input", "must be a string or an array of items"},
		{"item as text", withInput(`["a"]`, ``), "input[0]", "must be an object"},
		{"no role", withInput(`[{"content":"a"}]`, ``), "input[0].role", "required"},
		{"odd role", withInput(`[{"role":"tool","content":"a"}]`, ``), "input[0].role", `"tool"`},
		{"assistant last", withInput(`[{"role":"assistant","content":"a"}]`, ``), "input", "prefilling"},
		{"image elsewhere", withInput(`[{"role":"user","content":[{"type":"input_image","image_url":"https://x/"}]}]`, ``), "input[0].content[0].image_url", "nothing is fetched"},
		{"reference", withInput(`[{"type":"item_reference","id":"x"}]`, ``), "input[0]", "nothing is kept"},
		{"other item", withInput(`[{"type":"web_search_call"}]`, ``), "input[0].type", `"web_search_call"`},
		{"output without a call", withInput(`[{"type":"function_call_output","call_id":"x","output":"a"}]`, ``), "input[0].call_id", "no such tool call"},
		{"call without an output", withInput(`[{"type":"function_call","call_id":"x","name":"f","arguments":"{}"},{"role":"user","content":"a"}]`, ``), "input[0]", "has no result"},
		{"second call before the first output's sibling", withInput(`[{"type":"function_call","call_id":"x","name":"f"},{"type":"function_call","call_id":"y","name":"f"},{"type":"function_call_output","call_id":"x","output":"a"},{"type":"function_call","call_id":"z","name":"f"}]`, ``), "input[1]", `"y" has no result`},
		{"call without a name", withInput(`[{"type":"function_call","call_id":"x"}]`, ``), "input[0].name", "required"},
		{"output without a text", withInput(`[{"type":"function_call","call_id":"x","name":"f"},{"type":"function_call_output","call_id":"x"}]`, ``), "input[1].output", "required"},
		{"instructions as array", withInput(`"hi"`, `,"instructions":["a"]`), "instructions", "must be a string"},
		{"previous response", withInput(`"hi"`, `,"previous_response_id":"resp_1"`), "previous_response_id", "nothing is kept"},
		{"conversation", withInput(`"hi"`, `,"conversation":{"id":"c"}`), "conversation", "nothing is kept"},
		{"background", withInput(`"hi"`, `,"background":true`), "background", "not to be had"},
		{"template", withInput(`"hi"`, `,"prompt":{"id":"p"}`), "prompt", "not supported"},
		{"effort", withInput(`"hi"`, `,"reasoning":{"effort":"huge"}`), "reasoning.effort", "not known"},
		{"reasoning as text", withInput(`"hi"`, `,"reasoning":"high"`), "reasoning", "must be an object"},
		{"limit", withInput(`"hi"`, `,"max_output_tokens":0`), "max_output_tokens", "at least 1"},
		{"format", withInput(`"hi"`, `,"text":{"format":{"type":"json_schema","name":"x","schema":{"type":"x"}}}`), "text.format.schema", "cannot be used"},
		{"format without a name", withInput(`"hi"`, `,"text":{"format":{"type":"json_schema","schema":{}}}`), "text.format.name", "required"},
		{"metadata", withInput(`"hi"`, `,"metadata":{"a":1}`), "metadata.a", "must be a string"},
		{"much metadata", withInput(`"hi"`, `,"metadata":{`+strings.TrimSuffix(strings.Repeat(`"a":"",`, 0)+`"a":"","b":"","c":"","d":"","e":"","f":"","g":"","h":"","i":"","j":"","k":"","l":"","m":"","n":"","o":"","p":"","q":""`, ",")+`}`), "metadata", "at most 16"},
		{"forced tool", withInput(`"hi"`, `,"tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"function","name":"f"}`), "tool_choice", "cannot force"},
		{"stream as text", withInput(`"hi"`, `,"stream":"yes"`), "stream", "must be a boolean"},
	})
}

func response(t *testing.T, fields string) Response {
	t.Helper()
	req, err := DecodeResponses([]byte(withInput(`"hi"`, fields)))
	if err != nil {
		t.Fatal(err)
	}
	r := NewResponse(req, time.Unix(1700000000, 0))
	if !strings.HasPrefix(r.ID, "resp_") || !strings.HasPrefix(r.ItemID, "msg_") {
		t.Errorf("the ids are %s and %s", r.ID, r.ItemID)
	}
	r.ID, r.ItemID = "resp_1", "msg_1"
	return r
}

func encodeResponse(r Response, events ...turn.Event) []byte {
	s := NewResponseStream(r)
	var body []byte
	for _, event := range events {
		body = s.Append(body, event)
	}
	return body
}

func TestResponseGolden(t *testing.T) {
	plain := response(t, `,"instructions":"be\u2028brief","max_output_tokens":50,"metadata":{"k":"a\n b"},"reasoning":{"effort":"high"}`)
	dialecttest.Golden(t, "response.json", plain.Append(nil, "# Hi\n", finished))
	dialecttest.Golden(t, "response.sse", encodeResponse(plain, threeDeltas...))

	limited := finished
	limited.StopReason = turn.MaxTokens
	dialecttest.Golden(t, "response_incomplete.sse", encodeResponse(plain, turn.Delta{Text: "one "}, limited))

	stopped := turn.Finished{StopReason: turn.StopSequence, Usage: turn.Usage{Input: 5, Output: 5, Estimated: true}}
	dialecttest.Golden(t, "response_uncounted.json", plain.Append(nil, "one ", stopped))

	checked := response(t, `,"text":{"format":{"type":"json_schema", "name":"x", "schema":{"type":"object"}}}`)
	dialecttest.Golden(t, "response_json.sse", encodeResponse(checked, turn.Delta{Text: "{\"a\":"}, turn.Delta{Text: "1}\n"}, finished))
	dialecttest.Golden(t, "response_refusal.sse", encodeResponse(checked, turn.Delta{Text: "No."}, finished))
	dialecttest.Golden(t, "response_refusal.json", checked.Append(nil, "No.", finished))

	s := NewResponseStream(plain)
	body := s.Append(nil, turn.Delta{Text: "half"})
	dialecttest.Golden(t, "response_failed.sse", s.AppendFailure(body, FromTurn(&turn.Error{Kind: turn.Upstream, Message: "the upstream broke off"})))
}

// TestResponseFramesAreWhole checks that each frame is one event of valid JSON with the
// next number, also if the client's own JSON is odd.
func TestResponseFramesAreWhole(t *testing.T) {
	r := response(t, ",\"instructions\":\"a\u2028\u0085b\",\"metadata\":{\n\"k\" :\r\n \"v\u2029\"}")
	body := string(encodeResponse(r, threeDeltas...))
	if strings.ContainsAny(body, "\r\u0085\u2028\u2029") {
		t.Errorf("the body has line ends of its own: %q", body)
	}
	frames := strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n")
	for i, frame := range frames {
		name, data, ok := strings.Cut(frame, "\n")
		var event struct {
			Type           string
			SequenceNumber int `json:"sequence_number"`
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), &event); err != nil || !ok || name != "event: "+event.Type || event.SequenceNumber != i {
			t.Errorf("frame %d: %v in %q", i, err, frame)
		}
	}
}

// TestResponseDeltaAllocatesLittle pins that a delta costs nothing but the growth of the
// text that the end repeats.
func TestResponseDeltaAllocatesLittle(t *testing.T) {
	s, buf, event := NewResponseStream(response(t, "")), make([]byte, 0, 4096), turn.Event(turn.Delta{Text: "some \"text\"\n"})
	s.text.Grow(1 << 20)
	buf = s.Append(buf, event)
	if n := testing.AllocsPerRun(100, func() { buf = s.Append(buf[:0], event) }); n != 0 {
		t.Errorf("%v allocations for each delta", n)
	}
}

func FuzzDecodeResponses(f *testing.F) {
	for _, body := range []string{
		"", "null", `{"model":`, withInput(`"hi"`, `,"text":{"format":{"type":"json_object"}},"reasoning":{"effort":"low"}`),
		withInput(`[{"role":"user","content":[{"type":"input_image","image_url":"data:image/gif;base64,R0lGODlh"}]},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"x"}]`, `,"metadata":{"a":"b"}`),
		withInput(`[{"type":"reasoning"},{"type":"item_reference"}]`, `,"tools":[{"type":"function","name":"f"}],"tool_choice":"auto"`),
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := DecodeResponses(body)
		if err != nil {
			bad, ok := errors.AsType[*Error](err)
			if !ok || bad.Status != http.StatusBadRequest || !json.Valid(bad.AppendJSON(nil)) {
				t.Fatalf("not a proper error: %v", err)
			}
			return
		}
		checkAccepted(t, req.Prompt)
		for _, name := range req.Ignored {
			if strings.ContainsAny(name, "\r\n,") {
				t.Fatalf("%q cannot stand in a header", name)
			}
		}
		if whole := NewResponse(req, time.Unix(5, 0)).Append(nil, "x", finished); !json.Valid(whole) {
			t.Fatalf("not JSON: %s", whole)
		}
	})
}
