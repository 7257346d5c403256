package anthropic

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

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"
	"github.com/google/go-cmp/cmp"
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

var answer = Answer{ID: "msg_1", Model: "opus"}

func encode(events ...turn.Event) []byte {
	s := NewStream(answer)
	var body []byte
	for _, event := range events {
		body = s.Append(body, event)
	}
	return body
}

// atStop is the end of a turn that was cut at a stop sequence.
var atStop = turn.Finished{
	StopReason: turn.StopSequence, StopSequence: "\n\nEND",
	Usage: turn.Usage{Input: 12, Output: 4, Estimated: true},
}

func TestStreamGolden(t *testing.T) {
	refused := finished
	refused.StopReason, refused.Model = turn.Refusal, ""
	failed := FromTurn(&turn.Error{Kind: turn.Upstream, Message: "the upstream broke off"})
	failed.RequestID = "req_1"
	golden(t, "stream.sse", encode(threeDeltas...))
	golden(t, "stream_empty.sse", encode(turn.Started{}, turn.Delta{}, refused))
	golden(t, "stream_stop.sse", encode(threeDeltas[0], threeDeltas[1], atStop))
	golden(t, "stream_error.sse", failed.AppendFrame(encode(threeDeltas[:3]...)))
}

func TestMessageGolden(t *testing.T) {
	golden(t, "message.json", answer.AppendMessage(nil, "# Hi\n<b> & \"c\"\n", finished))
	golden(t, "message_empty.json", answer.AppendMessage(nil, "", atStop))
}

// TestStreamStaysShut pins that nothing is sent before there is text.
func TestStreamStaysShut(t *testing.T) {
	if got := encode(turn.Started{}, turn.Delta{}); len(got) != 0 {
		t.Errorf("appended %q", got)
	}
}

func TestNewAnswer(t *testing.T) {
	one, two := NewAnswer(hi), NewAnswer(hi)
	if one.ID == two.ID || !strings.HasPrefix(one.ID, "msg_") || one.Model != "opus" {
		t.Errorf("got %+v and %+v", one, two)
	}
}

// sdkStream reads a body with the decoder of Anthropic's Go SDK.
func sdkStream(body []byte) *ssestream.Stream[sdk.MessageStreamEventUnion] {
	res := &http.Response{
		Header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}},
		Body:   io.NopCloser(bytes.NewReader(body)),
	}
	return ssestream.NewStream[sdk.MessageStreamEventUnion](ssestream.NewDecoder(res), nil)
}

// TestStreamThroughSDK checks that any text arrives as it was, however it is cut.
func TestStreamThroughSDK(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOf(rapid.String()).Draw(t, "texts")
		events := []turn.Event{turn.Started{}}
		for _, text := range texts {
			events = append(events, turn.Delta{Text: text})
		}
		body := encode(append(events, finished)...)
		if !utf8.Valid(body) || bytes.ContainsAny(body, "\r\u0085\u2028\u2029") {
			t.Fatalf("the body has line ends of its own: %q", body)
		}
		stream := sdkStream(body)
		var message sdk.Message
		for stream.Next() {
			if err := message.Accumulate(stream.Current()); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, block := range message.Content {
			got += block.Text
		}
		if want := strings.Join(texts, ""); got != want || (want == "") != (len(message.Content) == 0) {
			t.Fatalf("got %q in %d blocks, want %q", got, len(message.Content), want)
		}
		u := message.Usage
		if u.InputTokens != 3 || u.CacheReadInputTokens != 1000 || u.CacheCreationInputTokens != 50 || u.OutputTokens != 7 || message.StopReason != "end_turn" {
			t.Fatalf("got %s", message.RawJSON())
		}
	})
}

// TestErrorEndsSDKStream pins that the SDK raises the error of a stream.
func TestErrorEndsSDKStream(t *testing.T) {
	body := FromTurn(&turn.Error{Kind: turn.Diverged, Message: "not what was said"}).AppendFrame(encode(threeDeltas[:3]...))
	stream := sdkStream(body)
	for stream.Next() {
		if kind := stream.Current().Type; kind == "message_stop" || kind == "message_delta" {
			t.Errorf("got a %s", kind)
		}
	}
	if err := stream.Err(); err == nil || !strings.Contains(err.Error(), "not what was said") {
		t.Errorf("got %v", err)
	}
}

