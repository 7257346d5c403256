package claude

import (
	"crypto/sha256"
	"encoding/hex"

	"ocp/internal/terminal"
	"ocp/internal/terminal/tmux"
)

// Terminal is what a session needs of the terminal that its process runs under. It is a
// *terminal.Terminal or a *tmux.Terminal.
type Terminal interface {
	Pid() int
	Screen() string
	Write(keys []byte) (int, error)
	Kill()
	Close() error
	Done() <-chan struct{}
	Exit() terminal.Exit
}

func (l *Launcher) startTerminal(id string, o terminal.Options) (Terminal, error) {
	if l.panes != nil {
		return orNil(l.panes.Start(shortID(id), o))
	}
	return orNil(terminal.Start(o))
}

// orNil returns no terminal with an error, where the interface would hold a nil pointer.
func orNil[T Terminal](t T, err error) (Terminal, error) {
	if err != nil {
		return nil, err
	}
	return t, nil
}

// openPanes starts the tmux server of the sessions, if they are to have one. One that an
// earlier ocp left is ended in any case.
func (l *Launcher) openPanes() error {
	name := tmuxName(l.state.root)
	if l.options.Tmux == "" {
		return tmux.Sweep("", name)
	}
	var err error
	l.panes, err = tmux.Listen(tmux.Options{
		Program: l.options.Tmux, Name: name, Pane: l.options.PaneCommand, Socket: l.socket(paneSocket),
	})
	return err
}

// tmuxName is the name of a state directory's tmux server, for `tmux -L`.
func tmuxName(root string) string {
	sum := sha256.Sum256([]byte(root))
	return "ocp-" + hex.EncodeToString(sum[:4])
}
