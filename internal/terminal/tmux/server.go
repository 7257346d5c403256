// Package tmux runs programs in panes of a tmux server of its own, where an operator can
// watch them. It is otherwise what package terminal is with a pseudo-terminal: it knows
// nothing of the programs, and each ends together with its process group.
//
// tmux is given no secret: a pane runs a command of ours (see RunPane), which asks over a
// private socket what to run there. When whoever holds a Server dies, these connections
// break and the panes end, and with its last pane the tmux server ends.
package tmux

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"ocp/internal/terminal"
)

// keeper names the pane that is there as long as the server is wanted: it waits for a
// program and is given none.
const keeper = "ocp"

// deathBound is how long a tmux server that answers no more may take to die.
const deathBound = time.Second

// helloBound is how long a pane may take from its start until it asks for its program.
const helloBound = 10 * time.Second

// Options configure a Server.
type Options struct {
	// Program is tmux, as an absolute path: see Find.
	Program string

	// Name is that of the tmux server, for `tmux -L`. It is used by nobody else.
	Name string

	// Socket is where panes ask for their programs: the path of a Unix socket, at most
	// about 100 bytes, in a folder that keeps others out.
	Socket string

	// Pane is a command line that calls RunPane with the two arguments appended to it.
	Pane []string
}

// Server is a tmux server.
type Server struct {
	options  Options
	listener net.Listener
	accepted sync.WaitGroup

	leaving sync.WaitGroup // of panes that are let go

	opening sync.Mutex
	keeper  *link         // guarded by opening, as what follows; nil before the tmux server runs
	alive   *os.File      // ends when the tmux server does
	died    chan struct{} // closed when the tmux server is no more

	mu      sync.Mutex
	waiting map[string]chan *link // by pane; guarded by mu
}

// Listen starts a tmux server. What an earlier one of the same name has left is ended.
func Listen(o Options) (*Server, error) {
	if err := Sweep(o.Program, o.Name); err != nil {
		return nil, err
	}
	if err := os.Remove(o.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("tmux: remove an old socket: %w", err)
	}
	listener, err := net.Listen("unix", o.Socket)
	if err != nil {
		return nil, fmt.Errorf("tmux: listen for panes: %w", err)
	}
	s := &Server{options: o, listener: listener, waiting: map[string]chan *link{}}
	s.accepted.Go(s.accept)
	if err := errors.Join(os.Chmod(o.Socket, 0o600), s.open(0)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open starts the tmux server, if it is not there or is seen to die within that time.
func (s *Server) open(within time.Duration) error {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.keeper != nil {
		select {
		case <-s.died:
			s.letGo(s.keeper)
			s.keeper = nil
		case <-time.After(within):
			return nil
		}
	}
	// The tmux server inherits one end and keeps it open as long as it lives; panes do not
	// inherit it from there.
	alive, held, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("tmux: %w", err)
	}
	s.keeper, err = s.pane(keeper, 30, 100, held)
	_ = held.Close()
	if err != nil {
		return errors.Join(err, alive.Close())
	}
	died := make(chan struct{})
	s.alive, s.died = alive, died
	s.leaving.Go(func() {
		defer close(died)
		_, _ = alive.Read(make([]byte, 1))
		_ = alive.Close()
	})
	return nil
}

// settings are tmux's, where its defaults are not what is needed. Nothing of a
// conversation is kept beyond the screen, watching changes nothing, and the only key that
// whoever watches has is Ctrl-C, which leaves.
var settings = [][]string{
	{"set-option", "-s", "escape-time", "0"},
	{"set-option", "-s", "set-clipboard", "off"},
	{"set-option", "-g", "status", "off"},
	{"set-option", "-g", "prefix", "None"},
	{"set-option", "-g", "prefix2", "None"},
	{"set-option", "-g", "assume-paste-time", "0"}, // a Ctrl-C among other keys is one too
	{"set-option", "-g", "history-limit", "0"},
	{"set-option", "-g", "update-environment", ""},
	{"set-option", "-g", "bell-action", "none"},
	{"set-option", "-wg", "automatic-rename", "off"},
	{"set-option", "-wg", "allow-rename", "off"},
	{"unbind-key", "-a", "-T", "prefix"},
	{"unbind-key", "-a", "-T", "root"},
	{"bind-key", "-T", "root", "C-c", "detach-client"},
}

// pane makes a pane and returns its connection when it asks for its program. The first
// pane starts the tmux server, which is to hold a file, and only that one does.
func (s *Server) pane(name string, rows, cols int, hold *os.File) (*link, error) {
	asks := s.expect(name)
	defer s.forget(name)
	ctx, cancel := context.WithTimeout(context.Background(), helloBound)
	defer cancel()
	var args []string
	if hold != nil {
		args = append(args, "start-server", ";")
		for _, setting := range settings {
			args = append(append(args, setting...), ";")
		}
	}
	args = append(args, "new-session", "-d", "-s", name, "-x", strconv.Itoa(cols), "-y", strconv.Itoa(rows), "-c", "/", "--")
	args = append(append(args, s.options.Pane...), s.options.Socket, name)
	// Not for all windows at once: that ends 3.3a when it makes the next one.
	args = append(args, ";", "set-option", "-w", "-t", "="+name+":", "window-size", "manual")
	cmd := command(ctx, s.options.Program, s.options.Name, hold != nil, args...)
	if hold != nil {
		cmd.ExtraFiles = []*os.File{hold}
	}
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, describe("make a pane", err, said)
	}
	select {
	case l := <-asks:
		return l, nil
	case <-ctx.Done():
		_, _ = s.run("kill-session", "-t", "="+name)
		return nil, fmt.Errorf("tmux: the pane has not asked for its program in %v", helloBound)
	}
}

