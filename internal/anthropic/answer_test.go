package anthropic

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"ocp/internal/dialecttest"
	"ocp/internal/turn"
)

var (
	finished    = dialecttest.Finished()
	threeDeltas = dialecttest.ThreeDeltas()
)

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
	dialecttest.Golden(t, "stream.sse", encode(threeDeltas...))
	dialecttest.Golden(t, "stream_empty.sse", encode(turn.Started{}, turn.Delta{}, refused))
	dialecttest.Golden(t, "stream_stop.sse", encode(threeDeltas[0], threeDeltas[1], atStop))
	dialecttest.Golden(t, "stream_error.sse", failed.AppendFrame(encode(threeDeltas[:3]...)))
}

func TestMessageGolden(t *testing.T) {
	dialecttest.Golden(t, "message.json", answer.AppendMessage(nil, "# Hi\n<b> & \"c\"\n", finished))
	dialecttest.Golden(t, "message_empty.json", answer.AppendMessage(nil, "", atStop))
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
