package probe

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ocp/internal/claude"
	"ocp/internal/hook"
	"ocp/internal/messagesapi"
	"ocp/internal/transcript"
	"ocp/internal/turn"
)

const (
	// thought is in the scripted model's thinking and nowhere else.
	thought = "a thought that nobody is to see"
	// linePace is the scripted model's time between two lines.
	linePace = 40 * time.Millisecond
)

// source is the scripted model's answer: all that a screen would draw in another way.
var source = "# A heading\n\nSome **bold** and *slanted* text, `code`, and a [link](https://example.org/).\n\n" +
	"```go\nfunc main() {\n\tprintln(\"naïve café\") // a tab before it\n}\n```\n\n" +
	"* one\n* two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nA family: 👨‍👩‍👧‍👦, and a lone CR:\r, and CR LF:\r\n" +
	strings.Repeat("One more line of the answer, about as long as lines are.\n", 16) + "The end, without a line feed"

func streamingProbes() []probe {
	return []probe{
		{name: "streaming", run: probeStreaming, claims: []Claim{
			{ID: "hook-fires", Relied: true, Text: "MessageDisplay is called in an interactive session", Use: "it is where every delta comes from"},
			{ID: "deltas-are-source", Relied: true, Text: "deltas are the model's Markdown, not what is drawn of it", Use: "sends them on as they are"},
			{ID: "transcript-exact", Relied: true, Text: "the transcript has the model's text, byte for byte", Use: "it is the authority that every answer is compared with"},
			{ID: "prefix-stable", Relied: true, Text: "what the deltas say is never taken back: each, in order of index, goes on with the model's text", Use: "sends each at once, since nothing sent can be recalled"},
			{ID: "deltas-complete", Relied: true, Text: "the deltas together are all of the text", Use: "tops up from the transcript what is missing"},
			{ID: "index-order", Relied: true, Text: "a message's deltas are numbered from 0, without gap or double", Use: "orders by index; calls overlap and may arrive in any order"},
			{ID: "one-message-id", Relied: true, Text: "all deltas of a message carry one message_id", Use: "tells a continuation or a second attempt by it"},
			{ID: "final-flag", Relied: true, Text: "the last delta of a message, and only that, is final", Use: "knows by it that nothing is under way any more"},
			{ID: "stop-once", Relied: true, Text: "a turn ends with one Stop", Use: "begins to verify the answer"},
			{ID: "thinking-excluded", Relied: true, Text: "no delta holds thinking, and the model did think", Use: "has nothing to filter"},
			{ID: "entrypoint", Relied: true, Text: "the CLI calls its session interactive: entrypoint cli, in the transcript and to the model", Use: "reports it, sets nothing"},
			{ID: "no-tools", Relied: true, Text: "the model is offered no tools", Use: "starts the CLI with none"},
			{ID: "request-small", Relied: true, Text: "a request of one line is below 4 KB", Use: "starts the CLI without what would make it 80 KB and more"},
			{ID: "one-request", Relied: true, Text: "the model is asked once for a turn, and for nothing else", Use: "names the session, so that no title is asked for"},
			{ID: "transcript-whole", DeadEnd: true, Text: "the transcript has nothing of an answer while the model speaks", Use: "streams from the hook"},
		}},
		{name: "incremental", run: probeIncremental(claude.HTTP, "incremental"), claims: []Claim{
			{ID: "incremental", Relied: true, Text: "a finished line is handed on while the model says nothing more (http hooks)", Use: "streams line by line"},
		}},
		{name: "incremental-command", run: probeIncremental(claude.Command, "incremental-command"), claims: []Claim{
			{ID: "incremental-command", Relied: true, Text: "a finished line is handed on while the model says nothing more (command hooks)", Use: "--hook-transport command, where a policy forbids http"},
		}},
	}
}

func probeStreaming(ctx context.Context, e *Env, dir string) (seen, error) {
	l, err := e.open(dir, messagesapi.Always(messagesapi.Answer{
		Parts: []messagesapi.Part{messagesapi.Thinking(thought, "c2lnbmF0dXJl"), messagesapi.Text(source)},
		Pace:  messagesapi.Pace{First: linePace, Between: linePace},
	}), laneOptions{keep: true})
	if err != nil {
		return nil, err
	}
	a, err := l.ask(ctx, say("Show me some Markdown."))
	if err := errors.Join(err, l.close()); err != nil {
		return nil, err
	}
	return judgeStreaming(a), nil
}

// judgeStreaming says what a turn in which the model thought and then said source proves.
// Where there is nothing to judge, it does not judge.
func judgeStreaming(a answer) seen {
	found := seen{}
	shown := named(a.calls, hook.MessageDisplay)
	found.say("hook-fires", len(shown) > 0, "%d calls%s", len(shown), because(a.failed))
	judgeDeltas(found, shown)
	judgeThinking(found, a)
	judgeEnd(found, a)
	judgeRequests(found, a)
	return found
}

