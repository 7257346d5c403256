package openai

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/turn"
)

func TestFromTurn(t *testing.T) {
	for kind, want := range map[turn.Kind]Error{
		turn.Authentication: {Status: 401, Type: "authentication_error", Code: "upstream_authentication"},
		turn.Permission:     {Status: 403, Type: "permission_error", Code: "permission_denied"},
		turn.RateLimited:    {Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded"},
		turn.Overloaded:     {Status: 503, Type: "server_error", Code: "overloaded"},
		turn.Upstream:       {Status: 502, Type: "server_error", Code: "upstream_error"},
		turn.InvalidRequest: {Status: 400, Type: "invalid_request_error", Code: "upstream_invalid_request"},
		turn.ContextLength:  {Status: 400, Type: "invalid_request_error", Code: "context_length_exceeded", Param: "messages"},
		turn.TooLarge:       {Status: 413, Type: "invalid_request_error", Code: "request_too_large"},
		turn.ModelNotFound:  {Status: 404, Type: "invalid_request_error", Code: "model_not_found", Param: "model"},
		turn.Timeout:        {Status: 504, Type: "server_error", Code: "timeout"},
		turn.SessionFailed:  {Status: 502, Type: "server_error", Code: "session_failed"},
		turn.Diverged:       {Status: 502, Type: "server_error", Code: "diverged"},
		turn.Unverified:     {Status: 502, Type: "server_error", Code: "unverified"},
		turn.Shutdown:       {Status: 503, Type: "server_error", Code: "shutdown"},
		turn.Canceled:       {Status: 499, Type: "invalid_request_error", Code: "canceled"},
		"new":               {Status: 502, Type: "server_error", Code: "new"},
	} {
		want.Message, want.RetryAfter = "as told", time.Second
		got := FromTurn(&turn.Error{Kind: kind, Message: "as told", RetryAfter: time.Second})
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
	if got := FromTurn(&turn.Error{Kind: turn.Upstream}); got.Message == "" {
		t.Error("an error without a message has none for the client")
	}
	if failures[turn.RateLimited].Message != "" {
		t.Error("the table was written to")
	}
}

func TestErrorJSON(t *testing.T) {
	e := badRequest("messages[0].role", "say \"user\"\n")
	want := `{"error":{"message":"say \"user\"\n","type":"invalid_request_error","param":"messages[0].role","code":null}}`
	if got := string(e.AppendJSON(nil)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := e.AppendFrame([]byte("x")); string(got) != "xdata: "+want+"\n\n" || !json.Valid([]byte(want)) {
		t.Errorf("the frame is %q", got)
	}
}
