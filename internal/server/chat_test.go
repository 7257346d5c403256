package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"ocp/internal/admission"
	"ocp/internal/prompt"
	"ocp/internal/turn"
)

var finished = turn.Finished{
	Model:      "claude-opus-4-6",
	StopReason: turn.EndTurn,
	Usage:      turn.Usage{Input: 3, CacheRead: 1000, CacheCreation: 50, Output: 7},
}

var oneSlot = admission.Options{Slots: 1, Queue: 1}

func (r *rig) sdk() *sdk.Client {
	client := sdk.NewClient(option.WithBaseURL(r.url+"/v1"), option.WithAPIKey("x"), option.WithHTTPClient(r.client), option.WithMaxRetries(0))
	return &client
}

func TestSDKCompletion(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	go func() {
		s := <-r.backend.started
		s.say(turn.Started{}, turn.Delta{Text: "Hel"}, turn.Delta{Text: "lo\n"}, finished)
	}()
	got, err := r.sdk().Chat.Completions.New(t.Context(), sdk.ChatCompletionNewParams{
		Model:    "opus",
		Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage("hi")},
	})
	if err != nil {
		t.Fatal(err)
	}
	choice := got.Choices[0]
	if choice.Message.Content != "Hello\n" || choice.FinishReason != "stop" || got.Model != "claude-opus-4-6" {
		t.Errorf("got %s", got.RawJSON())
	}
	u := got.Usage
	if u.PromptTokens != 1053 || u.CompletionTokens != 7 || u.TotalTokens != 1060 || u.PromptTokensDetails.CachedTokens != 1000 {
		t.Errorf("usage is %s", u.RawJSON())
	}
	r.wantFree()
}

func TestSDKStream(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	request := make(chan prompt.Request, 1)
	go func() {
		s := <-r.backend.started
		request <- s.request
		s.say(turn.Started{}, turn.Delta{Text: "Hel"}, turn.Delta{Text: "lo\n"}, finished)
	}()
	stream := r.sdk().Chat.Completions.NewStreaming(t.Context(), sdk.ChatCompletionNewParams{
		Model:         "opus",
		Messages:      []sdk.ChatCompletionMessageParamUnion{sdk.SystemMessage("be brief"), sdk.UserMessage("hi")},
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
	})
	var acc sdk.ChatCompletionAccumulator
	for stream.Next() {
		acc.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if got := acc.Choices[0]; got.Message.Content != "Hello\n" || got.FinishReason != "stop" || acc.Usage.TotalTokens != 1060 {
		t.Errorf("got %+v", acc.ChatCompletion)
	}
	want := prompt.Request{Model: "opus", Conversation: prompt.Conversation{
		System:   "be brief",
		Messages: []prompt.Message{{Role: prompt.User, Content: []prompt.Block{prompt.Text("hi")}}},
	}}
	if diff := cmp.Diff(want, <-request); diff != "" {
		t.Error(diff)
	}
	r.wantFree()
}

// TestStreamIsNotBuffered lets the backend go on only when the client has what came
// before.
func TestStreamIsNotBuffered(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	response := make(chan *http.Response, 1)
	go func() {
		res, err := r.post(t.Context(), streamedBody)
		if err != nil {
			t.Error(err)
		}
		response <- res
	}()
	s := <-r.backend.started
	s.say(turn.Started{}, turn.Delta{Text: "delta 0"})
	res := <-response
	defer res.Body.Close()
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache", "X-Accel-Buffering": "no",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	f := readFrames(t, res)
	f.next() // the role
	for i := range 5 {
		if got, want := f.text(), fmt.Sprintf("delta %d", i); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		s.say(turn.Delta{Text: fmt.Sprintf("delta %d", i+1)})
	}
	f.text()
	s.say(finished)
	if got := f.next(); !strings.Contains(got, `"finish_reason":"stop"`) {
		t.Errorf("finish is %q", got)
	}
	if got := f.next() + f.next(); got != "data: [DONE]" {
		t.Errorf("the end is %q", got)
	}
}

// TestSlotIsHeldUntilClosed checks that the client has its whole answer while the
// session is still being closed, and that the slot is not lent meanwhile.
func TestSlotIsHeldUntilClosed(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	r.backend.hold = true
	got := r.send(t.Context(), streamedBody)
	s := <-r.backend.started
	s.say(turn.Delta{Text: "a"}, finished)
	if got := <-got; got.err != nil || !strings.HasSuffix(got.body, "data: [DONE]\n\n") {
		t.Errorf("got %+v", got)
	}
	<-s.closing
	if got := r.gate.Stats().Running; got != 1 {
		t.Errorf("%d slots are held, want 1", got)
	}
	close(s.hold)
	r.wantFree()
}

func TestClientGone(t *testing.T) {
	for _, test := range []struct {
		name   string
		body   string
		events []turn.Event
	}{
		{"mid-stream", streamedBody, []turn.Event{turn.Started{}, turn.Delta{Text: "a"}}},
		{"before a delta", streamedBody, nil},
		{"not streamed", wholeBody, []turn.Event{turn.Delta{Text: "a"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := start(t, Options{}, oneSlot)
			ctx, cancel := context.WithCancel(t.Context())
			got := r.send(ctx, test.body)
			s := <-r.backend.started
			s.say(test.events...)
			<-s.waiting
			cancel()
			if got := <-got; !errors.Is(got.err, context.Canceled) {
				t.Errorf("got %+v", got)
			}
			<-s.closing
			r.wantFree()
			r.wantLine("turn", "canceled")
		})
	}
}

func TestClientGoneWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := startPiped(t, Options{}, oneSlot)
		release, err := r.gate.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		got := r.send(ctx, streamedBody)
		synctest.Wait()
		if got, want := r.gate.Stats(), (admission.Stats{Running: 1, Waiting: 1}); got != want {
			t.Errorf("the gate has %+v, want %+v", got, want)
		}
		cancel()
		<-got
		r.wantLine("turn", "canceled")
		release()
		r.wantFree()
	})
}

