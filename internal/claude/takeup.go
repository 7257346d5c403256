package claude

import (
	"fmt"
	"strings"
	"time"

	"ocp/internal/transcript"
	"ocp/internal/turn"
)

// takeUpBoots is how many times as long as its boot, from the conversation to
// SessionStart, a session may idle before its turn counts as not taken up. It makes the
// bound grow with the load of the machine.
const takeUpBoots = 4

// takeUp tells whether the CLI has left the conversation alone.
//
// A turn that runs shows itself: both versions write a file-history-snapshot record
// before they ask the upstream, and draw something new on the screen all the time, 200
// bytes a second at least, however long the upstream is silent. A CLI that waits for
// input writes nothing into the transcript and, once booted, nothing on the screen
// (measured on 2.1.207 and 2.1.332: one footer of 60 bytes in 20 s). So only looks that
// find the screen as the one before found it count, and no record or hook call between.
// The time that ocp itself was kept from looking does not count.
type takeUp struct {
	screen string        // at the last look
	stirs  int           // hook calls and records by the last look
	idle   time.Duration // in all
}

// look takes note of a look at the screen.
func (u *takeUp) look(screen string, stirs int) {
	if screen == u.screen && stirs == u.stirs {
		u.idle += lookEvery
	}
	u.screen, u.stirs = screen, stirs
}

// ofTurn reports whether a record shows that a turn runs. The CLI also writes records
// without one: custom-title, agent-name, atis-latch.
func ofTurn(r transcript.Record) bool {
	switch r.Type {
	case "file-history-snapshot", "assistant":
		return true
	}
	return strings.HasPrefix(r.Type, "api-request")
}

// checkTakenUp ends a session that has started and idles.
func (l *sessionLoop) checkTakenUp(screen string) {
	stages := &l.now.stages
	if stages.Ready.IsZero() || stages.Taken.IsZero() || l.check {
		return
	}
	l.takeUp.look(screen, l.stirs)
	bound := max(l.launcher.options.TakeUpTimeout, takeUpBoots*stages.Ready.Sub(stages.Taken))
	if l.takeUp.idle >= bound {
		why := "it has not taken the conversation up"
		if !l.route.Listed() {
			why = "it has not asked for the client's tools"
		}
		l.fail(turn.SessionFailed, startFailed+why,
			fmt.Errorf("it idled for %s, with %d records and hook calls", l.takeUp.idle, l.stirs))
	}
}
