package turn

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ocp/internal/hook"
)

var pieces = rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "line\n", "\n", "é", "👩‍👧\n", "  ", "\r\n", "end"}), 0, 6)

// drawMessage draws a message and how the hook cuts it.
func drawMessage(t *rapid.T, id, stop string) said {
	s := said{id: id, stop: stop, deltas: pieces.Draw(t, "deltas")}
	if len(s.deltas) == 0 {
		s.deltas = []string{"x"}
	}
	text := strings.Join(s.deltas, "")
	cut := rapid.IntRange(0, len(text)).Draw(t, "cut")
	s.blocks = []string{text[:cut], text[cut:]}
	return s
}

// interleave merges lists at random, each in its own order.
func interleave(t *rapid.T, lists ...[]any) []any {
	var merged []any
	for {
		lists = slices.DeleteFunc(lists, func(l []any) bool { return len(l) == 0 })
		if len(lists) == 0 {
			return merged
		}
		i := rapid.IntRange(0, len(lists)-1).Draw(t, "from")
		merged = append(merged, lists[i][0])
		lists[i] = lists[i][1:]
	}
}

// disorder draws a permutation of a message's fires, some doubled, some lost.
func disorder(t *rapid.T, fires []hook.Event, lossy bool) []any {
	var calls []hook.Event
	for _, f := range fires {
		least := 1
		if lossy {
			least = 0
		}
		for range rapid.IntRange(least, 2).Draw(t, "copies") {
			calls = append(calls, f)
		}
	}
	return each(rapid.Permutation(calls).Draw(t, "order"))
}

// lastBlock is what Stop says: the last block that has text.
func lastBlock(s said) string {
	for _, b := range slices.Backward(s.blocks) {
		if b != "" {
			return b
		}
	}
	return ""
}

// One message, hook calls lost, doubled and in any order, Stop and the records at any
// time: always the exact text.
func TestOneMessageIsAlwaysExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMessage(t, "msg_1", "end_turn")
		calls := disorder(t, m.fires(), rapid.Bool().Draw(t, "lossy"))
		inputs := interleave(t, calls, []any{stopHook(lastBlock(m))}, append(each(m.records()), endRecord))
		r := newRun().feed(inputs...)
		if r.err != nil || r.finished == nil || r.text.String() != m.text() {
			t.Fatalf("got %q, finished %v, error %v; want %q", r.text.String(), r.finished != nil, r.err, m.text())
		}
	})
}

// Two messages whose fires may mix in any way: the exact text or an error, never
// another text; and what was sent is always a beginning of the exact text, or of a
// message that came first and did not stand.
func TestTwoMessagesAreExactOrFail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawMessage(t, "msg_a", rapid.SampledFrom([]string{"max_tokens", "tool_use"}).Draw(t, "stop"))
		b := drawMessage(t, "msg_b", "end_turn")
		joint := "\n\n"
		if a.text() == "" || b.text() == "" || a.stop == "max_tokens" {
			joint = ""
		}
		want := a.text() + joint + b.text()
		replaced := rapid.Bool().Draw(t, "replaced")
		records := append(each(a.records()), each(b.records())...)
		if replaced {
			want, records = b.text(), each(b.records())
		}
		lossy := rapid.Bool().Draw(t, "lossy")
		last := lastBlock(b)
		inputs := interleave(t, disorder(t, a.fires(), lossy), disorder(t, b.fires(), lossy),
			[]any{stopHook(last)}, append(records, endRecord))
		r := newRun().feed(inputs...)
		if (r.finished == nil) == (r.err == nil) {
			t.Fatalf("the turn is neither finished nor failed, or both: %v, %v", r.finished, r.err)
		}
		if r.finished != nil && r.text.String() != want {
			t.Fatalf("finished with %q, want %q", r.text.String(), want)
		}
	})
}

// As the CLI sends them, one message after the other, two messages never fail.
func TestTwoMessagesInSequenceAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawMessage(t, "msg_a", "max_tokens")
		b := drawMessage(t, "msg_b", "end_turn")
		calls := append(disorder(t, a.fires(), false), disorder(t, b.fires(), false)...)
		inputs := interleave(t, append(calls, stopHook(lastBlock(b))), slices.Concat(each(a.records()), []any{metaUser}, each(b.records()), []any{endRecord}))
		r := newRun().feed(inputs...)
		if want := a.text() + b.text(); r.finished == nil || r.text.String() != want {
			t.Fatalf("got %q, error %v; want %q", r.text.String(), r.err, want)
		}
	})
}

// A turn whose client set the token limit is the message that reached it, however the
// CLI's continuation mixes with its end.
func TestLimitedTurnIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawMessage(t, "msg_a", "max_tokens")
		b := drawMessage(t, "msg_b", "end_turn")
		calls := append(disorder(t, a.fires(), false), disorder(t, b.fires(), false)...)
		records := each(a.records())
		if rapid.Bool().Draw(t, "as 2.1.332 does") {
			records = append(records, metaUser)
		}
		records = append(append(records, each(b.records())...), endRecord)
		inputs := interleave(t, append(calls, stopHook(lastBlock(b))), records)
		r := newLimitedRun().feed(inputs...)
		if r.finished == nil || r.text.String() != a.text() || r.finished.StopReason != MaxTokens || r.finished.Usage.Output != 7 {
			t.Fatalf("got %q, %+v, error %v; want %q", r.text.String(), r.finished, r.err, a.text())
		}
	})
}

// Whatever is lost and however two messages mix, a limited turn is that one message or
// an error. (A message of several records could end after one of them, if all of its own
// hook calls were lost and the continuation's had that record's very text.)
func TestLimitedTurnIsExactOrFails(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawMessage(t, "msg_a", "max_tokens")
		b := drawMessage(t, "msg_b", "max_tokens")
		a.blocks = []string{a.text()}
		inputs := interleave(t, disorder(t, a.fires(), true), disorder(t, b.fires(), true),
			append(append(each(a.records()), each(b.records())...), endRecord))
		r := newLimitedRun().feed(append(inputs, "quiet")...)
		if (r.finished == nil) == (r.err == nil) {
			t.Fatalf("the turn is neither finished nor failed, or both: %v, %v", r.finished, r.err)
		}
		if r.finished != nil && r.text.String() != a.text() {
			t.Fatalf("finished with %q, want %q", r.text.String(), a.text())
		}
	})
}
