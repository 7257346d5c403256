package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"ocp/internal/messagesapi"
)

// Every line is at the client before the model is allowed to say the next one. The CLI
// hands on whole lines only, so what follows the last line feed comes at the end.
func TestDeltasArriveWhileTheModelSpeaks(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		lines := []string{"one\n", "\n", "two: **three** ✅\n", "\tfour\n", strings.Repeat("five ", 400) + "\n", "six\n"}
		const tail = "and no line feed"
		gate := messagesapi.NewGate()
		p := startProxy(t, c, proxyOptions{script: messagesapi.Always(messagesapi.Answer{
			Parts: []messagesapi.Part{messagesapi.Chunks(append(lines, tail)...)}, Gate: gate,
		})})
		gate.Release() // the header comes with the first text
		s := p.stream(withPatience(t), user("go"))
		said := ""
		for i, line := range lines {
			if i > 0 {
				gate.Release()
			}
			said += line
			for s.text.String() != said {
				if delta, more := s.next(); !more {
					t.Fatalf("the stream ended before line %d: %v", i, s.Err())
				} else if !strings.HasPrefix(said, s.text.String()) {
					t.Fatalf("delta %q at line %d", delta, i)
				}
			}
			if p.model.Turns()[0].Outcome() != messagesapi.Pending {
				t.Fatalf("the model had ended at line %d", i)
			}
		}
		gate.Open()
		if got := s.mustReadAll(t); got != said+tail {
			t.Error(difference(got, said+tail))
		}
		if len(s.deltas) < len(lines) {
			t.Errorf("%d deltas for %d lines", len(s.deltas), len(lines))
		}
	})
}

// A long answer flows: it is not kept until its end.
func TestLongAnswerFlows(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		big, _ := messagesapi.FindScenario("big")
		lines := messagesapi.ByLine(big.Text)
		gate := messagesapi.NewGate()
		p := startProxy(t, c, proxyOptions{ahead: true, script: messagesapi.Always(messagesapi.Answer{
			Parts: []messagesapi.Part{messagesapi.Chunks(lines...)}, Gate: gate,
		})})
		for range len(lines) / 2 {
			gate.Release()
		}
		s := p.stream(withPatience(t), user("go"))
		half := strings.Join(lines[:len(lines)/2], "")
		for s.text.Len() < len(half) {
			if _, more := s.next(); !more {
				t.Fatalf("the stream ended after %d bytes: %v", s.text.Len(), s.Err())
			}
		}
		if got := s.text.String(); got != half {
			t.Fatal(difference(got, half))
		}
		gate.Open()
		if got := s.mustReadAll(t); got != big.Text {
			t.Error(difference(got, big.Text))
		}
		t.Logf("%d lines in %d deltas", len(lines), len(s.deltas))
	})
}

// Headers and frames are what clients and what stands between expect.
func TestStreamShape(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{script: messagesapi.Always(messagesapi.Answer{
			Parts: []messagesapi.Part{messagesapi.Text("one\ntwo\nthree\n")},
			Usage: messagesapi.Usage{Input: 3, Output: 7},
			Pace:  messagesapi.Pace{Between: 150 * time.Millisecond},
		})})
		for _, usage := range []bool{false, true} {
			t.Run(fmt.Sprintf("usage=%v", usage), func(t *testing.T) {
				x, err := p.open(withPatience(t), true, "go", map[string]any{"stream_options": map[string]bool{"include_usage": usage}})
				if err != nil {
					t.Fatal(err)
				}
				defer x.close()
				if err := x.readAll(); err != nil {
					t.Fatal(err)
				}
				if err := x.exact("one\ntwo\nthree\n"); err != nil {
					t.Fatal(err)
				}
				for name, want := range map[string]string{
					"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache", "X-Accel-Buffering": "no",
				} {
					if got := x.header.Get(name); got != want {
						t.Errorf("%s: %q, want %q", name, got, want)
					}
				}
				checkChunks(t, x.chunks, usage)
			})
		}
	})
}

func checkChunks(t *testing.T, chunks []chunk, usage bool) {
	t.Helper()
	if usage {
		last := chunks[len(chunks)-1]
		if string(last.Choices) != "[]" || len(last.Usage) == 0 || string(last.Usage) == "null" {
			t.Errorf("last chunk: choices %s, usage %s", last.Choices, last.Usage)
		}
		chunks = chunks[:len(chunks)-1]
	}
	for i, c := range chunks {
		var choices []choice
		if err := json.Unmarshal(c.Choices, &choices); err != nil || len(choices) != 1 {
			t.Fatalf("chunk %d: choices %s", i, c.Choices)
		}
		if finished := choices[0].FinishReason != nil; finished != (i == len(chunks)-1) {
			t.Errorf("chunk %d of %d: choices %s", i, len(chunks), c.Choices)
		}
		if len(c.Usage) > 0 && string(c.Usage) != "null" {
			t.Errorf("chunk %d: usage %s", i, c.Usage)
		}
	}
}