// expect lets a pane of that name ask for its program.
func (s *Server) expect(name string) <-chan *link {
	asks := make(chan *link, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[name] = asks
	return asks
}

// forget undoes expect.
func (s *Server) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case l := <-s.waiting[name]: // it has come too late
		l.close()
	default:
	}
	delete(s.waiting, name)
}

// accept hands each pane that asks to who waits for it.
func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.accepted.Go(func() { s.greet(newLink(conn)) })
	}
}

func (s *Server) greet(l *link) {
	var hello message
	if err := l.receive(&hello, helloBound); err != nil {
		l.close()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	asks, ok := s.waiting[hello.Pane]
	if !ok || len(asks) > 0 {
		l.close()
		return
	}
	asks <- l
}

// run runs one command of tmux and returns what it printed.
func (s *Server) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandBound)
	defer cancel()
	out, err := command(ctx, s.options.Program, s.options.Name, false, args...).Output()
	if err != nil {
		return "", describe(args[0], err, out)
	}
	return string(out), nil
}

// Start runs a program in a pane of that name, which no other one has. Its errors are
// those of terminal.Start, and of tmux.
func (s *Server) Start(name string, o terminal.Options) (*Terminal, error) {
	if err := o.Complete(); err != nil {
		return nil, fmt.Errorf("tmux: %w", err)
	}
	if err := s.open(0); err != nil {
		return nil, err
	}
	l, err := s.pane(name, o.Rows, o.Cols, nil)
	if err != nil { // the server may have died just now
		if again := s.open(deathBound); again != nil {
			return nil, errors.Join(err, again)
		}
		l, err = s.pane(name, o.Rows, o.Cols, nil)
	}
	if err != nil {
		return nil, err
	}
	return s.begin(name, l, o)
}

// letGo lets a pane's process end. Close waits for it.
func (s *Server) letGo(l *link) { s.leaving.Go(l.part) }

// Close ends the tmux server, whose panes must have been closed, and removes its sockets.
func (s *Server) Close() error {
	err := s.listener.Close()
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.keeper != nil {
		s.letGo(s.keeper)
		_ = s.alive.SetReadDeadline(time.Now().Add(partBound + commandBound))
	}
	err = errors.Join(err, Sweep(s.options.Program, s.options.Name))
	s.accepted.Wait()
	s.leaving.Wait()
	return err
}

// Sweep ends the tmux server of that name, if there is one, and with it its panes.
// program may be empty: then it is looked up, if there is a socket of that name.
func Sweep(program, name string) error {
	socket := filepath.Join("/tmp", fmt.Sprintf("tmux-%d", os.Getuid()), name)
	if _, err := os.Lstat(socket); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if program == "" {
		program, _ = exec.LookPath("tmux") // none is an error of its own
	}
	if program != "" {
		if err := kill(program, name, socket); err != nil {
			return err
		}
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("tmux: remove the socket of an ended server: %w", err)
	}
	return nil
}

// kill ends a server and waits until it listens no more.
func kill(program, name, socket string) error {
	ctx, cancel := context.WithTimeout(context.Background(), commandBound)
	defer cancel()
	said, failed := command(ctx, program, name, false, "kill-server").CombinedOutput()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return nil
		}
		_ = conn.Close()
		select {
		case <-look.C:
		case <-ctx.Done():
			return describe("kill-server", errors.Join(failed, context.Cause(ctx)), said)
		}
	}
}
