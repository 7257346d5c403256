package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"ocp/internal/prompt"
	"ocp/internal/turn"
)

func responsesParams() responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model:           "opus",
		Instructions:    sdk.String("be brief"),
		Input:           responses.ResponseNewParamsInputUnion{OfString: sdk.String("hi")},
		MaxOutputTokens: sdk.Int(50),
		Reasoning:       shared.ReasoningParam{Effort: shared.ReasoningEffortHigh},
		Metadata:        shared.Metadata{"k": "v"},
	}
}

func TestSDKResponse(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	request := make(chan prompt.Request, 1)
	go func() {
		s := <-r.backend.started
		request <- s.request
		s.say(turn.Started{}, turn.Delta{Text: "Hel"}, turn.Delta{Text: "lo\n"}, finished)
	}()
	got, err := r.sdk().Responses.New(t.Context(), responsesParams())
	if err != nil {
		t.Fatal(err)
	}
	if got.OutputText() != "Hello\n" || got.Status != "completed" || got.Model != "claude-opus-4-6" || got.Metadata["k"] != "v" || got.Instructions.OfString != "be brief" {
		t.Errorf("got %s", got.RawJSON())
	}
	u := got.Usage
	if u.InputTokens != 1053 || u.OutputTokens != 7 || u.TotalTokens != 1060 || u.InputTokensDetails.CachedTokens != 1000 || u.InputTokensDetails.CacheWriteTokens != 50 {
		t.Errorf("usage is %s", u.RawJSON())
	}
	want := prompt.Request{Model: "opus", Effort: "high", MaxTokens: 50, Conversation: prompt.Conversation{
		System:   "be brief",
		Messages: []prompt.Message{{Role: prompt.User, Content: []prompt.Block{prompt.Text("hi")}}},
	}}
	if diff := cmp.Diff(want, <-request); diff != "" {
		t.Error(diff)
	}
	r.wantLine("turn", "ok")
	r.wantFree()
}

// TestSDKResponseStream checks the order and the numbers of the events, and that their
// parts make the same answer.
func TestSDKResponseStream(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	go func() {
		s := <-r.backend.started
		s.say(turn.Started{}, turn.Delta{Text: "Hel"}, turn.Delta{Text: "lo\n"}, finished)
	}()
	stream := r.sdk().Responses.NewStreaming(t.Context(), responsesParams())
	var types []string
	text := ""
	for stream.Next() {
		event := stream.Current()
		if event.SequenceNumber != int64(len(types)) {
			t.Errorf("%s has the number %d", event.Type, event.SequenceNumber)
		}
		types = append(types, event.Type)
		switch event := event.AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			text += event.Delta
		case responses.ResponseTextDoneEvent:
			if event.Text != "Hello\n" {
				t.Errorf("done with %q", event.Text)
			}
		case responses.ResponseCompletedEvent:
			if event.Response.OutputText() != "Hello\n" || event.Response.Usage.TotalTokens != 1060 {
				t.Errorf("completed with %s", event.Response.RawJSON())
			}
		}
	}
	if err := stream.Err(); err != nil || text != "Hello\n" {
		t.Errorf("got %q, %v", text, err)
	}
	want := []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
		"response.output_text.delta", "response.output_text.delta",
		"response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed",
	}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Error(diff)
	}
}

func TestResponseStreamFails(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	go func() {
		s := <-r.backend.started
		s.say(turn.Delta{Text: "half"})
		s.steps <- step{err: &turn.Error{Kind: turn.Upstream, Message: "it broke off"}}
	}()
	stream := r.sdk().Responses.NewStreaming(t.Context(), responsesParams())
	last := responses.ResponseStreamEventUnion{}
	for stream.Next() {
		last = stream.Current()
	}
	if err := stream.Err(); err == nil || !strings.Contains(err.Error(), "it broke off") {
		t.Errorf("got %v", err)
	}
	if last.Type != "response.failed" || last.Response.Error.Message != "it broke off" || last.SequenceNumber != 5 {
		t.Errorf("the last event is %s", last.RawJSON())
	}
	r.wantLine("turn", "upstream")
}

func TestResponseFailsBeforeItsFirstByte(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	for _, body := range []string{`{"model":"opus","input":"hi"}`, `{"model":"opus","input":"hi","stream":true}`} {
		go func() {
			s := <-r.backend.started
			s.steps <- step{err: &turn.Error{Kind: turn.RateLimited, Message: "limit reached"}}
		}()
		wantError(t, r.do("POST", "/v1/responses", "application/json", body), http.StatusTooManyRequests, "rate_limit_exceeded", "")
	}
	wantError(t, r.do("POST", "/v1/responses", "application/json", `{"model":"opus","input":"hi","previous_response_id":"resp_1"}`),
		http.StatusBadRequest, "unsupported_parameter", "previous_response_id")
	wantError(t, r.do("GET", "/v1/responses", "", ""), http.StatusMethodNotAllowed, "method_not_allowed", "")
}

func TestStrictParams(t *testing.T) {
	r := start(t, Options{StrictParams: true}, oneSlot)
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"opus","messages":[{"role":"user","content":"hi"}],"user":"me","seed":1}`,
		"/v1/responses":        `{"model":"opus","input":"hi","user":"me","seed":1}`,
	} {
		got := r.do("POST", path, "application/json", body)
		wantError(t, got, http.StatusBadRequest, "unsupported_parameter", "seed")
		r.wantLine("request", "bad_request")
	}
}

// TestStopSequence checks that an answer ends before the sequence, wherever deltas are
// cut, and its session with it; and that no usage is made up.
func TestStopSequence(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	for _, stream := range []bool{false, true} {
		body, _ := json.Marshal(map[string]any{
			"model": "opus", "messages": []any{map[string]any{"role": "user", "content": "hi"}},
			"stop": []string{"END"}, "stream": stream, "stream_options": map[string]any{"include_usage": true},
		})
		got := r.send(t.Context(), string(body))
		s := <-r.backend.started
		s.say(turn.Delta{Text: "one E"}, turn.Delta{Text: "N"}, turn.Delta{Text: "D two"})
		reply := <-got
		<-s.closing
		if reply.status != http.StatusOK || !strings.Contains(reply.body, `"finish_reason":"stop"`) || strings.Contains(reply.body, "two") || strings.Contains(reply.body, "one E") || strings.Contains(reply.body, `E"}`) {
			t.Errorf("got %s", reply.body)
		}
		if strings.Contains(reply.body, "total_tokens") || stream != strings.HasSuffix(reply.body, "[DONE]\n\n") {
			t.Errorf("got %s", reply.body)
		}
		r.wantFree()
	}
}