func because(err error) string {
	if err == nil {
		return ""
	}
	failed, ok := errors.AsType[*turn.Error](err)
	if !ok {
		return "; " + err.Error()
	}
	return "; the turn failed: " + failed.Message
}

// joined is the deltas' text in the order of messages and indexes, each once.
func joined(shown []call) (text string, sizes []int) {
	var messages []string
	for _, c := range shown {
		if !slices.Contains(messages, c.MessageID) {
			messages = append(messages, c.MessageID)
		}
	}
	ordered := slices.Clone(shown)
	slices.SortStableFunc(ordered, func(a, b call) int {
		return cmp.Or(
			cmp.Compare(slices.Index(messages, a.MessageID), slices.Index(messages, b.MessageID)),
			cmp.Compare(a.Index, b.Index),
		)
	})
	ordered = slices.CompactFunc(ordered, func(a, b call) bool { return a.MessageID == b.MessageID && a.Index == b.Index })
	for _, c := range ordered {
		text += c.Delta
		sizes = append(sizes, len(c.Delta))
	}
	return text, sizes
}

func judgeDeltas(found seen, shown []call) {
	if len(shown) == 0 {
		for _, id := range []string{"deltas-are-source", "prefix-stable", "deltas-complete", "index-order", "one-message-id", "final-flag"} {
			found.skip(id, "no delta came")
		}
		return
	}
	text, sizes := joined(shown)
	text = strings.ReplaceAll(text, thought+"\n", "") // is judged by itself
	marks := []string{"# ", "**bold**", "```go\n", "* one\n", "](https://"}
	missing := slices.DeleteFunc(slices.Clone(marks), func(m string) bool { return strings.Contains(text, m) })
	found.say("deltas-are-source", len(missing) == 0, "%d of %d marks of Markdown are there: heading, bold, fence with its language, bullet, link", len(marks)-len(missing), len(marks))

	if len(missing) > 0 && len(text) > len(source)/2 {
		found.skip("prefix-stable", "it is another text")
		found.skip("deltas-complete", "it is another text")
	} else {
		judgeText(found, text, source, sizes)
	}
	judgeNumbering(found, shown)
}

func judgeText(found seen, text, source string, sizes []int) {
	same := commonPrefix(text, source)
	found.say("prefix-stable", same == min(len(text), len(source)) && len(text) <= len(source), "the first %d of %d bytes are the model's", same, len(text))
	if len(text) < len(source) {
		found.say("deltas-complete", false, "%d bytes, where the model has said %d", len(text), len(source))
	} else {
		found.say("deltas-complete", true, "all %d bytes in %d deltas of %s bytes", len(source), len(sizes), list(sizes))
	}
}

// judgeThinking wants the thinking in the transcript too, or there was none to leave out.
func judgeThinking(found seen, a answer) {
	recorded, shown := false, 0
	for _, r := range a.records {
		if r.Message == nil {
			continue
		}
		for _, b := range r.Message.Content {
			recorded = recorded || b.Type == "thinking" && bytes.Contains(b.Raw, []byte(thought))
		}
	}
	for _, c := range a.calls {
		if strings.Contains(c.Delta, thought) {
			shown++
		}
	}
	found.say("thinking-excluded", recorded && shown == 0, "in the transcript: %t; in deltas: %d", recorded, shown)
}

func judgeNumbering(found seen, shown []call) {
	byMessage, finals := map[string][]int{}, map[string][]int{}
	var arrival []int
	flying, final := 0, 0
	for _, c := range shown {
		byMessage[c.MessageID] = append(byMessage[c.MessageID], c.Index)
		arrival = append(arrival, c.Index)
		flying = max(flying, c.flying)
		if c.Final {
			finals[c.MessageID] = append(finals[c.MessageID], c.Index)
			final++
		}
	}
	gapless, last, highest := true, false, 0
	for id, indexes := range byMessage {
		slices.Sort(indexes)
		for i, index := range indexes {
			gapless = gapless && i == index
		}
		most := indexes[len(indexes)-1]
		highest = max(highest, most)
		last = last || slices.Equal(finals[id], []int{most})
	}
	order := "in order"
	if !slices.IsSorted(arrival) {
		order = "out of order: " + list(arrival)
	}
	found.say("index-order", gapless, "0 to %d, arrived %s, up to %d under way at once", highest, order, flying)
	found.say("one-message-id", len(byMessage) == 1, "%d for one message of the model", len(byMessage))
	found.say("final-flag", final == 1 && last, "%d final, on the last: %t", final, last)
}

