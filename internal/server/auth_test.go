package server

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"testing"

	claude "github.com/anthropics/anthropic-sdk-go/v2"
	claudeoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"ocp/internal/config"
)

func key(s string) config.Key { return config.Key{Hash: sha256.Sum256([]byte(s))} }

// ask sends a request with the headers given, as name and value in turn.
func (r *rig) ask(method, path, host string, header ...string) reply {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader("{}"))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	if host != "" {
		req.Host = host
	}
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	return read(res)
}

func TestKeys(t *testing.T) {
	r := start(t, Options{Models: []string{"opus"}, Keys: []config.Key{key("one"), key("two")}}, oneSlot)
	routes := []struct {
		method, path string
		messages     bool
		status       int // with a key
	}{
		{"POST", "/v1/chat/completions", false, 400},
		{"POST", "/v1/messages", true, 400},
		{"POST", "/v1/messages/count_tokens", true, 400},
		{"GET", "/v1/messages", true, 405},
		{"GET", "/v1/models", false, 200},
		{"GET", "/v1/models/opus", false, 200},
		{"GET", "/", false, 404},
	}
	for _, route := range routes {
		for _, header := range [][]string{
			{},
			{"X-Api-Key", "three"},
			{"Authorization", "Bearer On"},
			{"Authorization", "one"},
			{"Authorization", "Basic one"},
			{"X-Api-Key", ""},
			{"X-Api-Key", "one,two"},
		} {
			got := r.ask(route.method, route.path, "", header...)
			if route.messages {
				wantMessagesError(t, got, http.StatusUnauthorized, "authentication_error", "key")
			} else {
				wantError(t, got, http.StatusUnauthorized, "invalid_api_key", "")
			}
			if got.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("the headers are %v", got.header)
			}
			for name, value := range r.wantLine("request", "bad_request") {
				if text, ok := value.(string); ok && len(header) > 1 && header[1] != "" && strings.Contains(text, "three") {
					t.Errorf("the log's %s holds the key: %q", name, text)
				}
			}
		}
		for _, header := range [][]string{
			{"X-Api-Key", "one"},
			{"Authorization", "Bearer two"},
			{"Authorization", "bearer  two"},
			{"Authorization", "Bearer three", "X-Api-Key", "two"},
			{"Authorization", "Bearer one", "X-Api-Key", "none"},
		} {
			if got := r.ask(route.method, route.path, "", header...); got.status != route.status {
				t.Errorf("%s %s with %v got %d %s, want %d", route.method, route.path, header, got.status, got.body, route.status)
			}
			<-r.lines
		}
	}
	if got := r.ask("GET", "/healthz", ""); got.status != http.StatusOK {
		t.Errorf("got %+v", got)
	}
}

// TestKeysOfSDKs checks both clients' own ways to send a key.
func TestKeysOfSDKs(t *testing.T) {
	r := start(t, Options{Models: []string{"opus"}, Keys: []config.Key{key("one")}}, oneSlot)
	for range 3 {
		go func() { (<-r.backend.started).say(finished) }()
	}
	if _, err := r.claude(claudeoption.WithAPIKey("one")).Messages.New(t.Context(), oneQuestion); err != nil {
		t.Error(err)
	}
	byToken := claude.NewClient(claudeoption.WithBaseURL(r.url), claudeoption.WithHTTPClient(r.client), claudeoption.WithAuthToken("one"))
	if _, err := byToken.Messages.New(t.Context(), oneQuestion); err != nil {
		t.Error(err)
	}
	question := sdk.ChatCompletionNewParams{Model: "opus", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage("hi")}}
	if _, err := r.sdk().Chat.Completions.New(t.Context(), question, option.WithAPIKey("one")); err != nil {
		t.Error(err)
	}
}