func TestErrorBeforeFirstByte(t *testing.T) {
	limited := &turn.Error{Kind: turn.RateLimited, Message: "limit reached", RetryAfter: 1500 * time.Millisecond}
	for name, body := range map[string]string{"streamed": streamedBody, "whole": wholeBody} {
		t.Run(name, func(t *testing.T) {
			r := start(t, Options{}, oneSlot)
			got := r.send(t.Context(), body)
			s := <-r.backend.started
			s.say(turn.Started{})
			s.steps <- step{err: fmt.Errorf("turn: %w", limited)}
			reply := <-got
			wantError(t, reply, http.StatusTooManyRequests, "rate_limit_exceeded", "")
			if after := reply.header.Get("Retry-After"); after != "2" {
				t.Errorf("Retry-After is %q, want 2", after)
			}
			r.wantLine("turn", "rate_limited")
			r.wantFree()

			r.backend.start = func(context.Context) error { return errors.New("no such file: /secret/path") }
			reply = <-r.send(t.Context(), body)
			wantError(t, reply, http.StatusBadGateway, "session_failed", "")
			if strings.Contains(reply.body, "/secret") {
				t.Errorf("the cause got out: %s", reply.body)
			}
			if line := r.wantLine("turn", "session_failed"); !strings.Contains(line["err"].(string), "/secret/path") {
				t.Errorf("the cause is not logged: %v", line)
			}
			r.wantFree()
		})
	}
}

func TestErrorAfterFirstByte(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	for body, check := range map[string]func(reply){
		streamedBody: func(got reply) {
			frames := strings.Split(strings.TrimSuffix(got.body, "\n\n"), "\n\n")
			e := decodeEnvelope(t, strings.TrimPrefix(frames[len(frames)-1], "data: "))
			if got.status != http.StatusOK || e.Error.Code != "diverged" || strings.Contains(got.body, "[DONE]") || strings.Contains(got.body, `"stop"`) {
				t.Errorf("got %d %s", got.status, got.body)
			}
		},
		wholeBody: func(got reply) {
			wantError(t, got, http.StatusBadGateway, "diverged", "")
			if strings.Contains(got.body, "half") {
				t.Errorf("half the answer got out: %s", got.body)
			}
		},
	} {
		got := r.send(t.Context(), body)
		s := <-r.backend.started
		s.say(turn.Delta{Text: "half"})
		s.steps <- step{err: &turn.Error{Kind: turn.Diverged, Message: "not what was said"}}
		check(<-got)
		r.wantLine("turn", "diverged")
		r.wantFree()
	}
}

// TestErrorFrameReachesSDK checks that the SDK gives its user an error.
func TestErrorFrameReachesSDK(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	go func() {
		s := <-r.backend.started
		s.say(turn.Delta{Text: "half"})
		s.steps <- step{err: &turn.Error{Kind: turn.Upstream, Message: "it broke off"}}
	}()
	stream := r.sdk().Chat.Completions.NewStreaming(t.Context(), sdk.ChatCompletionNewParams{
		Model: "opus", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage("hi")},
	})
	for stream.Next() {
	}
	if err := stream.Err(); err == nil || !strings.Contains(err.Error(), "it broke off") {
		t.Errorf("got %v", err)
	}
}

func TestQueueFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := startPiped(t, Options{}, oneSlot)
		first := r.send(t.Context(), streamedBody)
		s := <-r.backend.started
		second := r.send(t.Context(), wholeBody)
		synctest.Wait()

		for _, body := range []string{streamedBody, wholeBody} {
			third := <-r.send(t.Context(), body)
			wantError(t, third, http.StatusTooManyRequests, "queue_full", "")
			if third.header.Get("Retry-After") != "1" {
				t.Errorf("the headers are %v", third.header)
			}
			r.wantLine("turn", "refused")
		}
		s.say(finished)
		<-first
		(<-r.backend.started).say(finished)
		if got := <-second; got.status != http.StatusOK {
			t.Errorf("the second got %+v", got)
		}
		r.wantFree()
	})
}

// TestFailuresGiveSlotsBack pins that failing turns cost nothing for good.
func TestFailuresGiveSlotsBack(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	for i := range 60 {
		r.backend.start = nil
		if i%3 == 0 {
			r.backend.start = func(context.Context) error { return &turn.Error{Kind: turn.SessionFailed} }
		}
		got := r.send(t.Context(), streamedBody)
		switch i % 3 {
		case 1:
			(<-r.backend.started).steps <- step{err: &turn.Error{Kind: turn.Upstream}}
		case 2:
			(<-r.backend.started).steps <- step{panics: "oops"}
		}
		<-got
		<-r.lines
	}
	r.wantFree()
}

func TestIgnoredParams(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	for _, stream := range []string{"true", "false"} {
		got := r.send(t.Context(), `{"model":"opus","messages":[{"role":"user","content":"hi"}],"temperature":1,"seed":5,"stream":`+stream+`}`)
		(<-r.backend.started).say(turn.Delta{Text: "a"}, finished)
		if got := (<-got).header.Get("Ocp-Ignored-Params"); got != "seed, temperature" {
			t.Errorf("the header is %q", got)
		}
	}
}

// TestTurnLine checks what the log says of a turn, and that it holds no text.
func TestTurnLine(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	got := r.send(t.Context(), streamedBody)
	(<-r.backend.started).say(turn.Started{}, turn.Delta{Text: "the answer"}, turn.Delta{Text: "é"}, finished)
	id := (<-got).header.Get("X-Request-Id")
	line := r.wantLine("turn", "ok")
	for key, want := range map[string]any{
		"id": id, "dialect": "openai", "model": "opus", "served": "claude-opus-4-6", "stream": true,
		"deltas": int64(2), "bytes": int64(12), "status": int64(200), "stop": "end_turn",
	} {
		if line[key] != want {
			t.Errorf("%s is %v, want %v", key, line[key], want)
		}
	}
	for _, key := range []string{"queued_ms", "started_ms", "first_ms", "total_ms"} {
		if _, ok := line[key].(int64); !ok {
			t.Errorf("there is no %s in %v", key, line)
		}
	}
	all, err := json.Marshal(line)
	if err != nil || strings.Contains(string(all), "secret") || strings.Contains(string(all), "answer") {
		t.Errorf("text in the log: %s (%v)", all, err)
	}
	r.wantFree()
	if len(r.lines) > 0 {
		t.Errorf("more than one line: %v", <-r.lines)
	}
}

func TestPanic(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	for _, body := range []string{streamedBody, wholeBody} {
		got := r.send(t.Context(), body)
		(<-r.backend.started).steps <- step{panics: "oops"}
		reply := <-got
		wantError(t, reply, http.StatusInternalServerError, "internal_error", "")
		line := r.wantLine("turn", "internal")
		if !strings.Contains(reply.body, line["id"].(string)) || !strings.Contains(line["stack"].(string), "Next") {
			t.Errorf("got %s and logged %v", reply.body, line)
		}
		r.wantFree()
	}

	got := r.send(t.Context(), streamedBody)
	s := <-r.backend.started
	s.say(turn.Delta{Text: "half"})
	s.steps <- step{panics: "oops"}
	if got := <-got; got.err == nil {
		t.Errorf("the stream ended like a good one: %+v", got)
	}
	r.wantLine("turn", "internal")
	r.wantFree()
}
