package claude

import (
	"slices"
	"time"
)

// Phase is how far a session has come.
type Phase string

// The phases of a session. One that is lent before it is primed runs from then on.
const (
	Starting Phase = "starting"
	Primed   Phase = "primed"  // it waits for a conversation
	Running  Phase = "running" // it answers
	Kept     Phase = "kept"    // it has answered, and waits for its conversation to go on
	Ending   Phase = "ending"
)

// Live is a session that runs, as its operator may see it.
type Live struct {
	ID      string // the part that names it in the log
	Phase   Phase
	Model   string // as it was asked for; empty for the CLI's own default
	Started time.Time
	Screen  func() string
	Ended   <-chan struct{}
}

// Live lists the sessions that run now, the oldest first.
func (l *Launcher) Live() []Live {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Live, 0, len(l.live))
	for s := range l.live {
		phase, _ := s.phase.Load().(Phase)
		list = append(list, Live{
			ID: shortID(s.id), Phase: phase, Model: s.key.Model, Started: s.spawned, Screen: s.Screen, Ended: s.terminal.Done(),
		})
	}
	slices.SortFunc(list, func(a, b Live) int { return a.Started.Compare(b.Started) })
	return list
}

// TmuxServer is the name of the tmux server in whose panes the sessions run, each in a
// session of tmux with the ID of Live; empty if they run under pseudo-terminals.
func (l *Launcher) TmuxServer() string {
	if l.panes == nil {
		return ""
	}
	return tmuxName(l.state.root)
}

// ControlSocket is where this ocp may tell of its sessions: see the function of that name.
func (l *Launcher) ControlSocket() string { return l.socket(controlSocket) }

func (l *Launcher) track(s *Session) {
	s.phase.Store(Starting)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live[s] = struct{}{}
}

func (l *Launcher) untrack(s *Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.live, s)
}
