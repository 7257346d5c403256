package server

import (
	"net/http"
	"strings"
	"testing"

	"ocp/internal/config"
)

// everyRoute is a path of each kind, with the method that it wants.
var everyRoute = []struct {
	method, path string
	messages     bool
}{
	{"POST", "/v1/chat/completions", false},
	{"POST", "/v1/responses", false},
	{"POST", "/v1/messages", true},
	{"POST", "/v1/messages/count_tokens", true},
	{"GET", "/v1/messages/nothing", true},
	{"GET", "/v1/models", false},
	{"GET", "/v1/models/opus", false},
	{"GET", "/healthz", false},
	{"GET", "/readyz", false},
	{"GET", "/status", false},
	{"GET", "/", false},
	{"GET", "/nothing", false},
	{"GET", "//", false},
}

// wantForbidden checks for a refusal in the shape of the route's API.
func wantForbidden(t *testing.T, messages bool, got reply, code string) {
	t.Helper()
	if !messages {
		wantError(t, got, http.StatusForbidden, code, "")
		return
	}
	wantMessagesError(t, got, http.StatusForbidden, "permission_error", map[string]string{"foreign_host": "Host", "foreign_origin": "origin"}[code])
}

func TestForeignHost(t *testing.T) {
	one := []config.Key{key("one")}
	foreign := []string{
		"evil.example", "evil.example:3456", "localhost.evil.example", "evil.localhost", "127.0.0.1.evil.example",
		"127.0.0.1:80:evil.example", "user@localhost", "localhost,evil.example", "2130706433", "0x7f.1",
	}
	elsewhere := []string{"192.168.0.1:3456", "0.0.0.0", "[fd00::1]:1", "[::]"} // beyond this machine
	for _, test := range []struct {
		name            string
		o               Options
		answers, denies []string
	}{
		{"loopback", Options{Loopback: true}, nil, append(foreign, elsewhere...)},
		{"loopback with keys", Options{Loopback: true, Keys: one}, nil, append(foreign, elsewhere...)},
		{"loopback with names", Options{Loopback: true, HostNames: []string{"ocp.test", "10.0.0.7"}}, []string{"ocp.test", "OCP.test:80", "ocp.test.", "10.0.0.7:9"}, append(foreign, elsewhere...)},
		{"beyond", Options{Keys: one, HostNames: []string{"ocp.test"}}, append(elsewhere, "ocp.test:1"), append(foreign, "x.ocp.test", "ocp.test.evil")},
		{"any", Options{Keys: one, HostNames: []string{"*"}}, append(elsewhere, "evil.example"), nil},
	} {
		if test.o.HostNames == nil {
			test.o.HostNames = []string{}
		}
		r := start(t, test.o, oneSlot)
		for _, host := range append(test.answers, "localhost", "LOCALHOST:80", "127.0.0.1", "127.1.2.3:5", "[::1]", "[::1]:3456") {
			if got := r.ask("GET", "/healthz", host); got.status != http.StatusOK {
				t.Errorf("%s: %s got %+v", test.name, host, got)
			}
		}
		for _, host := range test.denies {
			for _, route := range everyRoute {
				wantForbidden(t, route.messages, r.ask(route.method, route.path, host, "X-Api-Key", "one"), "foreign_host")
			}
		}
	}
}

