package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"ocp/internal/terminal"
)

const (
	// startBound is how long a pane may take to start its program.
	startBound = 10 * time.Second
	// killBound is how long a pane may take to tell of the end of a program that was
	// killed, before the pane is taken for dead. It takes up to a second where a process
	// that left the group holds the terminal open.
	killBound = 5 * time.Second
)

// Terminal is one program in a pane. Its methods are those of a terminal.Terminal.
type Terminal struct {
	server *Server
	name   string
	link   *link
	pid    int
	input  *terminal.Queue
	grace  time.Duration

	mu   sync.Mutex
	last string // what the screen showed last; guarded by mu

	closeOnce sync.Once
	exit      terminal.Exit // set by run before done is closed
	done      chan struct{}
}

// begin has a pane run its program.
func (s *Server) begin(name string, l *link, o terminal.Options) (*Terminal, error) {
	started, err := startIn(l, o)
	if err != nil {
		s.letGo(l)
		return nil, fmt.Errorf("tmux: start %s: %w", o.Path, err)
	}
	t := &Terminal{
		server: s, name: name, link: l, pid: started.Pid, grace: o.Grace,
		input: terminal.NewQueue(), done: make(chan struct{}),
	}
	go t.run()
	return t, nil
}

func startIn(l *link, o terminal.Options) (started message, err error) {
	dir := o.Dir
	if dir == "" {
		if dir, err = os.Getwd(); err != nil {
			return started, err
		}
	}
	if err := l.send(message{Run: &program{Path: o.Path, Args: o.Args, Env: o.Env, Dir: dir}}); err != nil {
		return started, err
	}
	if err := l.receive(&started, startBound); err != nil {
		return started, fmt.Errorf("the pane has not answered: %w", err)
	}
	switch {
	case started.Errno != 0:
		return started, started.Errno
	case started.Error != "":
		return started, errors.New(started.Error)
	}
	return started, nil
}

// run owns the terminal: it waits for the program's end, and for what it has started.
func (t *Terminal) run() {
	defer close(t.done)
	var wrote sync.WaitGroup
	wrote.Go(t.writeInput)

	var said message
	if err := t.link.receive(&said, 0); err != nil || said.Exit == nil {
		// The pane is gone or does not answer. Its program has lost its terminal, which
		// it may ignore. The pid is the program's still, unless it has died meanwhile and
		// the kernel has come round to the same number.
		_ = syscall.Kill(-t.pid, syscall.SIGKILL)
		said.Exit = &terminal.Exit{Code: -1}
	}
	t.exit = *said.Exit
	t.input.Close()
	wrote.Wait()
	// An escaped process may hold the pane's terminal, so that it would not go by itself.
	if screen, err := t.server.run("capture-pane", "-p", "-t", t.target(), ";", "kill-session", "-t", "="+t.name); err == nil {
		t.show(screen)
	}
	t.server.letGo(t.link)
}

// target names the session's one pane.
func (t *Terminal) target() string { return "=" + t.name + ":" }

// writeInput moves queued input into the pane. What cannot be moved has no reader.
func (t *Terminal) writeInput() {
	buf := make([]byte, 64<<10)
	for {
		n, ok := t.input.Take(buf)
		if !ok {
			return
		}
		_ = t.paste(string(buf[:n]))
	}
}

// paste writes bytes into the pane as they are. They go by standard input: a command line
// could be read by others.
func (t *Terminal) paste(keys string) error {
	ctx, cancel := context.WithTimeout(context.Background(), commandBound)
	defer cancel()
	cmd := command(ctx, t.server.options.Program, t.server.options.Name, false,
		"load-buffer", "-b", t.name, "-", ";", "paste-buffer", "-d", "-r", "-b", t.name, "-t", t.target())
	cmd.Stdin = strings.NewReader(keys)
	if said, err := cmd.CombinedOutput(); err != nil {
		return describe("paste-buffer", err, said)
	}
	return nil
}

// Write queues keys for the program, all of p or nothing. It never blocks: it fails with
// terminal.ErrBacklog when more than 1 MiB would be waiting for tmux to take it, and with
// terminal.ErrExited when the program has ended. What was queued reaches the program in
// order, if it reads it; until then it is in tmux's memory, which has no bound.
func (t *Terminal) Write(p []byte) (int, error) {
	if err := t.input.Put(p, terminal.MaxBacklog); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Screen returns the visible text: one line per row, joined by newlines, without spaces at
// line ends and without empty lines at the end. After the program's end it is the last
// screen. It asks tmux, which takes some milliseconds; if tmux does not answer, it is
// what tmux said before.
func (t *Terminal) Screen() string {
	select {
	case <-t.done:
	default:
		if screen, err := t.server.run("capture-pane", "-p", "-t", t.target()); err == nil {
			return t.show(screen)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// show notes what tmux says the screen is.
func (t *Terminal) show(captured string) string {
	lines := strings.Split(captured, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = strings.TrimRight(strings.Join(lines, "\n"), "\n")
	return t.last
}

// Pid returns the program's process id, which is also that of its process group. It is
// meaningless once Done is closed.
func (t *Terminal) Pid() int { return t.pid }

// Done is closed when the program has been reaped, its output has been drawn to the end,
// and the pane is gone.
func (t *Terminal) Done() <-chan struct{} { return t.done }

// Exit returns how the program ended. Until Done is closed, and if the pane was lost, it
// is a status with code -1 and no signal.
func (t *Terminal) Exit() terminal.Exit {
	select {
	case <-t.done:
		return t.exit
	default:
		return terminal.Exit{Code: -1}
	}
}

// Kill sends SIGKILL to the program's process group. It does not wait (see Done) and does
// nothing if the program has ended.
func (t *Terminal) Kill() {
	_ = t.link.send(message{Signal: syscall.SIGKILL})          // a broken link is the program's end
	_ = t.link.conn.SetReadDeadline(time.Now().Add(killBound)) // for run
}

// Close ends the program and waits until everything is released: SIGTERM to the process
// group, and SIGKILL to what is left of the group as soon as the program is dead, or after
// Options.Grace. It may be called any number of times; every call returns after the end.
// The error is always nil.
//
// Descendants that left the process group are not ended. If they hold the terminal open,
// Close takes up to one second longer.
func (t *Terminal) Close() error {
	t.closeOnce.Do(func() {
		if t.grace > 0 && t.link.send(message{Signal: syscall.SIGTERM}) == nil {
			timer := time.NewTimer(t.grace)
			defer timer.Stop()
			select {
			case <-t.done:
				return
			case <-timer.C:
			}
		}
		t.Kill()
	})
	<-t.done
	return nil
}
