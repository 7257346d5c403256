package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"ocp/internal/turn"
)

// Reporter tells what only a backend knows.
type Reporter interface{ Report() Report }

// Report is the state of a backend. Its texts are for the operator and any client: they
// hold no path, no secret and nothing of a conversation.
type Report struct {
	CLIVersion string   // empty if it could not be read
	CLITested  bool     // it is one of those that ocp is tested with
	Checking   bool     // the check at the start is not over
	Faults     []string // why turns cannot be expected to go well
	Warnings   []string // what is not as it should be

	Plan string // as the CLI's start screen names it; empty if that was not seen

	HooksAccepted, HooksRefused int64 // calls
	SessionsStarted             int64 // processes of the CLI, ever

	Pool  PoolReport
	Kept  KeptReport
	Usage UsageReport
}

// UsageReport is the state of what is written down of turns.
type UsageReport struct {
	Unwritten int64 `json:"unwritten"` // turns that are not in the store yet
	Failures  int64 `json:"failures"`  // writes that have failed and were tried again
}

// PoolReport is the state of the sessions that are primed ahead of their requests.
type PoolReport struct {
	Primed  int   `json:"primed"`
	Hits    int64 `json:"hits"`    // requests that one was waiting for
	Misses  int64 `json:"misses"`  // requests that one was started for
	Renewed int64 `json:"renewed"` // replaced for their age
	Died    int64 `json:"died"`    // ended by themselves while they waited
}

// KeptReport is the state of the sessions that stay for their conversation to go on.
type KeptReport struct {
	Off     string `json:"off,omitempty"` // why none is kept
	Waiting int    `json:"waiting"`
	Hits    int64  `json:"hits"`    // requests that went on in one
	Evicted int64  `json:"evicted"` // closed to make room for another
	Expired int64  `json:"expired"` // closed because nobody asked for them
	Died    int64  `json:"died"`    // ended by themselves while they waited
}

// Readiness is the body of /readyz.
type Readiness struct {
	Status  string   `json:"status"` // ready, checking or not_ready
	Reasons []string `json:"reasons,omitempty"`
}

// Status is the state of a server, the body of /status.
type Status struct {
	Readiness
	Version       string `json:"version"`
	UptimeSeconds int64  `json:"uptime_seconds"`
	CLI           struct {
		Version    string `json:"version"`
		Tested     bool   `json:"tested"`
		Plan       string `json:"plan,omitempty"`       // as its start screen names it
		Entrypoint string `json:"entrypoint,omitempty"` // as its last answer's transcript names it
	} `json:"cli"`
	Sessions struct {
		Running int   `json:"running"`
		Waiting int   `json:"waiting"` // requests without a session yet
		Started int64 `json:"started"` // processes, ever
	} `json:"sessions"`
	Limits struct {
		Slots int `json:"slots"`
		Queue int `json:"queue"`
	} `json:"limits"`
	Turns       map[string]int64 `json:"turns"`       // by outcome
	InputDiffs  int64            `json:"input_diffs"` // messages that the CLI recorded otherwise than the client sent them
	LastFailure *Failure         `json:"last_failure"`
	HookCalls   struct {
		Accepted int64 `json:"accepted"`
		Refused  int64 `json:"refused"`
	} `json:"hook_calls"`
	Pool     PoolReport  `json:"pool"`
	Kept     KeptReport  `json:"kept"`
	Usage    UsageReport `json:"usage"`
	Warnings []string    `json:"warnings"`
}

// readyz answers 200 if a turn can be expected to go well. Who has no key, such as a load
// balancer, is not told why not.
func (s *Server) readyz(x *exchange) error {
	ready := s.readiness(s.report(), s.tally.snapshot())
	if s.guard(x) != nil {
		x.w.Header().Del("WWW-Authenticate")
		ready.Reasons = nil
	}
	code := http.StatusOK
	if ready.Status != "ready" {
		code = http.StatusServiceUnavailable
	}
	return s.writeState(x, code, ready)
}

func (s *Server) status(x *exchange) error {
	return s.writeState(x, http.StatusOK, s.Status())
}

// Status returns the state now.
func (s *Server) Status() Status {
	report, turns, gate := s.report(), s.tally.snapshot(), s.options.Admission.Stats()
	body := Status{
		Readiness:     s.readiness(report, turns),
		Version:       s.options.Version,
		UptimeSeconds: int64(time.Since(s.started) / time.Second),
		Turns:         turns.outcomes,
		InputDiffs:    turns.inputDiffs,
		Pool:          report.Pool,
		Kept:          report.Kept,
		Usage:         report.Usage,
		LastFailure:   turns.last,
		Warnings:      append(append([]string{}, report.Warnings...), warnings(turns)...), // never null
	}
	if body.Turns == nil {
		body.Turns = map[string]int64{}
	}
	body.CLI.Version, body.CLI.Tested = report.CLIVersion, report.CLITested
	body.CLI.Plan, body.CLI.Entrypoint = report.Plan, turns.entrypoint
	body.Sessions.Running, body.Sessions.Waiting, body.Sessions.Started = gate.Running, gate.Waiting, report.SessionsStarted
	body.Limits.Slots, body.Limits.Queue = s.options.Admission.Limits()
	body.HookCalls.Accepted, body.HookCalls.Refused = report.HooksAccepted, report.HooksRefused
	return body
}

func (s *Server) report() Report {
	if reporter, ok := s.options.Backend.(Reporter); ok {
		return reporter.Report()
	}
	return Report{}
}

func (s *Server) readiness(report Report, turns snapshot) Readiness {
	reasons := slices.Clone(report.Faults)
	if turns.refused {
		reasons = append(reasons, "the upstream has refused the credentials within the last minute, and no turn has gone well since: check the key, token or login of the CLI")
	}
	if s.ending() {
		reasons = append(reasons, "the server is shutting down")
	}
	switch {
	case len(reasons) > 0:
		return Readiness{"not_ready", reasons}
	case report.Checking:
		return Readiness{"checking", []string{"the check of the Claude Code CLI at the start is not over"}}
	}
	return Readiness{Status: "ready"}
}

// warnings are those that the turns give cause for.
func warnings(turns snapshot) []string {
	var list []string
	if turns.inputDiffs > 0 {
		list = append(list, fmt.Sprintf("%d messages reached the model otherwise than the client sent them, by the CLI's own records", turns.inputDiffs))
	}
	if n := turns.outcomes[string(turn.Diverged)]; n > 0 {
		list = append(list, fmt.Sprintf("%d answers were broken off because the streamed text was not the transcript's", n))
	}
	return list
}

func (s *Server) writeState(x *exchange, code int, state any) error {
	body, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	x.w.Header().Set("Cache-Control", "no-store")
	return s.writeJSON(x, code, body)
}