func TestForeignOrigin(t *testing.T) {
	for _, o := range []Options{{Loopback: true}, {Keys: []config.Key{key("one")}}, {Loopback: true, Origins: []string{"https://chat.test"}}} {
		r := start(t, o, oneSlot)
		for _, headers := range [][]string{
			{"Origin", "http://evil.example"},
			{"Origin", "null"},
			{"Origin", ""},
			{"Origin", "https://127.0.0.1"},
			{"Origin", "http://127.0.0.1:1"},
			{"Origin", "file://"},
			{"Origin", "http://localhost"},
			{"Origin", "https://chat.test:444"},
			{"Origin", "http://chat.test"},
			{"Origin", "https://chat.test.evil.example"},
			{"Origin", r.url, "Origin", "http://evil.example"},
			{"Origin", "https://chat.test", "Origin", "https://chat.test"},
			{"Sec-Fetch-Site", "cross-site"},
			{"Sec-Fetch-Site", "same-site"},
			{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"},
			{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
		} {
			for _, route := range everyRoute {
				header := append([]string{"X-Api-Key", "one"}, headers...)
				got := r.ask(route.method, route.path, "", header...)
				wantForbidden(t, route.messages, got, "foreign_origin")
				if got.header.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%v may read what %s says", headers, route.path)
				}
			}
			if got := r.ask("OPTIONS", "/v1/messages", "", append(headers, "Access-Control-Request-Method", "POST")...); got.status != http.StatusForbidden {
				t.Errorf("a preflight of %v got %+v", headers, got)
			}
		}
		for _, headers := range [][]string{
			{},
			{"Origin", r.url},
			{"Sec-Fetch-Site", "same-origin"},
			{"Sec-Fetch-Site", "none"},
			{"Origin", r.url, "Sec-Fetch-Site", "same-origin"},
			{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, // a link
		} {
			if got := r.ask("GET", "/v1/models", "", append([]string{"X-Api-Key", "one"}, headers...)...); got.status != http.StatusOK || got.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%v got %+v", headers, got)
			}
		}
		if got := r.ask("POST", "/v1/messages", "", "X-Api-Key", "one", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"); got.status != http.StatusForbidden {
			t.Errorf("a form of another site got %+v", got)
		}
		if n := len(r.backend.started); n > 0 {
			t.Errorf("%d sessions were started", n)
		}
	}
}

// TestListedOrigin checks what a page may do whose origin is listed: just what it needs,
// and without the credentials of its browser.
func TestListedOrigin(t *testing.T) {
	const origin = "https://chat.test"
	r := start(t, Options{Keys: []config.Key{key("one")}, Origins: []string{"app://notes", origin}}, oneSlot)
	if got := r.ask("GET", "/v1/models", "", "X-Api-Key", "one"); got.header.Get("Vary") != "Origin" || got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("without Origin: %+v", got)
	}

	asks := "Authorization, content-type,X-Stainless-Retry-Count,Cookie, x-evil"
	got := r.ask("OPTIONS", "/v1/chat/completions", "", "Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", asks)
	want := map[string]string{
		"Access-Control-Allow-Origin":      origin,
		"Access-Control-Allow-Methods":     "POST",
		"Access-Control-Allow-Headers":     "authorization, content-type, x-stainless-retry-count",
		"Access-Control-Allow-Credentials": "",
		"Content-Type":                     "",
	}
	for name, value := range want {
		if got.header.Get(name) != value {
			t.Errorf("the preflight's %s is %q, want %q", name, got.header.Get(name), value)
		}
	}
	if vary := strings.Join(got.header.Values("Vary"), ", "); got.status != http.StatusNoContent || got.body != "" || !strings.HasPrefix(vary, "Origin, Access-Control-Request-Method") {
		t.Errorf("the preflight got %+v, vary %s", got, vary)
	}
	if got := r.ask("OPTIONS", "/v1/models", "", "Origin", origin, "Access-Control-Request-Method", "DELETE"); got.header.Get("Access-Control-Allow-Methods") != "GET, HEAD" {
		t.Errorf("got %+v", got)
	}

	// A preflight is no key: what follows wants one. The page may read that it does.
	got = r.ask("POST", "/v1/chat/completions", "", "Origin", origin)
	wantError(t, got, http.StatusUnauthorized, "invalid_api_key", "")
	for _, header := range [][]string{{"X-Api-Key", "one"}, {"X-Api-Key", "one", "Sec-Fetch-Site", "cross-site"}} {
		got = r.ask("POST", "/v1/chat/completions", "", append(header, "Origin", origin)...)
		wantError(t, got, http.StatusBadRequest, "", "model")
		if got.header.Get("Access-Control-Allow-Origin") != origin || got.header.Get("Access-Control-Allow-Credentials") != "" || !strings.Contains(got.header.Get("Access-Control-Expose-Headers"), "X-Request-Id") {
			t.Errorf("the headers are %v", got.header)
		}
	}
	// An OPTIONS that is no preflight is like any other method.
	wantError(t, r.ask("OPTIONS", "/v1/models", "", "X-Api-Key", "one", "Origin", origin), http.StatusMethodNotAllowed, "method_not_allowed", "")
}
