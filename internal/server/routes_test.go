package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/openai/openai-go/v3"

	"ocp/internal/turn"
)

// do sends any request and reads its reply.
func (r *rig) do(method, path, contentType, body string) reply {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	return read(res)
}

func TestModels(t *testing.T) {
	r := start(t, Options{Models: []string{"opus", "some/model"}}, oneSlot)
	client := r.sdk()
	page, err := client.Models.List(t.Context())
	if err != nil || len(page.Data) != 2 || page.Data[1].ID != "some/model" || page.Data[0].OwnedBy != "anthropic" || page.Data[0].Created == 0 {
		t.Errorf("got %+v (%v)", page, err)
	}
	if m, err := client.Models.Get(t.Context(), "some/model"); err != nil || m.ID != "some/model" {
		t.Errorf("got %+v (%v)", m, err)
	}
	_, err = client.Models.Get(t.Context(), "gpt-4o")
	if bad, ok := errors.AsType[*sdk.Error](err); !ok || bad.StatusCode != http.StatusNotFound || bad.Code != "model_not_found" {
		t.Errorf("got %v", err)
	}
}

func TestHealthz(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	if got := r.do("GET", "/healthz", "", ""); got.status != http.StatusOK || got.body != `{"status":"ok","version":"1.2.3"}` {
		t.Errorf("got %+v", got)
	}
	if got := r.do("HEAD", "/healthz", "", ""); got.status != http.StatusOK || got.body != "" {
		t.Errorf("got %+v", got)
	}
	for range 2 {
		r.wantLine("request", "ok")
	}
	if err := r.server.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if got := r.do("GET", "/healthz", "", ""); got.status != http.StatusOK {
		t.Errorf("after Shutdown: %+v", got)
	}
}

func TestRoutes(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	for _, test := range []struct {
		method, path string
		status       int
		code, param  string
		allow        string
	}{
		{"GET", "/", 404, "unknown_url", "", ""},
		{"POST", "/v1/completions", 404, "unknown_url", "", ""},
		{"POST", "/v1/chat/completions/x", 404, "unknown_url", "", ""},
		{"GET", "/v1/models/gpt-4o", 404, "model_not_found", "model", ""},
		{"GET", "/v1/chat/completions", 405, "method_not_allowed", "", "POST"},
		{"OPTIONS", "/v1/chat/completions", 405, "method_not_allowed", "", "POST"},
		{"POST", "/v1/models", 405, "method_not_allowed", "", "GET, HEAD"},
		{"DELETE", "/v1/models/opus", 405, "method_not_allowed", "", "GET, HEAD"},
		{"POST", "/healthz", 405, "method_not_allowed", "", "GET, HEAD"},
	} {
		got := r.do(test.method, test.path, "", "")
		wantError(t, got, test.status, test.code, test.param)
		if allow := got.header.Get("Allow"); allow != test.allow {
			t.Errorf("%s %s: Allow is %q, want %q", test.method, test.path, allow, test.allow)
		}
	}
}

func TestContentType(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	const bad = "{}" // gets as far as the missing model
	for _, contentType := range []string{"", "application/json", "application/json; charset=utf-8", "Application/JSON; charset=UTF-8"} {
		wantError(t, r.do("POST", "/v1/chat/completions", contentType, bad), http.StatusBadRequest, "", "model")
	}
	for _, contentType := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=latin1", ";", "application/jsonx"} {
		wantError(t, r.do("POST", "/v1/chat/completions", contentType, bad), http.StatusUnsupportedMediaType, "unsupported_media_type", "")
	}
}

func TestBadRequest(t *testing.T) {
	r := start(t, Options{MaxBody: 1000}, oneSlot)
	for _, test := range []struct {
		body        string
		status      int
		code, param string
	}{
		{``, 400, "", ""},
		{`{"model":"opus"}`, 400, "", "messages"},
		{`{"model":"opus","messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`, 400, "unsupported_parameter", "messages[0].content[0].type"},
		{`{"model":"opus","messages":[{"role":"user","content":"a"}],"n":2}`, 400, "unsupported_parameter", "n"},
		{`{"model":"opus","messages":[{"role":"user","content":"a"}],"stop":5}`, 400, "invalid_type", "stop"},
		{strings.Repeat(" ", 1001), 413, "request_too_large", ""},
	} {
		got := r.do("POST", "/v1/chat/completions", "application/json", test.body)
		wantError(t, got, test.status, test.code, test.param)
		line := r.wantLine("request", "bad_request")
		if text := line["err"].(string); strings.Contains(text, decodeEnvelope(t, got.body).Error.Message) {
			t.Errorf("the message, which may quote the client, is logged: %s", text)
		}
	}
	if got := r.do("POST", "/v1/chat/completions", "", strings.Repeat(" ", 1000)); got.status != http.StatusBadRequest {
		t.Errorf("a body of just the limit got %+v", got)
	}
}

// TestAsTurnError pins which error wins if a turn's context has ended.
func TestAsTurnError(t *testing.T) {
	timeout := &turn.Error{Kind: turn.Timeout, Message: "too long"}
	exited := &turn.Error{Kind: turn.SessionFailed, Message: "exited"}
	ended := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		return ctx
	}
	for _, test := range []struct {
		name string
		ctx  context.Context
		err  error
		kind turn.Kind
		also error // must be in the chain, for the log
	}{
		{"plain", context.Background(), errors.New("x"), turn.SessionFailed, nil},
		{"typed", context.Background(), exited, turn.SessionFailed, exited},
		{"timeout", ended(timeout), timeout, turn.Timeout, timeout},
		{"timeout seen as an exit", ended(timeout), exited, turn.Timeout, exited},
		{"timeout seen as a cancellation", ended(timeout), context.Canceled, turn.Timeout, context.Canceled},
		{"client gone", ended(nil), context.Canceled, turn.Canceled, context.Canceled},
		{"client gone, seen as an exit", ended(nil), exited, turn.Canceled, exited},
	} {
		got := asTurnError(test.ctx, test.err)
		if got.Kind != test.kind || test.also != nil && !errors.Is(got, test.also) {
			t.Errorf("%s: got %v", test.name, got)
		}
	}
}
