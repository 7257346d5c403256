package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// What the dialects take of a request.
const (
	maxElements = 10_000
	maxDepth    = 200
)

// apis are the routes that answer turns, with a request of each and the type of the
// error of a bad one.
var apis = []struct{ path, kind, body string }{
	{"/v1/chat/completions", "invalid_request_error", `{"model":"opus","messages":[{"role":"user","content":"a"}]}`},
	{"/v1/responses", "invalid_request_error", `{"model":"opus","input":[{"role":"user","content":"a"}]}`},
	{"/v1/messages", "invalid_request_error", `{"model":"opus","max_tokens":9,"messages":[{"role":"user","content":"a"}]}`},
}

// wantType checks for an error in the shape that all dialects have in common.
func wantType(t *testing.T, what string, got reply, status int, kind, says string) {
	t.Helper()
	var body struct {
		Error struct{ Type, Message string }
	}
	err := json.Unmarshal([]byte(got.body), &body)
	if err != nil || got.status != status || body.Error.Type != kind || !strings.Contains(body.Error.Message, says) {
		t.Errorf("%s: got %d %s (%v), want %d %s with %q", what, got.status, got.body, err, status, kind, says)
	}
}

// TestLimits checks each bound of a request on each route: just within it, and beyond.
func TestLimits(t *testing.T) {
	r := start(t, Options{MaxBody: 2 << 20}, oneSlot)
	for _, api := range apis {
		tooLarge := "invalid_request_error"
		if api.path == "/v1/messages" {
			tooLarge = "request_too_large"
		}
		wantType(t, api.path, r.do("POST", api.path, "", strings.Repeat(" ", 2<<20+1)), 413, tooLarge, "2097152 bytes")

		header := r.ask("POST", api.path, "", "X-Long", strings.Repeat("x", maxHeader))
		wantType(t, api.path, header, http.StatusRequestHeaderFieldsTooLarge, api.kind, "65536 bytes")
		// What any client sends besides takes less than the rest.
		short := r.ask("POST", api.path, "", "X-Long", strings.Repeat("x", maxHeader-1000))
		wantType(t, api.path, short, 400, api.kind, "model")

		message := `{"role":"user","content":"a"},`
		many := strings.Replace(api.body, `[{`, `[`+strings.Repeat(message, maxElements)+`{`, 1)
		wantType(t, api.path, r.do("POST", api.path, "", many), 400, api.kind, "more than 10000 elements")

		deep := strings.Replace(api.body, `"a"`, strings.Repeat("[", maxDepth)+strings.Repeat("]", maxDepth), 1)
		wantType(t, api.path, r.do("POST", api.path, "", deep), 400, api.kind, "deeper than 200")
	}
	long := r.ask("GET", "/v1/models/"+strings.Repeat("x", maxHeader), "")
	wantType(t, "a long path", long, http.StatusRequestHeaderFieldsTooLarge, "invalid_request_error", "65536 bytes")
	r.wantFree()
}

// TestManyMessages checks that as many messages as are allowed get through.
func TestManyMessages(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	for _, api := range apis {
		many := strings.Replace(api.body, `[{`, `[`+strings.Repeat(`{"role":"user","content":"a"},`, maxElements-1)+`{`, 1)
		got := make(chan reply, 1)
		go func() { got <- r.do("POST", api.path, "", many) }()
		s := <-r.backend.started
		s.say(finished)
		if got := <-got; got.status != http.StatusOK {
			t.Errorf("%s: got %+v", api.path, got)
		}
	}
	r.wantFree()
}

// TestPanicOnEveryRoute checks that no panic reaches a client, and that the log has its
// stack under the id that the client is given.
func TestPanicOnEveryRoute(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	for _, api := range apis {
		got := make(chan reply, 1)
		go func() { got <- r.do("POST", api.path, "", api.body) }()
		s := <-r.backend.started
		s.steps <- step{panics: "oops"}
		kind := "server_error"
		if api.path == "/v1/messages" {
			kind = "api_error"
		}
		reply := <-got
		line := r.wantLine("turn", "internal")
		wantType(t, api.path, reply, http.StatusInternalServerError, kind, line["id"].(string))
		if strings.Contains(reply.body, "oops") || !strings.Contains(line["stack"].(string), "Next") {
			t.Errorf("%s: got %s, logged %v", api.path, reply.body, line)
		}
		r.wantFree()
	}
}