func judgeEnd(found seen, a answer) {
	stops, failures := named(a.calls, hook.Stop), named(a.calls, hook.StopFailure)
	found.say("stop-once", len(stops) == 1 && len(failures) == 0, "%d Stop, %d StopFailure", len(stops), len(failures))

	recorded := textOf(a.records)
	found.say("transcript-exact", recorded == source, "%d bytes, of which the first %d are the model's %d", len(recorded), commonPrefix(recorded, source), len(source))

	var entry string
	for _, r := range a.records {
		entry = cmp.Or(r.Entrypoint, entry)
	}
	toModel := len(a.asked) > 0 && bytes.Contains(a.asked[0].Body, []byte("cc_entrypoint=cli;"))
	found.say("entrypoint", entry == "cli" && toModel, "transcript: %q; told to the model: %t", entry, toModel)

	early := 0
	for _, look := range a.looks {
		if len(a.asked) > 0 && look.at.Before(a.asked[0].LastByte()) && tells(look.data) {
			early++
		}
	}
	found.say("transcript-whole", early == 0, "%d of %d growths, looked for every %s, had text of the answer in them while it was being said", early, len(a.looks), lookEvery)
}

// tells reports whether a transcript, as far as it is written, gives text of the model's
// away.
func tells(data []byte) bool {
	return bytes.Contains(data, []byte("# A heading")) || bytes.Contains(data, []byte("One more line of the answer"))
}

// textOf is what the assistant says in records.
func textOf(records []transcript.Record) string {
	var b strings.Builder
	for _, r := range records {
		if r.Type == "assistant" && !r.IsSidechain && !r.IsAPIErrorMessage {
			b.WriteString(r.Message.Text())
		}
	}
	return b.String()
}

func judgeRequests(found seen, a answer) {
	if len(a.asked) == 0 {
		for _, id := range []string{"no-tools", "request-small", "one-request"} {
			found.say(id, false, "the model was not asked")
		}
		return
	}
	request, err := a.asked[0].Decode()
	found.say("no-tools", err == nil && len(request.Tools) == 0, "%d", len(request.Tools))
	found.say("request-small", len(a.asked[0].Body) < 4<<10, "%d bytes", len(a.asked[0].Body))
	var others []string
	for _, r := range a.all {
		if r.Turn == 0 {
			others = append(others, r.Method+" "+r.Path)
		}
	}
	// 2.1.207 looks whether the upstream is there, whatever it is told; that costs nothing.
	harmless := slices.DeleteFunc(slices.Clone(others), func(o string) bool { return strings.HasPrefix(o, "HEAD ") })
	found.say("one-request", len(a.asked) == 1 && len(harmless) == 0, "%d, and besides: %s", len(a.asked), cmp.Or(strings.Join(others, ", "), "nothing"))
}

// gatedLines is how many lines the model is let say one after the other.
const gatedLines = 6

// probeIncremental lets the model say its next line only when the one before has come.
func probeIncremental(transport claude.Transport, id string) func(context.Context, *Env, string) (seen, error) {
	return func(ctx context.Context, e *Env, dir string) (seen, error) {
		gate := messagesapi.NewGate()
		l, err := e.open(dir, messagesapi.Always(messagesapi.Answer{
			Parts: []messagesapi.Part{messagesapi.Text(strings.Repeat("Another line.\n", gatedLines))}, Gate: gate,
		}), laneOptions{transport: transport})
		if err != nil {
			return nil, err
		}
		s, err := l.prime(ctx)
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		bounded, cancel := context.WithTimeout(ctx, cmp.Or(e.gate, gateBound))
		defer cancel()
		gate.Release()
		came := 0
		a, err := l.give(bounded, s, say("Say some lines."), func(d turn.Delta) {
			if d.Text == "" {
				return
			}
			if came++; came < gatedLines {
				gate.Release()
			} else {
				gate.Open()
			}
		})
		if err = errors.Join(err, l.end(s, &a), l.close()); err != nil {
			return nil, err
		}
		found := seen{}
		found.say(id, came >= gatedLines && a.failed == nil, "%d of %d lines came before the next was said, %s behind the model%s",
			min(came, gatedLines), gatedLines, latency(a), because(a.failed))
		return found, nil
	}
}

// gateBound is how long a line that the model waits behind may take.
const gateBound = 30 * time.Second

// latency is the median time between a line's being written by the model and its being
// received from the hook.
func latency(a answer) string {
	if len(a.asked) == 0 {
		return "unknown"
	}
	var said []time.Time
	for _, e := range a.asked[0].Events() {
		if e.Name == "content_block_delta" {
			said = append(said, e.At)
		}
	}
	var took []time.Duration
	for i, d := range a.deltas {
		if i < len(said) && !d.Received.IsZero() {
			took = append(took, d.Received.Sub(said[i]))
		}
	}
	if len(took) == 0 {
		return "unknown"
	}
	slices.Sort(took)
	return about(took[len(took)/2])
}

// about is a duration to two figures at most.
func about(d time.Duration) string {
	switch abs := d.Abs(); {
	case abs < 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	case abs < time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// list is numbers with spaces between.
func list(numbers []int) string { return strings.Trim(fmt.Sprint(numbers), "[]") }
