package claude

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ocp/internal/hook"
	"ocp/internal/prompt"
	"ocp/internal/turn"
)

const (
	// checkGrace is what the session of a check gets to end by itself: its SessionEnd is
	// the proof that http hooks arrive. It comes 70 ms after SIGTERM, and up to 2 s on a
	// loaded machine (facts, section 14); one that does not end proves nothing.
	checkGrace = 15 * time.Second
	// silentLooks is how many looks must find the input box before it is concluded that no
	// SessionStart will come. The hook comes up to 0.3 s before or after the box is drawn
	// on a quiet machine (facts, section 13).
	silentLooks = 10
)

// noLogin is a warning and no fault: where the CLI keeps its login is its own affair.
const noLogin = "no login was found: log in with the Claude Code CLI, or give ocp a key or token in its environment"

// answeredAlready is a conversation in which it is the user's turn: no turn is run on
// it, and nothing asked of the upstream (facts, section 17).
var answeredAlready = prompt.Conversation{Messages: []prompt.Message{
	{Role: prompt.User, Content: []prompt.Block{prompt.Text("Ready?")}},
	{Role: prompt.Assistant, Content: []prompt.Block{prompt.Text("Ready.")}},
}}

// Check starts a session in which no turn runs, ends it when its SessionStart has come,
// and notes for Health what was found. It costs no tokens. An error is a *turn.Error and
// says why requests would fail, or that hooks do not reach ocp, so that answers are not
// streamed; once ctx has ended, it says nothing of the CLI and nothing is noted.
func (l *Launcher) Check(ctx context.Context) error {
	return l.checkWith(ctx, prompt.Request{Conversation: answeredAlready})
}

func (l *Launcher) checkWith(ctx context.Context, req prompt.Request) error {
	l.health.setChecking(true)
	defer l.health.setChecking(false)
	if err := ctx.Err(); err != nil {
		return &turn.Error{Kind: turn.Canceled, Message: "the check was called off", Err: context.Cause(ctx)}
	}
	s, err := l.start(l.Key(req), true)
	if err != nil {
		failed := &turn.Error{Kind: turn.SessionFailed, Message: "no Claude Code session could be started", Err: err}
		l.health.checked(failed, shown{})
		return failed
	}
	defer context.AfterFunc(ctx, s.terminal.Kill)()
	if err = s.Give(ctx, req.Conversation, turn.Cold); err == nil {
		_, err = s.Next(ctx)
	}
	if err == nil {
		l.health.setPlan(s.plan(ctx))
	}
	if err := s.Close(); err != nil {
		l.log.Warn("the session of the check did not close well", "session", shortID(s.id), "err", err)
	}
	failed, _ := errors.AsType[*turn.Error](err)
	if ctx.Err() != nil {
		return &turn.Error{Kind: turn.Canceled, Message: "the check was called off", Err: context.Cause(ctx)}
	}
	var boot time.Duration
	if ready := s.running.stages.Ready; !ready.IsZero() {
		boot = ready.Sub(s.spawned)
	}
	l.health.checked(failed, shown{boot: boot, silent: s.hooksSilent, http: failed == nil && s.unanswered, others: s.answered})
	if failed != nil {
		return failed
	}
	return nil
}

// checkHooks ends the session of a check that is up and whose SessionStart does not come.
func (l *sessionLoop) checkHooks(screen string) {
	if !l.check || l.now.started() || !boxOn(screen) {
		return
	}
	if l.boxes++; l.boxes >= silentLooks {
		l.hooksSilent = true
		l.fail(turn.SessionFailed, startFailed+hooksSilent, nil)
	}
}

// noteFarewell looks for the SessionEnd of a check's session, which has ended. A session
// that had to be killed proves nothing.
func (s *Session) noteFarewell() {
	if !s.check {
		return
	}
	for {
		select {
		case e := <-s.route.Events():
			if e.Name == hook.SessionEnd {
				s.answered = true
				return
			}
		default:
			s.unanswered = s.terminal.Exit().Signal == 0
			return
		}
	}
}

// boxOn reports whether the screen shows the input box: its last cursor stands between
// two rules.
func boxOn(screen string) bool {
	lines := strings.Split(screen, "\n")
	for i, line := range slices.Backward(lines) {
		if strings.HasPrefix(strings.TrimSpace(line), cursor) {
			return i > 0 && isRule(strings.TrimSpace(lines[i-1])) && slices.ContainsFunc(lines[i:], isRule)
		}
	}
	return false
}

// loggedIn reports whether there may be a login.
func (l *Launcher) loggedIn() bool { return l.private() || FindLogin(l.options.Env).Found() }

// configFile is the operator's .claude.json.
func configFile(env []string) string {
	if dir, ok := lookup(env, "CLAUDE_CONFIG_DIR"); ok {
		return filepath.Join(dir, ".claude.json")
	}
	home, _ := lookup(env, "HOME")
	return filepath.Join(home, ".claude.json")
}
