package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"ocp/internal/messagesapi"
)

// failure is a scenario in which the model does not answer as it should, and what a
// client gets of it.
type failure struct {
	scenario string
	status   int    // of an error; 200 for an answer
	kind     string // the error's type
	code     string // the error's code
	finish   string // finish_reason of an answer
	text     string // of an answer

	// unmarked: not every CLI marks this failure (2.1.207 writes no status for an error
	// event), and without a mark it is an upstream error like any other.
	unmarked bool
	// again: some CLIs ask once more by themselves. Then the answer is the text of both
	// messages with a blank line between.
	again bool
}

// failures are right by the design; TestFailures holds them against both CLIs.
func failures() []failure {
	always, _ := messagesapi.FindScenario("max-tokens-always")
	return []failure{
		{scenario: "unauthorized", status: 401, kind: "authentication_error", code: "upstream_authentication"},
		{scenario: "forbidden", status: 403, kind: "permission_error", code: "permission_denied"},
		{scenario: "not-found", status: 404, kind: "invalid_request_error", code: "model_not_found"},
		{scenario: "bad-request", status: 400, kind: "invalid_request_error", code: "upstream_invalid_request"},
		{scenario: "prompt-too-long", status: 400, kind: "invalid_request_error", code: "context_length_exceeded"},
		{scenario: "too-large", status: 413, kind: "invalid_request_error", code: "request_too_large"},
		{scenario: "rate-limited", status: 429, kind: "rate_limit_error", code: "rate_limit_exceeded"},
		{scenario: "server-error", status: 502, kind: "server_error", code: "upstream_error"},
		{scenario: "overloaded", status: 503, kind: "server_error", code: "overloaded"},
		{scenario: "cut-before", status: 502, kind: "server_error", code: "upstream_error"},
		{scenario: "cut-start", status: 502, kind: "server_error", code: "upstream_error"},
		{scenario: "cut-inside", status: 502, kind: "server_error", code: "upstream_error"},
		{scenario: "reset-inside", status: 502, kind: "server_error", code: "upstream_error"},
		{scenario: "cut-after", status: 502, kind: "server_error", code: "upstream_error"},
		{scenario: "end-inside", status: 502, kind: "server_error", code: "upstream_error"},
		{scenario: "malformed", status: 502, kind: "server_error", code: "upstream_error"},
		{scenario: "error-event", status: 503, kind: "server_error", code: "overloaded", unmarked: true},
		{scenario: "error-event-start", status: 503, kind: "server_error", code: "overloaded", unmarked: true},
		{scenario: "refusal", status: 200, finish: "content_filter", text: "I can tell you that "},
		{scenario: "max-tokens-always", status: 200, finish: "length", text: strings.Repeat(always.Text, 4)},
		{scenario: "empty", status: 200, finish: "stop"},
		{scenario: "no-blocks", status: 200, finish: "stop"},
		{scenario: "whitespace", status: 200, finish: "stop", text: "  \n \n ", again: true},
	}
}

// What the upstream does wrong reaches the client typed, in both modes, and half an
// answer never ends as a whole one.
func TestFailures(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{ahead: true, args: []string{"--concurrency", "3"}, script: scenarioByPrompt()})
		rows := failures()
		inParallel(2*len(rows), 3, func(i int) {
			row, streamed := rows[i/2], i%2 == 0
			x, err := p.ask(withPatience(t), streamed, "scenario "+row.scenario)
			if err == nil {
				err = row.check(x, streamed)
			}
			if err != nil {
				t.Errorf("%s, stream=%v: %v", row.scenario, streamed, err)
			}
		})
		p.log.waitFor(t, 2*len(rows), "msg=turn ")
		p.logRequests(t, rows)
	})
}

// logRequests says how often the CLI asked the model, by scenario: its own retries, which
// ocp turns off, would show here.
func (p *proxy) logRequests(t *testing.T, rows []failure) {
	t.Helper()
	var counts []string
	for _, row := range rows {
		n := 0
		for _, r := range p.model.Turns() {
			if strings.Contains(string(r.Body), `"scenario `+row.scenario+`"`) {
				n++
			}
		}
		counts = append(counts, fmt.Sprintf("%s %d", row.scenario, n))
	}
	t.Log("requests in two turns each: " + strings.Join(counts, ", "))
}

