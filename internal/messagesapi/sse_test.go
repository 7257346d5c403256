package messagesapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"pgregory.net/rapid"
)

// wantStream is the body of the answer in TestStreamBytes.
const wantStream = `event: message_start
data: {"type":"message_start","message":{"id":"msg_x","type":"message","role":"assistant","model":"m-1","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"cache_creation_input_tokens":4,"cache_read_input_tokens":3,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"<b>\u0000\u2028"}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"ä👍🏽"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":":1}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":"END"},"usage":{"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

`

// TestStreamBytes pins the body of a stream to the byte.
func TestStreamBytes(t *testing.T) {
	answer := Answer{
		Parts: []Part{
			Thinking("hm", "sig"), Chunks("<b>\x00\u2028", "ä👍🏽"), Text(""),
			{Type: "tool_use", ID: "toolu_1", Name: "Bash", Input: []byte(`{"a":1}`), Split: ByRunes(4)},
		},
		StopReason: "stop_sequence", StopSequence: "END",
		Usage:     Usage{Input: 1, Output: 2, CacheRead: 3, CacheCreation: 4},
		ID:        "msg_x",
		PingEvery: 3,
	}
	s, client := start(t, Options{Script: Always(answer)})
	response := post(t, bound(t), client, s.URL(), streamed)
	if diff := cmp.Diff(wantStream, readAll(t, response.Body)); diff != "" {
		t.Error(diff)
	}
	if kind := response.Header.Get("Content-Type"); kind != "text/event-stream; charset=utf-8" {
		t.Errorf("Content-Type %q", kind)
	}
}

// TestForeignClient reads a stream with an SSE client that is not ours.
func TestForeignClient(t *testing.T) {
	scenario, _ := FindScenario("emoji-bytes")
	s, client := start(t, Options{Script: scenario.Script})
	decoder := ssestream.NewDecoder(post(t, bound(t), client, s.URL(), streamed))
	var g got
	for decoder.Next() {
		e := decoder.Event()
		g.names = append(g.names, e.Type)
		if err := g.apply(e.Type, strings.TrimSpace(string(e.Data))); err != nil {
			t.Fatal(err)
		}
	}
	if err := decoder.Err(); err != nil {
		t.Fatal(err)
	}
	if g.text() != scenario.Text || !g.stopped {
		t.Errorf("%q, want %q", g.text(), scenario.Text)
	}
}

// anySplit cuts text at arbitrary code points.
func anySplit(t *rapid.T, text string) []string {
	var chunks []string
	for rest := []rune(text); len(rest) > 0; {
		n := rapid.IntRange(1, len(rest)).Draw(t, "chunk")
		chunks = append(chunks, string(rest[:n]))
		rest = rest[n:]
	}
	return chunks
}

func anyPart(t *rapid.T) Part {
	text := rapid.StringOf(rapid.OneOf(
		rapid.Rune(), rapid.SampledFrom([]rune("\r\n\x00\x1b\u2028\ufeff\u200d👨🏽\u0301\"\\<&")),
	)).Draw(t, "text")
	var p Part
	switch rapid.SampledFrom([]string{"text", "thinking", "tool_use", "chunks"}).Draw(t, "type") {
	case "text":
		p = Text(text)
	case "thinking":
		p = Thinking(text, rapid.SampledFrom([]string{"", "c2ln"}).Draw(t, "signature"))
	case "tool_use":
		p = ToolUse("toolu_1", "Bash", string(encode(map[string]string{"command": text})))
	default:
		return Chunks(anySplit(t, text)...)
	}
	p.Split = rapid.SampledFrom([]Split{nil, Whole, ByLine, ByCodePoint, ByRunes(3)}).Draw(t, "split")
	return p
}

