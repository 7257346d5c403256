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

	claude "github.com/anthropics/anthropic-sdk-go/v2"
	claudeoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/google/go-cmp/cmp"

	"ocp/internal/admission"
	"ocp/internal/prompt"
	"ocp/internal/turn"
)

const (
	streamedMessage = `{"model":"opus","max_tokens":100,"messages":[{"role":"user","content":"a secret"}],"stream":true}`
	wholeMessage    = `{"model":"opus","max_tokens":100,"messages":[{"role":"user","content":"a secret"}]}`
)

func (r *rig) claude(options ...claudeoption.RequestOption) *claude.Client {
	client := claude.NewClient(append([]claudeoption.RequestOption{
		claudeoption.WithBaseURL(r.url), claudeoption.WithAPIKey("x"), claudeoption.WithHTTPClient(r.client), claudeoption.WithMaxRetries(0),
	}, options...)...)
	return &client
}

var oneQuestion = claude.MessageNewParams{
	Model:     "opus",
	MaxTokens: 100,
	Messages:  []claude.MessageParam{claude.NewUserMessage(claude.NewTextBlock("hi"))},
}

// message posts to the Messages API in the background.
func (r *rig) message(ctx context.Context, body string) <-chan reply {
	c := make(chan reply, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/messages", strings.NewReader(body))
		if err != nil {
			c <- reply{err: err}
			return
		}
		res, err := r.client.Do(req)
		if err != nil {
			c <- reply{err: err}
			return
		}
		c <- read(res)
	}()
	return c
}

// wantMessagesError checks a reply for an error in the Messages API's shape.
func wantMessagesError(t *testing.T, got reply, status int, kind, says string) {
	t.Helper()
	if got.err != nil {
		t.Errorf("no reply: %v", got.err)
		return
	}
	var e struct {
		Type      string
		Error     struct{ Type, Message string }
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal([]byte(got.body), &e); err != nil {
		t.Errorf("%v in %q", err, got.body)
	}
	if got.status != status || e.Type != "error" || e.Error.Type != kind || !strings.Contains(e.Error.Message, says) {
		t.Errorf("got %d %s, want %d with type %q that says %q", got.status, got.body, status, kind, says)
	}
	if id := got.header.Get("Request-Id"); !strings.HasPrefix(id, "req_") || e.RequestID != id || got.header.Get("X-Request-Id") != id || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("the headers are %v", got.header)
	}
}

func TestClaudeSDKMessage(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	go func() {
		s := <-r.backend.started
		s.say(turn.Started{}, turn.Delta{Text: "Hel"}, turn.Delta{Text: "lo\n"}, finished)
	}()
	got, err := r.claude().Messages.New(t.Context(), oneQuestion)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Content) != 1 || got.Content[0].Text != "Hello\n" || got.StopReason != "end_turn" || got.Model != "claude-opus-4-6" || got.Role != "assistant" {
		t.Errorf("got %s", got.RawJSON())
	}
	u := got.Usage
	if u.InputTokens != 3 || u.CacheReadInputTokens != 1000 || u.CacheCreationInputTokens != 50 || u.OutputTokens != 7 {
		t.Errorf("usage is %s", u.RawJSON())
	}
	r.wantFree()
}

func TestClaudeSDKStream(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	request := make(chan prompt.Request, 1)
	go func() {
		s := <-r.backend.started
		request <- s.request
		s.say(turn.Started{}, turn.Delta{Text: "Hel"}, turn.Delta{Text: "lo\n"}, finished)
	}()
	params := oneQuestion
	params.System = []claude.TextBlockParam{{Text: "be brief"}}
	params.Thinking = claude.ThinkingConfigParamUnion{OfAdaptive: &claude.ThinkingConfigAdaptiveParam{}}
	stream := r.claude().Messages.NewStreaming(t.Context(), params)
	var message claude.Message
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if len(message.Content) != 1 || message.Content[0].Text != "Hello\n" || message.StopReason != "end_turn" || message.Usage.InputTokens != 3 || message.Usage.OutputTokens != 7 {
		t.Errorf("got %s", message.RawJSON())
	}
	want := prompt.Request{Model: "opus", Effort: "high", MaxTokens: 100, Conversation: prompt.Conversation{
		System:   "be brief",
		Messages: []prompt.Message{{Role: prompt.User, Content: []prompt.Block{prompt.Text("hi")}}},
	}}
	if diff := cmp.Diff(want, <-request); diff != "" {
		t.Error(diff)
	}
	r.wantFree()
}

