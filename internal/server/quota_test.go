package server

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"ocp/internal/admission"
	"ocp/internal/config"
	"ocp/internal/quota"
	"ocp/internal/turn"
)

// limited is a key with limits, whose name is the key itself.
func limited(name string, l quota.Limits) config.Key {
	return config.Key{Name: name, Hash: sha256.Sum256([]byte(name)), Limits: l}
}

// turnRoutes are the routes of turns, with a request for the model opus.
var turnRoutes = []struct {
	path, body, headers string // the prefix of the headers that tell the limits
}{
	{"/v1/chat/completions", `{"model":"opus","stream":true,"messages":[{"role":"user","content":"a secret"}]}`, "X-Ratelimit-"},
	{"/v1/responses", `{"model":"opus","stream":true,"input":"a secret"}`, "X-Ratelimit-"},
	{"/v1/messages", streamedMessage, "Anthropic-Ratelimit-"},
}

// with posts a request with a key, on a connection of its own.
func (r *rig) with(ctx context.Context, key, path, body string) *http.Response {
	r.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", key)
	req.Close = true
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

// answered has a request answered well, and returns the whole.
func (r *rig) answered(key, path, body string) reply {
	r.t.Helper()
	go func() { (<-r.backend.started).say(turn.Started{}, turn.Delta{Text: "x"}, finished) }()
	got := read(r.with(r.t.Context(), key, path, body))
	if got.status != http.StatusOK {
		r.t.Errorf("%s got %d %s", path, got.status, got.body)
	}
	return got
}

// wantLimited checks that a request is refused for a limit, and no session started for it.
func (r *rig) wantLimited(key, path, body, says string) reply {
	r.t.Helper()
	got := read(r.with(r.t.Context(), key, path, body))
	if path == "/v1/messages" {
		wantMessagesError(r.t, got, http.StatusTooManyRequests, "rate_limit_error", says)
	} else {
		wantError(r.t, got, http.StatusTooManyRequests, "key_limit", "")
		if !strings.Contains(got.body, says) {
			r.t.Errorf("%s does not say %q", got.body, says)
		}
	}
	after, err := strconv.Atoi(got.header.Get("Retry-After"))
	if err != nil || after < 1 || (after > 60) != (got.header.Get("X-Should-Retry") == "false") { // SDKs wait no longer
		r.t.Errorf("the headers are %v", got.header)
	}
	if strings.Contains(got.body, key) {
		r.t.Errorf("the error names the key: %s", got.body)
	}
	if len(r.backend.started) > 0 {
		r.t.Error("a session was started")
	}
	return got
}

func TestPerMinuteOfAKey(t *testing.T) {
	for _, route := range turnRoutes {
		traces := make(chan Trace, 20)
		r := start(t, Options{
			Keys:      []config.Key{limited("bob", quota.Limits{PerMinute: 2, TokensPerDay: 5000}), limited("ann", quota.Limits{})},
			Observers: []func(Trace){func(t Trace) { traces <- t }},
		}, oneSlot)
		header := func(got reply, kind, what string) string {
			if route.headers == "X-Ratelimit-" {
				return got.header.Get(route.headers + what + "-" + kind)
			}
			return got.header.Get(route.headers + kind + "-" + what)
		}
		got := r.answered("bob", route.path, route.body)
		if header(got, "Requests", "Limit") != "2" || header(got, "Requests", "Remaining") != "1" || header(got, "Tokens", "Remaining") != "5000" {
			t.Errorf("the headers are %v", got.header)
		}
		got = r.answered("bob", route.path, route.body)
		if left := strconv.Itoa(5000 - 1060); header(got, "Requests", "Remaining") != "0" || header(got, "Tokens", "Remaining") != left {
			t.Errorf("the headers are %v", got.header)
		}
		untilOver(traces)
		untilOver(traces)
		got = r.wantLimited("bob", route.path, route.body, "2 requests a minute: try again at 20")
		reset := header(got, "Requests", "Reset")
		_, duration := time.ParseDuration(reset)
		_, date := time.Parse(time.RFC3339, reset)
		if (duration == nil) == (route.headers != "X-Ratelimit-") || (date == nil) == (route.headers == "X-Ratelimit-") {
			t.Errorf("the reset is %q", reset)
		}
		told := untilOver(traces)
		if last := told[len(told)-1]; last.Outcome != Limited || last.Key != "bob" || last.Usage != (turn.Usage{}) {
			t.Errorf("told of %+v", last)
		}
		got = r.answered("ann", route.path, route.body)
		for name := range got.header {
			if strings.Contains(name, "Ratelimit") {
				t.Errorf("a key without limits gets %s", name)
			}
		}
	}
}

func TestTokensOfAKey(t *testing.T) {
	for _, route := range turnRoutes {
		r := start(t, Options{Keys: []config.Key{limited("bob", quota.Limits{TokensPerDay: 1060})}}, oneSlot)
		r.answered("bob", route.path, route.body)
		got := r.wantLimited("bob", route.path, route.body, "1060 tokens a day (UTC) and has used 1060: try again at ")
		if !strings.Contains(got.body, "T00:00:00Z") {
			t.Errorf("it does not name the end of the day: %s", got.body)
		}
	}
}

// TestDaysOfAKeyGoOn checks that a server counts on from what its book has.
func TestDaysOfAKeyGoOn(t *testing.T) {
	var book quota.Book
	book.Account("bob").Resume(time.Now(), 4, 0)
	r := start(t, Options{Quota: &book, Keys: []config.Key{limited("bob", quota.Limits{PerDay: 5})}}, oneSlot)
	r.answered("bob", turnRoutes[0].path, turnRoutes[0].body)
	r.wantLimited("bob", turnRoutes[0].path, turnRoutes[0].body, "5 requests a day")
	// Of a request that is no turn, or a bad one, nothing is counted.
	if got := r.ask("GET", "/v1/models", "", "X-Api-Key", "bob"); got.status != http.StatusOK {
		t.Errorf("got %+v", got)
	}
	wantError(t, r.ask("POST", "/v1/chat/completions", "", "X-Api-Key", "bob"), http.StatusBadRequest, "", "model")
}

// TestConcurrencyOfAKey checks that one request at a time is served to a client that sends
// the next one as soon as it has read the end of an answer, whether good or bad.
func TestConcurrencyOfAKey(t *testing.T) {
	for _, route := range turnRoutes {
		r := start(t, Options{Keys: []config.Key{limited("bob", quota.Limits{Concurrency: 1})}}, admission.Options{Slots: 9})
		for _, end := range []step{{event: finished}, {err: &turn.Error{Kind: turn.Overloaded, Message: "busy"}}, {event: finished}} {
			sessions := make(chan *fakeSession, 1)
			go func() {
				session := <-r.backend.started
				session.say(turn.Started{}, turn.Delta{Text: "x"})
				sessions <- session
			}()
			res := r.with(t.Context(), "bob", route.path, route.body)
			if res.StatusCode != http.StatusOK {
				t.Fatalf("a request after another's end: %s", res.Status)
			}
			session := <-sessions
			r.wantLimited("bob", route.path, route.body, "1 request under way")
			go func() { session.steps <- end }()
			frames := readFrames(t, res)
			for {
				frame := frames.next()
				if strings.Contains(frame, "[DONE]") || strings.Contains(frame, "message_stop") || strings.Contains(frame, "response.completed") || strings.Contains(frame, "busy") {
					break // and not the end of the body
				}
				if frame == "" {
					t.Fatal("the stream has no end")
				}
			}
			defer res.Body.Close()
		}
	}
}

func TestModelsOfAKey(t *testing.T) {
	r := start(t, Options{Keys: []config.Key{limited("bob", quota.Limits{Models: []string{"sonnet", "another", "not-listed"}}), limited("ann", quota.Limits{})}, Models: []string{"opus", "sonnet"}}, oneSlot)
	for _, route := range turnRoutes {
		got := read(r.with(t.Context(), "bob", route.path, route.body))
		if route.path == "/v1/messages" {
			wantMessagesError(t, got, http.StatusForbidden, "permission_error", "opus")
		} else {
			wantError(t, got, http.StatusForbidden, "model_not_allowed", "model")
		}
		if !strings.Contains(got.body, `\"opus\"`) {
			t.Errorf("%s does not name the model", got.body)
		}
		r.wantLine("request", "bad_request")
		for _, model := range []string{"sonnet", "not-listed"} {
			r.answered("bob", route.path, strings.ReplaceAll(route.body, "opus", model))
			r.wantLine("turn", "ok")
		}
		r.answered("ann", route.path, route.body)
		r.wantLine("turn", "ok")
	}
	for _, version := range []string{"", "2023-06-01"} {
		for key, want := range map[string]string{"bob": "sonnet another not-listed", "ann": "opus sonnet"} {
			got := r.ask("GET", "/v1/models", "", "X-Api-Key", key, "Anthropic-Version", version)
			for _, name := range []string{"opus", "sonnet", "another", "not-listed"} {
				if strings.Contains(got.body, `"id":"`+name+`"`) != strings.Contains(want, name) {
					t.Errorf("%s gets %s", key, got.body)
				}
				one := r.ask("GET", "/v1/models/"+name, "", "X-Api-Key", key, "Anthropic-Version", version)
				if (one.status == http.StatusOK) != strings.Contains(want, name) {
					t.Errorf("%s gets %d for %s", key, one.status, name)
				}
			}
		}
	}
}

// TestKeysChange checks that keys come and go while the server runs: a turn may end, and
// without any key nobody gets in.
func TestKeysChange(t *testing.T) {
	r := start(t, Options{Loopback: true}, oneSlot)
	status := func(key string) int { return r.ask("GET", "/v1/models", "", "X-Api-Key", key).status }
	if got := status("any"); got != http.StatusOK {
		t.Errorf("without keys: %d", got)
	}
	r.server.SetKeys([]config.Key{limited("bob", quota.Limits{}), limited("ann", quota.Limits{})})
	if bob, other := status("bob"), status("any"); bob != http.StatusOK || other != http.StatusUnauthorized {
		t.Errorf("with keys: %d and %d", bob, other)
	}
	sessions := make(chan *fakeSession, 1)
	go func() {
		session := <-r.backend.started
		session.say(turn.Started{}, turn.Delta{Text: "x"})
		sessions <- session
	}()
	res := r.with(t.Context(), "bob", turnRoutes[0].path, turnRoutes[0].body)
	session := <-sessions
	r.server.SetKeys(nil)
	for _, key := range []string{"bob", "ann", "any", ""} {
		if got := status(key); got != http.StatusUnauthorized {
			t.Errorf("after the last key has gone %q gets %d", key, got)
		}
	}
	if got := r.ask("GET", "/healthz", ""); got.status != http.StatusOK {
		t.Errorf("got %+v", got)
	}
	session.say(finished)
	if got := read(res); !strings.Contains(got.body, "[DONE]") {
		t.Errorf("the turn did not end well: %s", got.body)
	}
}

// TestUsageOfBrokenTurns checks that a client does not get by its budget by going, and pays
// nothing for what the upstream refused.
func TestUsageOfBrokenTurns(t *testing.T) {
	for _, test := range []struct {
		name   string
		events []turn.Event
		err    error // nil for a client that goes
		paid   bool
	}{
		{"refused", []turn.Event{turn.Started{}}, &turn.Error{Kind: turn.RateLimited}, false},
		{"broken off", []turn.Event{turn.Started{}, turn.Delta{Text: "some text"}}, &turn.Error{Kind: turn.Upstream}, true},
		{"left before it started", nil, nil, false},
		{"left before the first text", []turn.Event{turn.Started{}}, nil, true},
		{"left in the text", []turn.Event{turn.Started{}, turn.Delta{Text: "some text"}}, nil, true},
	} {
		traces, observed := traceOptions()
		observed.Keys = []config.Key{limited("bob", quota.Limits{TokensPerDay: 1})}
		r := start(t, observed, oneSlot)
		ctx, cancel := context.WithCancel(t.Context())
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/messages", strings.NewReader(wholeMessage))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("X-Api-Key", "bob")
			if res, err := r.client.Do(req); err == nil {
				read(res)
			}
		}()
		session := <-r.backend.started
		session.say(test.events...)
		if test.err != nil {
			session.steps <- step{err: test.err}
		} else {
			cancel()
		}
		told := untilOver(traces)
		used := told[len(told)-1].Usage
		if used.Estimated != test.paid || (used.Input > 0) != test.paid || (used.Output > 0) != (test.paid && len(test.events) > 1) {
			t.Errorf("%s: used %+v", test.name, used)
		}
		cancel()
		<-sent
		r.wantFree()
		if test.paid {
			r.wantLimited("bob", "/v1/messages", wholeMessage, "1 tokens a day")
		} else {
			r.answered("bob", "/v1/messages", wholeMessage)
		}
	}
}

// TestCallersAreApart checks that each key is a caller of its own, by which the sessions
// that are kept are told apart, also when it takes the place of another of its name.
func TestCallersAreApart(t *testing.T) {
	named := func(name, key string) config.Key {
		return config.Key{Name: name, Hash: sha256.Sum256([]byte(key))}
	}
	r := start(t, Options{Keys: []config.Key{named("bob", "one"), named("ann", "two")}}, oneSlot)
	caller := func(key string) string {
		callers := make(chan string, 1)
		go func() {
			session := <-r.backend.started
			callers <- session.request.Caller
			session.say(finished)
		}()
		read(r.with(t.Context(), key, turnRoutes[0].path, turnRoutes[0].body))
		return <-callers
	}
	bob, ann, again := caller("one"), caller("two"), caller("one")
	r.server.SetKeys([]config.Key{named("bob", "three")})
	if next := caller("three"); bob == "" || bob == ann || bob != again || next == bob || next == ann {
		t.Errorf("the callers are %q, %q, %q, %q", bob, ann, again, next)
	}
}
