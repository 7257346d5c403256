package openai

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"ocp/internal/dialecttest"
	"ocp/internal/turn"
)

var (
	finished    = dialecttest.Finished()
	threeDeltas = dialecttest.ThreeDeltas()
)

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
	dialecttest.Golden(t, "stream.sse", encode(answer(false), threeDeltas...))
	dialecttest.Golden(t, "stream_usage.sse", encode(answer(true), threeDeltas...))
	dialecttest.Golden(t, "stream_empty.sse", encode(answer(true), turn.Started{}, refused))
	dialecttest.Golden(t, "stream_error.sse", failed.AppendFrame(encode(answer(true), threeDeltas[:3]...)))
}

func TestCompletionGolden(t *testing.T) {
	dialecttest.Golden(t, "completion.json", answer(false).AppendCompletion(nil, "# Hi\n<b> & \"c\"\n", finished))
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
	ids := []string{"opus", "some/model"}
	if err := json.Unmarshal(AppendModels(nil, ids), &list); err != nil {
		t.Fatal(err)
	}
	if list.Object != "list" || len(list.Data) != len(ids) || list.Data[1].ID != ids[1] {
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
