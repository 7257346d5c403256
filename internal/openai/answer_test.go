package openai

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"pgregory.net/rapid"

	"ocp/internal/turn"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-update writes it anew):\n%s", path, diff)
	}
}

// finished is the end of a turn with usage as in field report 26.
var finished = turn.Finished{
	Model:      "claude-opus-4-6",
	StopReason: turn.EndTurn,
	Usage:      turn.Usage{Input: 3, CacheRead: 1000, CacheCreation: 50, Output: 7},
}

var threeDeltas = []turn.Event{
	turn.Started{},
	turn.Delta{Text: "# Hi\n"},
	turn.Delta{Text: "a <b> & \"c\" \\ \t\x00\u2028 é😀\n"},
	turn.Delta{Text: "done"},
	finished,
}

func answer(includeUsage bool) Answer {
	return Answer{ID: "chatcmpl-1", Created: time.Unix(1700000000, 0), Model: "opus", IncludeUsage: includeUsage}
}

func encode(a Answer, events ...turn.Event) []byte {
	s := NewStream(a)
	var body []byte
	for _, event := range events {
		body = s.Append(body, event)
	}
	return body
}

func TestStreamGolden(t *testing.T) {
	refused := finished
	refused.StopReason, refused.Model = turn.Refusal, ""
	failed := FromTurn(&turn.Error{Kind: turn.Upstream, Message: "the upstream broke off"})
	golden(t, "stream.sse", encode(answer(false), threeDeltas...))
	golden(t, "stream_usage.sse", encode(answer(true), threeDeltas...))
	golden(t, "stream_empty.sse", encode(answer(true), turn.Started{}, refused))
	golden(t, "stream_error.sse", failed.AppendFrame(encode(answer(true), threeDeltas[:3]...)))
}

func TestCompletionGolden(t *testing.T) {
	golden(t, "completion.json", answer(false).AppendCompletion(nil, "# Hi\n<b> & \"c\"\n", finished))
}

// TestStreamStaysShut pins that nothing is sent before there is text.
func TestStreamStaysShut(t *testing.T) {
	if got := encode(answer(false), turn.Started{}); len(got) != 0 {
		t.Errorf("Started appended %q", got)
	}
}

func TestFinishReason(t *testing.T) {
	for reason, want := range map[turn.StopReason]string{
		turn.EndTurn: "stop", turn.StopSequence: "stop", "pause_turn": "stop", "": "stop", "new": "stop",
		turn.MaxTokens: "length", turn.ContextWindow: "length", turn.Refusal: "content_filter",
	} {
		if got := finishReason(reason); got != want {
			t.Errorf("%q gives %q, want %q", reason, got, want)
		}
	}
}

func TestNewAnswer(t *testing.T) {
	req := ChatRequest{IncludeUsage: true}
	req.Prompt.Model = "opus"
	one, two := NewAnswer(req, time.Unix(5, 0)), NewAnswer(req, time.Unix(5, 0))
	if one.ID == two.ID || !strings.HasPrefix(one.ID, "chatcmpl-") || one.Model != "opus" || !one.IncludeUsage {
		t.Errorf("got %+v and %+v", one, two)
	}
}

// sdkStream reads a body with the decoder of OpenAI's Go SDK.
func sdkStream(body []byte) *ssestream.Stream[sdk.ChatCompletionChunk] {
	res := &http.Response{
		Header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}},
		Body:   io.NopCloser(bytes.NewReader(body)),
	}
	return ssestream.NewStream[sdk.ChatCompletionChunk](ssestream.NewDecoder(res), nil)
}