func TestClaudeSDKErrors(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	for kind, status := range map[turn.Kind]int{turn.RateLimited: 429, turn.Overloaded: 529, turn.ContextLength: 400, turn.Authentication: 401} {
		go func() {
			(<-r.backend.started).steps <- step{err: &turn.Error{Kind: kind, Message: "why"}}
		}()
		_, err := r.claude().Messages.New(t.Context(), oneQuestion)
		bad, ok := errors.AsType[*claude.Error](err)
		if !ok || bad.StatusCode != status || !strings.HasPrefix(bad.RequestID, "req_") || !strings.Contains(bad.Message, "why") || bad.Type() == "" {
			t.Errorf("%s: got %v", kind, err)
		}
	}
	go func() {
		s := <-r.backend.started
		s.say(turn.Delta{Text: "half"})
		s.steps <- step{err: &turn.Error{Kind: turn.Upstream, Message: "it broke off"}}
	}()
	stream := r.claude().Messages.NewStreaming(t.Context(), oneQuestion)
	for stream.Next() {
		if stream.Current().Type == "message_stop" {
			t.Error("a stream that failed has a message_stop")
		}
	}
	if err := stream.Err(); err == nil || !strings.Contains(err.Error(), "it broke off") {
		t.Errorf("got %v", err)
	}
}

// TestClaudeSDKRetries pins that a client which is told to wait comes again by itself.
func TestClaudeSDKRetries(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	go func() {
		(<-r.backend.started).steps <- step{err: &turn.Error{Kind: turn.RateLimited, Message: "wait", RetryAfter: time.Millisecond}}
		(<-r.backend.started).say(turn.Delta{Text: "now"}, finished)
	}()
	got, err := r.claude(claudeoption.WithMaxRetries(1)).Messages.New(t.Context(), oneQuestion)
	if err != nil || got.Content[0].Text != "now" {
		t.Errorf("got %v (%v)", got, err)
	}
}

func TestClaudeSDKCountsAndModels(t *testing.T) {
	r := start(t, Options{Models: []string{"opus", "some/model"}}, admission.Options{Slots: 1})
	release, err := r.gate.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release() // there is no slot left, and none is needed
	count, err := r.claude().Messages.CountTokens(t.Context(), claude.MessageCountTokensParams{
		Model: "opus", Messages: oneQuestion.Messages,
	})
	if err != nil || count.InputTokens < 1 {
		t.Errorf("got %+v (%v)", count, err)
	}
	got := r.do("POST", "/v1/messages/count_tokens", "", `{"model":"opus","messages":[{"role":"user","content":"a"}]}`)
	if got.status != http.StatusOK || got.header.Get("Ocp-Estimate") != "true" {
		t.Errorf("got %+v", got)
	}
	page, err := r.claude().Models.List(t.Context(), claude.ModelListParams{})
	if err != nil || len(page.Data) != 2 || page.Data[1].ID != "some/model" || page.HasMore {
		t.Errorf("got %+v (%v)", page, err)
	}
	if m, err := r.claude().Models.Get(t.Context(), "opus", claude.ModelGetParams{}); err != nil || m.ID != "opus" {
		t.Errorf("got %+v (%v)", m, err)
	}
	_, err = r.claude().Models.Get(t.Context(), "gpt-4o", claude.ModelGetParams{})
	if bad, ok := errors.AsType[*claude.Error](err); !ok || bad.StatusCode != http.StatusNotFound || bad.Type() != "not_found_error" {
		t.Errorf("got %v", err)
	}
}

// TestMessagesErrors checks that every error of these routes has their shape.
func TestMessagesErrors(t *testing.T) {
	r := start(t, Options{MaxBody: 1000}, oneSlot)
	for _, test := range []struct {
		method, path, contentType, body string
		status                          int
		kind, says                      string
	}{
		{"GET", "/v1/messages", "", "", 405, "invalid_request_error", "use POST"},
		{"GET", "/v1/messages/count_tokens", "", "", 405, "invalid_request_error", "use POST"},
		{"POST", "/v1/messages/batches", "", "", 404, "not_found_error", "POST /v1/messages"},
		{"POST", "/v1/messages", "text/plain", "{}", 415, "invalid_request_error", "Content-Type"},
		{"POST", "/v1/messages", "", strings.Repeat(" ", 1001), 413, "request_too_large", "1000 bytes"},
		{"POST", "/v1/messages/count_tokens", "", "{}", 400, "invalid_request_error", "model: is required"},
		{"POST", "/v1/messages", "", strings.Replace(wholeMessage, `"a secret"`, `[{"type":"secret"}]`, 1), 400, "invalid_request_error", `messages.0.content.0.type: is "secret"`},
	} {
		wantMessagesError(t, r.do(test.method, test.path, test.contentType, test.body), test.status, test.kind, test.says)
		line := r.wantLine("request", "bad_request")
		if text, ok := line["err"].(string); !ok || strings.Contains(text, "secret") {
			t.Errorf("logged %v", line)
		}
	}

	got := r.message(t.Context(), wholeMessage)
	(<-r.backend.started).steps <- step{panics: "oops"}
	wantMessagesError(t, <-got, http.StatusInternalServerError, "api_error", "req_")
	r.wantLine("turn", "internal")

	got = r.message(t.Context(), streamedMessage)
	(<-r.backend.started).steps <- step{err: &turn.Error{Kind: turn.Overloaded, Message: "busy", RetryAfter: 1500 * time.Millisecond}}
	reply := <-got
	wantMessagesError(t, reply, 529, "overloaded_error", "busy")
	if after := reply.header.Get("Retry-After"); after != "2" {
		t.Errorf("Retry-After is %q, want 2", after)
	}
	r.wantFree()
}

