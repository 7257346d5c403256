package tmux

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ocp/internal/terminal"
)

// drainLimit bounds the wait for tmux to draw a dead program's output. Only a process that
// left the group with the terminal still open makes it last this long.
const drainLimit = time.Second

// RunPane is the part of a pane that runs in it, on the terminal that is its standard
// input: it asks at the socket of a Server for its program, runs it in the foreground, and
// tells of its end. It returns when the Server has let it go, and the process must end
// then. If the Server or the terminal goes away, it kills the program's process group.
func RunPane(socket, name string) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return fmt.Errorf("pane: %w", err)
	}
	l := newLink(conn) // closed by the end of this process, which the server waits for
	if err := l.send(message{Pane: name}); err != nil {
		return fmt.Errorf("pane: %w", err)
	}
	messages := make(chan message)
	go func() { // ends with the connection
		defer close(messages)
		for {
			var m message
			if l.receive(&m, 0) != nil {
				return
			}
			messages <- m
		}
	}()
	select {
	case m, ok := <-messages:
		if !ok || m.Run == nil {
			return nil // nothing is to run here any more
		}
		return runProgram(l, *m.Run, messages, hangup)
	case <-hangup:
		return nil
	}
}

// runProgram runs the program to its end, and waits for the end of the connection.
func runProgram(l *link, p program, messages <-chan message, hangup <-chan os.Signal) error {
	proc, err := startInForeground(p)
	if err != nil {
		failed := message{Error: err.Error()}
		_ = errors.As(err, &failed.Errno)
		return l.send(failed)
	}
	_ = l.send(message{Pid: proc.Pid()}) // a broken link is seen below
	ended := make(chan terminal.Exit, 1)
	go func() { ended <- proc.Wait() }()
	for {
		select {
		case m, ok := <-messages:
			switch {
			case !ok:
				proc.Kill()
				<-ended
				return nil
			case m.Signal == syscall.SIGTERM:
				proc.Terminate()
			case m.Signal == syscall.SIGKILL:
				proc.Kill()
			}
		case <-hangup:
			proc.Kill()
		case exit := <-ended:
			awaitDrawn()
			err := l.send(message{Exit: &exit})
			for range messages { // until the server has looked at the screen
			}
			return err
		}
	}
}

// startInForeground starts the program in a process group of its own, in the foreground of
// the terminal that is the standard input.
//
// Moving a group to the foreground is stopped by SIGTTOU where it is not ignored, and the
// program inherits that it is. Nothing else of its start differs from package terminal's
// but that it does not lead the terminal's session: the pane does, so that the program is
// sent SIGHUP if the pane dies.
func startInForeground(p program) (*terminal.Process, error) {
	signal.Ignore(syscall.SIGTTOU)
	o := terminal.Options{Path: p.Path, Args: p.Args, Env: p.Env, Dir: p.Dir}
	cmd := o.Command()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdin, os.Stdin
	// Ctty is a descriptor of this process here: its standard input.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0}
	return terminal.StartProcess(cmd)
}

// statusQuery asks the terminal for its status, behind a CAN, which ends a sequence that
// the program has begun; statusAnswer is what it says.
const (
	statusQuery  = "\x18\x1b[5n"
	statusAnswer = "\x1b[0n"
)

// awaitDrawn waits until tmux has drawn all that was written to the terminal: it draws and
// answers in order.
func awaitDrawn() {
	const tty = 0
	if unix.IoctlSetPointerInt(tty, unix.TIOCSPGRP, os.Getpid()) != nil {
		return // there is no terminal any more
	}
	mode, err := unix.IoctlGetTermios(tty, getTermios)
	if err != nil {
		return
	}
	// Raw, without echo; a read returns after a tenth of a second at the latest.
	mode.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG
	mode.Iflag &^= unix.ICRNL | unix.INLCR | unix.IXON | unix.ISTRIP
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 0, 1
	if unix.IoctlSetTermios(tty, setTermios, mode) != nil {
		return
	}
	if _, err := unix.Write(tty, []byte(statusQuery)); err != nil {
		return
	}
	var read []byte
	buf := make([]byte, 4<<10)
	for deadline := time.Now().Add(drainLimit); time.Now().Before(deadline); {
		n, err := unix.Read(tty, buf)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		read = append(read, buf[:max(n, 0)]...)
		if bytes.Contains(read, []byte(statusAnswer)) {
			return
		}
		read = read[max(0, len(read)-len(statusAnswer)):]
	}
}