// TestErrorFrameEndsSDKStream pins what the end of a failed stream rests on: the SDK
// raises an error frame, and takes a stream that just ends for a good one.
func TestErrorFrameEndsSDKStream(t *testing.T) {
	begun := encode(answer(false), threeDeltas[:3]...)
	for _, test := range []struct {
		name string
		body []byte
		want string
	}{
		{"error frame", FromTurn(&turn.Error{Kind: turn.Diverged, Message: "not what was said"}).AppendFrame(begun), "not what was said"},
		{"bare end", begun, ""},
	} {
		stream := sdkStream(test.body)
		for stream.Next() {
			if reason := stream.Current().Choices[0].FinishReason; reason != "" {
				t.Errorf("%s: finish reason %q", test.name, reason)
			}
		}
		switch err := stream.Err(); {
		case err == nil && test.want != "", err != nil && (test.want == "" || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}

// TestStreamThroughSDK checks that any text arrives as it was, however it is cut.
func TestStreamThroughSDK(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOf(rapid.String()).Draw(t, "texts")
		events := []turn.Event{turn.Started{}}
		for _, text := range texts {
			events = append(events, turn.Delta{Text: text})
		}
		body := encode(answer(rapid.Bool().Draw(t, "usage")), append(events, finished)...)
		if !utf8.Valid(body) || bytes.ContainsAny(body, "\r\u0085\u2028\u2029") {
			t.Fatalf("the body has line ends of its own: %q", body)
		}
		stream := sdkStream(body)
		var acc sdk.ChatCompletionAccumulator
		for stream.Next() {
			acc.AddChunk(stream.Current())
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		if got, want := acc.Choices[0].Message.Content, strings.Join(texts, ""); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

// TestAppendString checks the encoder of strings against the standard one's decoder.
func TestAppendString(t *testing.T) {
	check := func(s string) {
		t.Helper()
		var got string
		if err := json.Unmarshal(appendString(nil, s), &got); err != nil || got != strings.ToValidUTF8(s, "\ufffd") && utf8.ValidString(s) {
			t.Errorf("%q became %q (%v)", s, got, err)
		}
	}
	for r := range rune(0x3000) {
		check("a" + string(r) + "b")
	}
	check("\xff\xed\xa0\x80é")
	if got, want := string(appendString(nil, "<&>'é\u2028\u0085")), `"<&>'é\u2028\u0085"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestModels(t *testing.T) {
	var list struct {
		Object string
		Data   []struct {
			ID, Object string
			Created    int64
			OwnedBy    string `json:"owned_by"`
		}
	}
	if err := json.Unmarshal(AppendModels(nil, DefaultModels()), &list); err != nil {
		t.Fatal(err)
	}
	if list.Object != "list" || len(list.Data) != len(DefaultModels()) {
		t.Fatalf("got %+v", list)
	}
	if m := list.Data[0]; m.ID != "opus" || m.Object != "model" || m.Created != 1767225600 || m.OwnedBy != "anthropic" {
		t.Errorf("got %+v", m)
	}
	if got := string(AppendModels(nil, nil)); got != `{"object":"list","data":[]}` {
		t.Errorf("no models are %s", got)
	}
}

// TestDeltaAllocatesNothing pins that a delta costs no allocation once the buffer has
// grown.
func TestDeltaAllocatesNothing(t *testing.T) {
	s, buf, event := NewStream(answer(true)), make([]byte, 0, 4096), turn.Event(turn.Delta{Text: "some \"text\"\n"})
	if n := testing.AllocsPerRun(100, func() { buf = s.Append(buf[:0], event) }); n != 0 {
		t.Errorf("%v allocations for each delta", n)
	}
}

func BenchmarkStreamDelta(b *testing.B) {
	text := strings.Repeat("A line of text with \"quotes\" and é.\n", 4)
	s, buf, event := NewStream(answer(false)), make([]byte, 0, 4096), turn.Event(turn.Delta{Text: text})
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		buf = s.Append(buf[:0], event)
	}
}

func BenchmarkDecodeChat(b *testing.B) {
	body := []byte(withMessages(strings.Repeat(`{"role":"user","content":"`+strings.Repeat("text\\n", 100)+`"},`, 99) + `{"role":"user","content":"a"}`))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeChat(body); err != nil {
			b.Fatal(err)
		}
	}
}
