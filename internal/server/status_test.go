package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ocp/internal/admission"
	"ocp/internal/config"
	"ocp/internal/turn"
)

// reporting is a fake backend that is a Reporter.
type reporting struct {
	*fakeBackend
	report Report
}

func (b *reporting) Report() Report { return b.report }

// startReporting is a rig with such a backend.
func startReporting(t *testing.T, o Options, report Report) (*rig, *reporting) {
	t.Helper()
	r := start(t, o, admission.Options{Slots: 2, Queue: 5})
	b := &reporting{r.backend, report}
	r.server.options.Backend = b
	return r, b
}

// fail makes one turn fail, or end well if err is nil.
func (r *rig) fail(err error) {
	r.t.Helper()
	got := r.send(r.t.Context(), wholeBody)
	s := <-r.backend.started
	if err != nil {
		s.steps <- step{err: err}
	} else {
		s.say(finished)
	}
	<-got
	r.turnEnded()
}

// turnEnded waits for a turn's log line, behind which it is counted.
func (r *rig) turnEnded() {
	for line := range r.lines {
		if line["msg"] == "turn" {
			return
		}
	}
}

func (r *rig) wantReady(code int, status, reason string) {
	r.t.Helper()
	got := r.do("GET", "/readyz", "", "")
	var body Readiness
	if err := json.Unmarshal([]byte(got.body), &body); err != nil || got.status != code || body.Status != status ||
		(reason == "") != (len(body.Reasons) == 0) || !strings.Contains(strings.Join(body.Reasons, "\n"), reason) {
		r.t.Errorf("got %d %s (%v), want %d %s with %q", got.status, got.body, err, code, status, reason)
	}
}

func TestReadyz(t *testing.T) {
	r, b := startReporting(t, Options{}, Report{Checking: true})
	r.wantReady(503, "checking", "start")
	b.report.Checking = false
	r.wantReady(200, "ready", "")
	b.report.Warnings = []string{"odd"}
	r.wantReady(200, "ready", "")
	b.report.Faults = []string{"no hooks", "no version"}
	r.wantReady(503, "not_ready", "no hooks\nno version")
	b.report.Faults = nil

	r.fail(&turn.Error{Kind: turn.Authentication, Message: "refused"})
	r.wantReady(503, "not_ready", "credentials")
	r.fail(&turn.Error{Kind: turn.RateLimited, Message: "limit"})
	r.wantReady(503, "not_ready", "credentials")
	r.fail(nil)
	r.wantReady(200, "ready", "")
	r.fail(&turn.Error{Kind: turn.RateLimited, Message: "limit"})
	r.wantReady(200, "ready", "")

	if err := r.server.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	r.wantReady(503, "not_ready", "shutting down")
}