// TestDeltaAllocatesNothing pins that a delta costs no allocation once the buffer has
// grown.
func TestDeltaAllocatesNothing(t *testing.T) {
	s, buf, event := NewStream(answer), make([]byte, 0, 4096), turn.Event(turn.Delta{Text: "some \"text\"\n"})
	if n := testing.AllocsPerRun(100, func() { buf = s.Append(buf[:0], event) }); n != 0 {
		t.Errorf("%v allocations for each delta", n)
	}
}

func TestFromTurn(t *testing.T) {
	for kind, want := range map[turn.Kind]struct {
		status int
		kind   string
	}{
		turn.Authentication: {401, "authentication_error"},
		turn.Permission:     {403, "permission_error"},
		turn.RateLimited:    {429, "rate_limit_error"},
		turn.Overloaded:     {529, "overloaded_error"},
		turn.Upstream:       {502, "api_error"},
		turn.InvalidRequest: {400, "invalid_request_error"},
		turn.ContextLength:  {400, "invalid_request_error"},
		turn.TooLarge:       {413, "request_too_large"},
		turn.ModelNotFound:  {404, "not_found_error"},
		turn.Timeout:        {504, "timeout_error"},
		turn.SessionFailed:  {502, "api_error"},
		turn.Diverged:       {502, "api_error"},
		turn.Unverified:     {502, "api_error"},
		turn.Shutdown:       {503, "api_error"},
		turn.Canceled:       {499, "invalid_request_error"},
		"a new one":         {502, "api_error"},
	} {
		got := FromTurn(&turn.Error{Kind: kind, Message: "why", RetryAfter: time.Second})
		if got.Status != want.status || got.Type != want.kind || !strings.Contains(got.Message, "why") || got.RetryAfter != time.Second {
			t.Errorf("%s became %+v", kind, got)
		}
		if FromTurn(&turn.Error{Kind: kind}).Message == "" {
			t.Errorf("%s has no message", kind)
		}
	}
	if len(failures) != 15 {
		t.Errorf("%d kinds are mapped", len(failures))
	}
	for _, message := range []string{"the prompt is too long for the model", "prompt is too long: 5 tokens > 4 maximum", ""} {
		if got := FromTurn(&turn.Error{Kind: turn.ContextLength, Message: message}).Message; !strings.HasPrefix(got, "prompt is too long: ") || strings.Count(got, "prompt is too long: ") != 1 {
			t.Errorf("got %q", got)
		}
	}
}

func TestErrorEnvelope(t *testing.T) {
	e := &Error{Type: TypeInvalidRequest, Field: "messages.0", Message: "is \"bad\"", RequestID: "req_1"}
	if got, want := string(e.AppendJSON(nil)), `{"type":"error","error":{"type":"invalid_request_error","message":"messages.0: is \"bad\""},"request_id":"req_1"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := string(FromStatus(404, "no").AppendJSON(nil)), `{"type":"error","error":{"type":"not_found_error","message":"no"},"request_id":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestModels(t *testing.T) {
	var page struct {
		Data []struct {
			Type, ID, DisplayName string
			CreatedAt             time.Time `json:"created_at"`
		}
		HasMore bool    `json:"has_more"`
		FirstID *string `json:"first_id"`
		LastID  *string `json:"last_id"`
	}
	if err := json.Unmarshal(AppendModels(nil, []string{"a", "b"}, time.Unix(5, 0)), &page); err != nil {
		t.Fatal(err)
	}
	if len(page.Data) != 2 || page.Data[1].ID != "b" || page.Data[1].Type != "model" || page.Data[0].CreatedAt.Unix() != 5 || *page.FirstID != "a" || *page.LastID != "b" {
		t.Errorf("got %+v", page)
	}
	if got := string(AppendModels(nil, nil, time.Time{})); got != `{"data":[],"has_more":false,"first_id":null,"last_id":null}` {
		t.Errorf("no models are %s", got)
	}
}

func BenchmarkStreamDelta(b *testing.B) {
	text := strings.Repeat("A line of text with \"quotes\" and é.\n", 4)
	s, buf, event := NewStream(answer), make([]byte, 0, 4096), turn.Event(turn.Delta{Text: text})
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		buf = s.Append(buf[:0], event)
	}
}

func BenchmarkDecodeMessages(b *testing.B) {
	body := []byte(withMessages(strings.Repeat(`{"role":"user","content":"`+strings.Repeat("text\\n", 100)+`"},`, 99) + `{"role":"user","content":"a"}`))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeMessages(body); err != nil {
			b.Fatal(err)
		}
	}
}