// TestStreamProperty: whatever the cutting, the stream decodes to its blocks, and
// takes as many steps as Steps says.
func TestStreamProperty(t *testing.T) {
	s, client := start(t, Options{})
	ctx := bound(t)
	rapid.Check(t, func(t *rapid.T) {
		answer := Answer{
			Parts:      rapid.SliceOfN(rapid.Custom(anyPart), 0, 4).Draw(t, "parts"),
			StopReason: rapid.SampledFrom([]string{"end_turn", "max_tokens", "refusal", "odd"}).Draw(t, "stop"),
			Split:      rapid.SampledFrom([]Split{nil, Whole, ByRunes(2)}).Draw(t, "split"),
			PingEvery:  rapid.IntRange(0, 3).Draw(t, "ping"),
			WriteSizes: rapid.SliceOfN(rapid.IntRange(1, 40), 0, 3).Draw(t, "writes"),
			Coalesce:   rapid.Bool().Draw(t, "coalesce"),
			Usage:      Usage{Output: rapid.IntRange(1, 99).Draw(t, "output")},
		}
		s.SetScript(Always(answer))
		response, err := tryPost(ctx, client, s.URL(), streamed)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		g, err := newStreamReader(response.Body).all()
		if err != nil {
			t.Fatal(err)
		}
		want := make([]Part, len(answer.Parts))
		for i, p := range answer.Parts {
			p.Split = nil
			want[i] = p
		}
		if diff := cmp.Diff(want, append([]Part{}, g.parts...)); diff != "" {
			t.Fatal(diff)
		}
		if !g.stopped || g.stopReason != answer.StopReason || g.usage["output_tokens"] != answer.Usage.Output || g.model != "m-1" {
			t.Fatalf("%+v", g)
		}
		steps := 0
		for _, name := range g.names {
			if name == "content_block_delta" || name == "message_delta" {
				steps++
			}
		}
		if steps != answer.Steps() {
			t.Fatalf("%d steps, said %d", steps, answer.Steps())
		}
	})
}

// TestSplits: what a Split gives back, joined, is the text.
func TestSplits(t *testing.T) {
	for _, c := range []struct {
		name  string
		split Split
		text  string
		want  []string
	}{
		{"whole", Whole, "a\nb", []string{"a\nb"}},
		{"whole of nothing", Whole, "", nil},
		{"lines", ByLine, "a\r\n\nb", []string{"a\r\n", "\n", "b"}},
		{"lines, ended", ByLine, "a\n", []string{"a\n"}},
		{"lines of nothing", ByLine, "", []string{}},
		{"code points", ByCodePoint, "a👍🏽", []string{"a", "👍", "🏽"}},
		{"pairs", ByRunes(2), "äöüßx", []string{"äö", "üß", "x"}},
		{"pairs of nothing", ByRunes(2), "", nil},
		{"n below one", ByRunes(0), "ab", []string{"a", "b"}},
	} {
		if diff := cmp.Diff(c.want, c.split(c.text)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// writes records what is written between flushes.
type writes struct {
	header http.Header
	list   []string
	held   string
}

func (w *writes) Header() http.Header         { return w.header }
func (w *writes) WriteHeader(int)             {}
func (w *writes) Write(b []byte) (int, error) { w.held += string(b); return len(b), nil }
func (w *writes) Flush()                      { w.list, w.held = append(w.list, w.held), "" }

// TestWriteSizes: each write has the next size of the cycle, or ends its event.
func TestWriteSizes(t *testing.T) {
	var events []string
	for _, e := range (Answer{StopReason: "x"}).events() {
		events = append(events, string(e.bytes()))
	}
	for _, sizes := range [][]int{nil, {1}, {3, 50, 7}} {
		w := &writes{header: http.Header{}}
		answer := Answer{StopReason: "x", WriteSizes: sizes}
		if err := deliver(t.Context(), newWire(w, &Recorded{}), answer, true); err != nil {
			t.Fatal(err)
		}
		want := []string{""} // the header
		next := 0
		for _, e := range events {
			for e != "" {
				n := len(e)
				if len(sizes) > 0 {
					n = min(n, sizes[next%len(sizes)])
					next++
				}
				want = append(want, e[:n])
				e = e[n:]
			}
		}
		if diff := cmp.Diff(want, w.list); diff != "" {
			t.Errorf("%v: %s", sizes, diff)
		}
	}
}
