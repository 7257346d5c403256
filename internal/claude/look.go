package claude

import (
	"errors"
	"fmt"

	"ocp/internal/turn"
)

// look ends a session that waits on a known dialog. Two looks in a row must show the
// same one, and the conversation must not be able to: a screen that is read while it is
// being drawn has the conversation on it and not yet the input box (seen on 2.1.207).
func (l *sessionLoop) look() {
	screen := l.terminal.Screen()
	d := dialogOn(screen)
	again := d != nil && d == l.seen
	l.seen = d
	if again && (!l.now.started() || d.late) && !d.quotedIn(l.now.conversation) {
		l.fail(d.kind, startFailed+d.meaning, nil)
		return
	}
	l.checkHooks(screen)
	l.checkTakenUp(screen)
}

// startFailed begins the messages of sessions that did not come to answer.
const startFailed = "the Claude Code session does not answer: "

// late ends a session that has not started in time.
func (l *sessionLoop) late() {
	if r := explain(l.terminal.Screen()); r != nil {
		l.fail(r.kind, startFailed+r.meaning, nil)
		return
	}
	if boxOn(l.terminal.Screen()) {
		l.fail(turn.SessionFailed, startFailed+hooksSilent, nil)
		return
	}
	cause := errors.New("no known reason on its screen")
	if err := l.feed.waiting(); err != nil {
		cause = err
	}
	l.fail(turn.SessionFailed, "the Claude Code session did not start in time", cause)
}

// exited tells the turn that the process is gone, and why as far as that is known.
func (l *sessionLoop) exited() {
	cause := fmt.Errorf("claude %s", l.terminal.Exit())
	if !l.now.started() && !l.now.working() {
		if r := explain(l.terminal.Screen()); r != nil {
			l.fail(r.kind, startFailed+r.meaning, cause)
			return
		}
		if err := l.feed.waiting(); err != nil {
			cause = fmt.Errorf("%w: %w", cause, err)
		}
	}
	l.take(l.now.turn.Exited(cause))
}

// notPrimed notes why a session has ended that was given no conversation.
func (l *sessionLoop) notPrimed(why string, exit fmt.Stringer) {
	attributes := []any{"session", shortID(l.id), "why", why}
	if exit != nil {
		attributes = append(attributes, "exit", exit.String())
	}
	if r := explain(l.terminal.Screen()); r != nil {
		attributes = append(attributes, "screen", r.meaning)
	}
	l.launcher.log.Warn("a primed session is of no use", attributes...)
}