func TestMessagesQueueFull(t *testing.T) {
	r := start(t, Options{}, admission.Options{Slots: 1})
	first := r.message(t.Context(), wholeMessage)
	s := <-r.backend.started
	third := <-r.message(t.Context(), streamedMessage)
	wantMessagesError(t, third, http.StatusTooManyRequests, "rate_limit_error", "try again")
	if third.header.Get("Retry-After") != "1" {
		t.Errorf("the headers are %v", third.header)
	}
	s.say(finished)
	if got := <-first; got.status != http.StatusOK || !strings.Contains(got.body, `"content":[],`) {
		t.Errorf("got %+v", got)
	}
	r.wantFree()
}

func TestMessagesHeadersAndLog(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	got := r.message(t.Context(), strings.Replace(streamedMessage, `"model"`, `"temperature":1,"top_k":1,"model"`, 1))
	(<-r.backend.started).say(turn.Delta{Text: "the answer"}, finished)
	reply := <-got
	if reply.header.Get("Ocp-Ignored-Params") != "temperature, top_k" || reply.header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
		t.Errorf("the headers are %v", reply.header)
	}
	line := r.wantLine("turn", "ok")
	if line["dialect"] != "anthropic" || line["id"] != reply.header.Get("Request-Id") {
		t.Errorf("logged %v", line)
	}
}

func TestMessagesPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := startPiped(t, Options{KeepAlive: 10 * time.Second}, oneSlot)
		got := r.message(t.Context(), streamedMessage)
		s := <-r.backend.started
		time.Sleep(25 * time.Second)
		s.say(turn.Delta{Text: "a"})
		time.Sleep(15 * time.Second)
		s.say(finished)
		body := (<-got).body
		const ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
		if !strings.HasPrefix(body, ping+ping+"event: message_start\n") || strings.Count(body, ping) != 4 || strings.Contains(body, ": keep-alive") {
			t.Errorf("got %s", body)
		}
		r.wantFree()
	})
}

// TestStopSequences checks both dialects' ends at a stop sequence: what was before it is
// there, nothing after it is, and the session does not run on.
func TestStopSequences(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	for i, stream := range []bool{true, false, true, false} {
		met := i < 2
		body := fmt.Sprintf(`{"model":"opus","max_tokens":100,"messages":[{"role":"user","content":"hi"}],"stop_sequences":["END","\nthree"],"stream":%v}`, stream)
		got := r.message(t.Context(), body)
		s := <-r.backend.started
		s.say(turn.Started{}, turn.Delta{Text: "one\n"}, turn.Delta{Text: "two E"}, turn.Delta{Text: "N"})
		if met {
			s.say(turn.Delta{Text: "D three"})
		} else {
			s.say(finished)
		}
		reply := <-got
		<-s.closing
		r.wantFree()
		text := textOf(t, reply.body, stream)
		if met && (text != "one\ntwo " || !strings.Contains(reply.body, `"stop_reason":"stop_sequence","stop_sequence":"END"`) || !strings.Contains(reply.body, `"ocp_estimate":true`)) {
			t.Errorf("%q in %s", text, reply.body)
		}
		if !met && (text != "one\ntwo EN" || !strings.Contains(reply.body, `"stop_reason":"end_turn","stop_sequence":null`) || strings.Contains(reply.body, "ocp_estimate")) {
			t.Errorf("%q in %s", text, reply.body)
		}
		line := r.wantLine("turn", "ok")
		if line["bytes"] != int64(len(text)) {
			t.Errorf("logged %v", line)
		}
	}
}

// textOf returns the text of an answer of the Messages API.
func textOf(t *testing.T, body string, stream bool) string {
	t.Helper()
	var message claude.Message
	if !stream {
		if err := json.Unmarshal([]byte(body), &message); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range strings.Split(body, "\n") {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var event claude.MessageStreamEventUnion
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Fatal(err)
		}
		if err := message.Accumulate(event); err != nil {
			t.Fatal(err)
		}
	}
	if len(message.Content) != 1 {
		t.Fatalf("%d blocks in %s", len(message.Content), body)
	}
	return message.Content[0].Text
}