// A silent model does not make a silent stream, and comments stand between frames only.
func TestKeepAlive(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		gate := messagesapi.NewGate()
		p := startProxy(t, c, proxyOptions{
			args:   []string{"--keep-alive", "200ms"},
			script: messagesapi.Always(messagesapi.Answer{Parts: []messagesapi.Part{messagesapi.Text("one\ntwo\n")}, Gate: gate}),
		})
		x, err := p.open(withPatience(t), true, "go", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer x.close()
		for _, said := range []string{"", "one\n"} {
			for comments := 0; comments < 3 || x.text != said; {
				line, err := x.line()
				if err != nil {
					t.Fatalf("after %q: %v", x.text, err)
				}
				if line == ": keep-alive" {
					comments++
				}
			}
			gate.Release()
		}
		gate.Open()
		if err := x.readAll(); err != nil {
			t.Fatal(err)
		}
		if err := x.exact("one\ntwo\n"); err != nil {
			t.Error(err)
		}
		for frame := range strings.SplitSeq(strings.TrimSuffix(x.raw.String(), "\n\n"), "\n\n") {
			if strings.Count(frame, "\n") > 0 || !strings.HasPrefix(frame, "data: ") && frame != ": keep-alive" {
				t.Errorf("frame %q", frame)
			}
		}
	})
}

// Usage, finish_reason and model are those of the transcript.
func TestUsageAndModel(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		const served = "claude-sonnet-4-6-20990101"
		p := startProxy(t, c, proxyOptions{script: messagesapi.Always(messagesapi.Answer{
			Parts: []messagesapi.Part{messagesapi.Text("one\ntwo")}, Model: served,
			Usage: messagesapi.Usage{Input: 3, Output: 7, CacheRead: 1000, CacheCreation: 50},
		})})
		s := p.stream(withPatience(t), user("go"))
		s.mustReadAll(t)
		whole, err := p.complete(withPatience(t), user("go"))
		if err != nil {
			t.Fatal(err)
		}
		for mode, got := range map[string]struct {
			prompt, cached, completion, total int64
			finish, model                     string
		}{
			"streamed": {
				s.usage.PromptTokens, s.usage.PromptTokensDetails.CachedTokens, s.usage.CompletionTokens,
				s.usage.TotalTokens, s.finish, s.model,
			},
			"not streamed": {
				whole.Usage.PromptTokens, whole.Usage.PromptTokensDetails.CachedTokens, whole.Usage.CompletionTokens,
				whole.Usage.TotalTokens, whole.Choices[0].FinishReason, whole.Model,
			},
		} {
			if got.prompt != 1053 || got.cached != 1000 || got.completion != 7 || got.total != 1060 || got.finish != "stop" || got.model != served {
				t.Errorf("%s: %+v", mode, got)
			}
		}
	})
}

// A continuation after the token limit is one answer with one end, and the usage of both
// messages is counted.
func TestContinuationAfterMaxTokens(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		once, _ := messagesapi.FindScenario("max-tokens-once")
		p := startProxy(t, c, proxyOptions{script: func(r *messagesapi.Recorded) messagesapi.Answer {
			a := once.Script(r)
			a.Usage = messagesapi.Usage{Input: 3, Output: 7, CacheRead: 1000, CacheCreation: 50}
			// At once, and on busy cores, the second message's hook call can overtake the
			// first one's: see TestMessagesOvertakeEachOther.
			a.Pace.First = 300 * time.Millisecond
			return a
		}})
		s := p.stream(withPatience(t), user("go"))
		if got := s.mustReadAll(t); got != once.Text {
			t.Errorf("streamed: %s", difference(got, once.Text))
		}
		if s.finish != "stop" || s.usage.PromptTokens != 2*1053 || s.usage.CompletionTokens != 2*7 {
			t.Errorf("streamed: finish_reason %q, usage %+v", s.finish, s.usage)
		}
		whole, err := p.complete(withPatience(t), user("go"))
		if err != nil {
			t.Fatal(err)
		}
		if got := whole.Choices[0]; got.Message.Content != once.Text || got.FinishReason != "stop" || whole.Usage.PromptTokens != 2*1053 {
			t.Errorf("not streamed: %q, finish_reason %q, usage %+v", got.Message.Content, got.FinishReason, whole.Usage)
		}
	})
}