func TestStatus(t *testing.T) {
	r, _ := startReporting(t, Options{}, Report{
		CLIVersion: "2.1.332", CLITested: true, Warnings: []string{"odd"}, HooksAccepted: 7, HooksRefused: 1,
	})
	get := func() (body Status) {
		t.Helper()
		got := r.do("GET", "/status", "", "")
		if err := json.Unmarshal([]byte(got.body), &body); err != nil || got.status != http.StatusOK || got.header.Get("Cache-Control") != "no-store" {
			t.Fatalf("got %+v (%v)", got, err)
		}
		return body
	}
	got := get()
	if got.Status != "ready" || got.Version != "1.2.3" || got.CLI.Version != "2.1.332" || !got.CLI.Tested ||
		got.Limits.Slots != 2 || got.Limits.Queue != 5 || got.HookCalls.Accepted != 7 || got.HookCalls.Refused != 1 ||
		got.LastFailure != nil || len(got.Turns) != 0 || !slices.Equal(got.Warnings, []string{"odd"}) {
		t.Errorf("got %+v", got)
	}

	r.fail(nil)
	r.fail(&turn.Error{Kind: turn.Upstream, Message: "it broke"})
	r.fail(&turn.Error{Kind: turn.InvalidRequest, Message: "API Error: a secret is wrong"})
	if got := get(); got.LastFailure == nil || got.LastFailure.Kind != "invalid_request" || got.LastFailure.Message != "" {
		t.Errorf("got %+v", got.LastFailure)
	}
	r.fail(&turn.Error{Kind: turn.Diverged, Message: "not the transcript's"})
	changed := finished
	changed.Stats.InputDiffs = 2
	r.wantFree()
	running := r.send(t.Context(), wholeBody)
	s := <-r.backend.started
	if got := get(); got.Sessions.Running != 1 || got.Sessions.Waiting != 0 {
		t.Errorf("got %+v", got.Sessions)
	}
	s.say(changed)
	<-running
	r.turnEnded()
	got = get()
	want := map[string]int64{"ok": 2, "upstream": 1, "invalid_request": 1, "diverged": 1}
	for kind, n := range want {
		if got.Turns[kind] != n {
			t.Errorf("%s: %d, want %d", kind, got.Turns[kind], n)
		}
	}
	if f := got.LastFailure; len(got.Turns) != len(want) || f.Kind != "diverged" || f.Message != "not the transcript's" || f.At.IsZero() {
		t.Errorf("got %+v, %+v", got.Turns, f)
	}
	if len(got.Warnings) != 3 || !strings.HasPrefix(got.Warnings[1], "2 messages") || !strings.HasPrefix(got.Warnings[2], "1 answers") {
		t.Errorf("got %q", got.Warnings)
	}
}

// TestStatusWithoutWarnings checks that a list without elements is one all the same.
func TestStatusWithoutWarnings(t *testing.T) {
	r, _ := startReporting(t, Options{}, Report{})
	if got := r.do("GET", "/status", "", ""); !strings.Contains(got.body, `"warnings":[]`) {
		t.Errorf("got %s", got.body)
	}
}

// TestStatusOfClients checks that what clients do is counted and is no failure.
func TestStatusOfClients(t *testing.T) {
	r, _ := startReporting(t, Options{}, Report{})
	ctx, cancel := context.WithCancel(t.Context())
	gone := r.send(ctx, wholeBody)
	<-r.backend.started
	cancel()
	<-gone
	r.wantLine("turn", "canceled")
	r.do("POST", "/v1/chat/completions", "", "{}")
	if got := r.server.tally.snapshot(); got.last != nil || got.outcomes["canceled"] != 1 || len(got.outcomes) != 1 {
		t.Errorf("got %+v", got)
	}
}

// TestStateNeedsAKey checks that who has no key learns whether turns go well, and no more.
func TestStateNeedsAKey(t *testing.T) {
	r, b := startReporting(t, Options{Keys: []config.Key{key("k")}}, Report{})
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/status": 401} {
		if got := r.do("GET", path, "", ""); got.status != want {
			t.Errorf("%s: got %+v", path, got)
		}
	}
	b.report.Faults = []string{"a reason"}
	if got := r.do("GET", "/readyz", "", ""); got.status != 503 || got.body != `{"status":"not_ready"}` || got.header.Get("WWW-Authenticate") != "" {
		t.Errorf("without a key: %+v", got)
	}
	if got := r.ask("GET", "/readyz", "", "X-Api-Key", "k"); got.status != 503 || got.body != `{"status":"not_ready","reasons":["a reason"]}` {
		t.Errorf("with a key: %+v", got)
	}
}

// TestRefusalEnds checks that a server which nothing is sent to becomes ready again.
func TestRefusalEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns tally
		turns.count(&turnRecord{}, &turn.Error{Kind: turn.Authentication})
		for _, step := range []struct {
			after   time.Duration
			refused bool
		}{{0, true}, {refusedFor - 1, true}, {1, false}} {
			time.Sleep(step.after)
			if got := turns.snapshot().refused; got != step.refused {
				t.Errorf("%s later it is %v", step.after, got)
			}
		}
	})
}
