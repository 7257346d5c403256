package claude

import (
	"log/slog"
	"sync"
	"time"

	"ocp/internal/hook"
	"ocp/internal/turn"
)

// Health is what is known of the CLI and of the way to and from it. No text in it holds
// a path or a secret.
type Health struct {
	CLIVersion string // as the CLI said it last; empty if it is not known
	Plan       string // as the start screen of the last Check named it; empty if it was not seen
	Checking   bool   // a Check runs
	Faults     []string
	Warnings   []string
	Hooks      hook.Stats
	Sessions   int64 // processes started, ever

	// What the last Check has measured and what sessions have shown since.
	Boot       time.Duration // from a session's launch to its SessionStart; 0 if none came
	Silent     bool          // no hook call reaches ocp
	HTTPSilent bool          // SessionStart reaches ocp, which goes by command, and no http hook does
	Proved     bool          // another hook than SessionStart has reached ocp
}

// The words for what is wrong with hooks, and what to do about it.
const (
	hooksSilent = "its hooks do not reach ocp: a policy of this machine (managed settings) may forbid them, and has to allow them"
	unstreamed  = "a session has answered from its transcript alone, whole and not streamed, since "
	httpSilent  = "http hooks do not reach ocp, so answers come whole and not streamed: start it with --hook-transport command"
)

// health gathers what sessions show. A session that starts takes back what an earlier one
// has shown of the start.
type health struct {
	log *slog.Logger

	mu       sync.Mutex
	version  string // guarded by mu, as all below
	checking bool
	fault    string // why no session starts
	silent   bool   // no hook call reaches ocp
	http     bool   // SessionStart reaches ocp and no other hook call does
	loggedIn bool   // something of a login was found, or none is needed
	boot     time.Duration
	proved   bool
	plan     string
}

// started is told of each SessionStart.
func (h *health) started() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault, h.silent = "", false
}

// answered is told of each turn that ended well: the CLI's version, and whether
// SessionStart and any other hook call have come. A turn that ended is proof of a start.
func (h *health) answered(version string, started, others bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if version != "" {
		h.version = version
	}
	h.fault = ""
	silent, http := !started && !others, started && !others
	if silent && !h.silent {
		h.log.Warn(unstreamed + hooksSilent)
	}
	if http && !h.http {
		h.log.Warn(httpSilent)
	}
	h.silent, h.http, h.proved = silent, http, others
}

// shown is what the session of a Check has shown: see Health.
type shown struct {
	boot                 time.Duration
	silent, http, others bool
}

// checked is told what a Check has found, which its caller logs.
func (h *health) checked(err *turn.Error, s shown) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = ""
	if err != nil && !s.silent {
		h.fault = err.Message
	}
	h.silent, h.http, h.proved, h.boot = s.silent, s.http, s.others, s.boot
}

func (h *health) setChecking(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checking = on
}

func (h *health) setPlan(plan string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.plan = plan
}

// Health returns what is known now.
func (l *Launcher) Health() Health {
	h := &l.health
	h.mu.Lock()
	defer h.mu.Unlock()
	state := Health{CLIVersion: h.version, Plan: h.plan, Sessions: l.started.Load(), Checking: h.checking, Hooks: l.hooks.Stats(), Boot: h.boot, Silent: h.silent, HTTPSilent: h.http, Proved: h.proved}
	if h.version == "" {
		state.Faults = append(state.Faults, "the version of the Claude Code CLI could not be read")
	} else if !Tested(h.version) {
		state.Warnings = append(state.Warnings, "ocp was not tested with Claude Code "+h.version)
	}
	if h.fault != "" {
		state.Faults = append(state.Faults, h.fault)
	}
	if h.silent {
		state.Faults = append(state.Faults, "the Claude Code session is up, and "+hooksSilent)
		state.Warnings = append(state.Warnings, "answers come from the transcript alone, whole and not streamed: hooks are silent")
	}
	if h.http {
		state.Warnings = append(state.Warnings, httpSilent)
	}
	if !h.loggedIn {
		state.Warnings = append(state.Warnings, noLogin)
	}
	return state
}