// check compares an exchange with what is right. A stream that has begun has status 200,
// the text sent before the break, and the error as its last frame.
func (f failure) check(x *exchange, streamed bool) error {
	if f.status == 200 {
		whole := x.text == f.text || f.again && x.text == f.text+"\n\n"+f.text
		if x.status != 200 || x.code != "" || x.finish != f.finish || !whole || x.done != streamed {
			return fmt.Errorf("status %d, error %q, finish_reason %q, text %q; want finish_reason %q and text %q: %s",
				x.status, x.code, x.finish, clip(x.text), f.finish, clip(f.text), x.lastBytes())
		}
		return nil
	}
	scenario, _ := messagesapi.FindScenario(f.scenario)
	if f.unmarked && x.code == "upstream_error" {
		f.status, f.code = 502, x.code
	}
	status := f.status
	if streamed && x.text != "" {
		status = 200
	}
	last := x.chunks[len(x.chunks)-1].Error
	switch {
	case last == nil || x.finish != "" || x.done:
		return fmt.Errorf("no error at the end: status %d, finish_reason %q: %s", x.status, x.finish, x.lastBytes())
	case x.status != status || x.code != f.code || last.Type != f.kind:
		return fmt.Errorf("status %d, type %q, code %q; want %d, %q, %q: %s", x.status, last.Type, x.code, status, f.kind, f.code, x.lastBytes())
	case !strings.HasPrefix(scenario.Partial, x.text):
		return fmt.Errorf("text %q before the break, said was %q", x.text, scenario.Partial)
	case !streamed && x.text != "":
		return fmt.Errorf("an error with an answer: %s", x.lastBytes())
	case last.Message == "":
		return fmt.Errorf("no message: %s", x.lastBytes())
	}
	if after := x.header.Get("Retry-After"); after != "" {
		if seconds, err := strconv.Atoi(after); err != nil || seconds < 1 {
			return fmt.Errorf("Retry-After %q", after)
		}
	}
	return nil
}

// A usage limit of an account's tells when it ends, and so does the error: the CLI records
// or words the time. Of other limits it tells nothing.
func TestUsageLimitTellsWhenItEnds(t *testing.T) {
	const prefix = "anthropic-ratelimit-unified-"
	limits := []struct {
		claim string
		ends  time.Duration
	}{
		{"five_hour", 133 * time.Minute},
		{"seven_day", 75 * time.Hour},
		{"seven_day_opus", 160 * time.Hour},
		{"", 0},
	}
	began := time.Now()
	ends := func(i int) time.Time { return began.Add(limits[i].ends) }
	script := messagesapi.ByRequest(func(r messagesapi.Request) messagesapi.Answer {
		text, i := r.Messages[0].Text(), 0
		if _, err := fmt.Sscanf(text[strings.LastIndex(text, "limit "):], "limit %d", &i); err != nil || limits[i].claim == "" {
			return messagesapi.ErrorAnswer(429, "Slow down · resets 11:11pm (UTC)", "Retry-After", "600")
		}
		return messagesapi.ErrorAnswer(429, "This request would exceed your account's rate limit",
			prefix+"status", "rejected", prefix+"representative-claim", limits[i].claim, prefix+"reset", strconv.FormatInt(ends(i).Unix(), 10))
	})
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{noKey: true, env: []string{"CLAUDE_CODE_OAUTH_TOKEN=made-up", "TZ=Asia/Kathmandu"}, script: script})
		inParallel(len(limits), 2, func(i int) {
			asked := time.Now()
			x, err := p.ask(withPatience(t), i%2 == 0, fmt.Sprintf("limit %d", i))
			if err != nil || x.status != 429 || x.code != "rate_limit_exceeded" {
				t.Errorf("limit %d: %+v, %v", i, x, err)
				return
			}
			given, _ := strconv.Atoi(x.header.Get("Retry-After"))
			if limits[i].claim == "" {
				if given != 0 {
					t.Errorf("no limit of the account's: Retry-After %d", given)
				}
				return
			}
			// The text of 2.1.207 leaves the seconds out.
			least, most := time.Until(ends(i)), ends(i).Sub(asked)+time.Minute
			if after := time.Duration(given) * time.Second; after < least-time.Second || after > most+time.Second {
				t.Errorf("%s: Retry-After %s, want %s to %s", limits[i].claim, after, least, most)
			}
		})
	})
}

// An upstream that is not there is its own failure and not the session's.
func TestUpstreamRefusesConnections(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{})
		p.model.Close()
		row := failure{scenario: "connection refused", status: 502, kind: "server_error", code: "upstream_error"}
		for _, streamed := range []bool{true, false} {
			x, err := p.ask(withPatience(t), streamed, "go")
			if err == nil {
				err = row.check(x, streamed)
			}
			if err != nil {
				t.Errorf("stream=%v: %v", streamed, err)
			}
		}
	})
}
