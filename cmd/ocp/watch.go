package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"ocp/internal/claude"
	"ocp/internal/terminal/tmux"
	"ocp/internal/watch"
)

// watchCommand shows what a session of a running `ocp serve` shows. It can only look.
type watchCommand struct {
	Session string `arg:"" optional:"" help:"The session, or how its id begins. Without one, those that run are listed."`
	stateFlag
}

func (c *watchCommand) Run(ctx context.Context, p program) error {
	if c.StateDir == "" {
		c.StateDir = claude.DefaultStateDir(p.env)
	}
	socket := claude.ControlSocket(c.StateDir)
	list, err := watch.Sessions(ctx, socket)
	if errors.Is(err, watch.ErrNobody) {
		return fmt.Errorf("no ocp serve is running with the state directory %q: name another with --state-dir", c.StateDir)
	}
	if err != nil {
		return err
	}
	if c.Session == "" {
		return writeSessions(p.stdout, list.Sessions)
	}
	named := slices.DeleteFunc(slices.Clone(list.Sessions), func(s watch.Session) bool { return !strings.HasPrefix(s.ID, c.Session) })
	if len(named) != 1 {
		return errors.Join(fmt.Errorf("%d sessions have an id that begins with %q; those that run are listed above", len(named), c.Session),
			writeSessions(p.stdout, list.Sessions))
	}
	if _, ok := screenRows(p.stdout); ok && list.Tmux != "" {
		return attach(ctx, p, list.Tmux, named[0].ID)
	}
	return mirror(ctx, p.stdout, socket, named[0].ID)
}

func writeSessions(w io.Writer, list []watch.Session) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "No session is running.")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SESSION\tSTATE\tAGE\tMODEL")
	for _, s := range list {
		model := s.Model
		if model == "" {
			model = "(the CLI's default)"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.ID, s.State, time.Since(s.Started).Round(time.Second), printable(model))
	}
	return table.Flush()
}

// attach shows the pane with tmux itself, which must be on PATH.
func attach(ctx context.Context, p program, server, pane string) error {
	path, _, err := tmux.Find(ctx, claude.Variable(p.env, "PATH"))
	if err != nil {
		return err
	}
	args := tmux.Attach(path, server, pane)
	cmd := exec.Command(args[0], args[1:]...) // Ctrl-C is tmux's
	// It may be run inside a tmux of the operator's own.
	cmd.Env = slices.DeleteFunc(slices.Clone(p.env), func(v string) bool { return strings.HasPrefix(v, "TMUX") })
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.stdin, p.stdout, p.stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("attach to session %s: %w", pane, err)
	}
	return nil
}

// mirror draws the screen at each change. Where there is no terminal to draw on, it writes
// one screen below the other.
func mirror(ctx context.Context, w io.Writer, socket, id string) error {
	const (
		enter = "\x1b[?1049h\x1b[?25l\x1b[?7l" // another screen, without cursor and line breaks
		leave = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	)
	_, drawn := screenRows(w)
	if drawn {
		fmt.Fprint(w, enter)
	}
	var err error
	for screen, failed := range watch.Screens(ctx, socket, id) {
		if err = failed; err != nil {
			break
		}
		if rows, ok := screenRows(w); ok {
			lines := strings.Split(drawable(screen), "\n")
			_, err = fmt.Fprint(w, "\x1b[H\x1b[2J", strings.Join(lines[max(0, len(lines)-rows):], "\r\n"))
		} else {
			_, err = fmt.Fprintf(w, "--- %s\n%s\n", time.Now().Format(time.TimeOnly), drawable(screen))
		}
		if err != nil {
			break
		}
	}
	if drawn {
		fmt.Fprint(w, leave)
	}
	if err == nil && ctx.Err() == nil {
		fmt.Fprintf(w, "Session %s has ended.\n", id)
	}
	return err
}

// drawable leaves out what a terminal would obey.
func drawable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return -1
		}
		return r
	}, s)
}

// screenRows is how many rows the terminal has that w is, if it is one.
func screenRows(w io.Writer) (rows int, ok bool) {
	file, ok := w.(*os.File)
	if !ok {
		return 0, false
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Row == 0 {
		return 0, false
	}
	return int(size.Row), true
}

// watchable is the list of the launcher's sessions.
func watchable(l *claude.Launcher) func() watch.List {
	return func() watch.List {
		list := watch.List{Tmux: l.TmuxServer(), Sessions: []watch.Session{}}
		for _, s := range l.Live() {
			list.Sessions = append(list.Sessions, watch.Session{
				ID: s.ID, State: string(s.Phase), Model: s.Model, Started: s.Started, Screen: s.Screen, Ended: s.Ended,
			})
		}
		return list
	}
}
