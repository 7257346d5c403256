package tmux_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ocp/internal/terminal"
	"ocp/internal/terminal/terminaltest"
	"ocp/internal/terminal/tmux"
)

// tmuxOf asks the server of that name, which is not started by it.
func tmuxOf(o tmux.Options, args ...string) (string, error) {
	cmd := exec.Command(o.Program, append([]string{"-N", "-L", o.Name}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func socketOf(o tmux.Options) string {
	return filepath.Join("/tmp", fmt.Sprintf("tmux-%d", os.Getuid()), o.Name)
}

// eventually waits for what nothing announces.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(terminaltest.Patience)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("it does not come to hold that %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func start(t *testing.T, s *tmux.Server, name, script string) *tmux.Terminal {
	t.Helper()
	term, err := s.Start(name, terminal.Options{
		Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Grace: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { term.Close() })
	return term
}

// A burst that tmux has not read yet when the program is dead is drawn nevertheless.
func TestLastScreenIsWhole(t *testing.T) {
	s := listen(t, newOptions(t))
	for range 30 {
		term := start(t, s, "burst", `burst=$(yes | head -c 60000); printf '%s\033[2J\033[Hlast' "$burst"`)
		terminaltest.WaitDone(t, term)
		if got := term.Screen(); got != "last" {
			t.Fatalf("the last screen is %.40q", got)
		}
	}
}

// A server that has gone takes its programs with it, and the next program has a new one.
func TestServerIsStartedAgain(t *testing.T) {
	o := newOptions(t)
	s := listen(t, o)
	w := terminaltest.NewWire(t)
	term := start(t, s, "first", fmt.Sprintf(`trap '' HUP TERM; exec 3>%q; echo up >&3; sleep 300; sleep 300`, w.Path))
	w.Expect(t, "up")
	pid, err := tmuxOf(o, "display-message", "-p", "#{pid}")
	if err != nil {
		t.Fatal(err, pid)
	}
	kill(t, pid)
	terminaltest.WaitDone(t, term)
	w.ExpectEnd(t)
	again := start(t, s, "first", "echo again")
	terminaltest.WaitDone(t, again)
	if got := again.Screen(); got != "again" {
		t.Errorf("the screen of the next program is %q", got)
	}
}

func kill(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// The process that runs the program in its pane may be killed too.
func TestPaneIsKilled(t *testing.T) {
	o := newOptions(t)
	s := listen(t, o)
	w := terminaltest.NewWire(t)
	term := start(t, s, "lost", fmt.Sprintf(`trap '' HUP TERM; exec 3>%q; echo up >&3; sleep 300; sleep 300`, w.Path))
	w.Expect(t, "up")
	pid, err := tmuxOf(o, "display-message", "-p", "-t", "=lost:", "#{pane_pid}")
	if err != nil {
		t.Fatal(err, pid)
	}
	kill(t, pid)
	terminaltest.WaitDone(t, term)
	w.ExpectEnd(t)
	if got, want := term.Exit(), (terminal.Exit{Code: -1}); got != want {
		t.Errorf("Exit = %v, want %v", got, want)
	}
}

// Nothing of a server outlives who started it, and what a killed one leaves of its own
// goes with the next start. Other servers are left alone.
func TestNothingIsLeft(t *testing.T) {
	o, other := newOptions(t), newOptions(t)
	s := listen(t, other)
	bystander := start(t, s, "bystander", "exec sleep 300")

	host := exec.Command(os.Args[0])
	host.Env = append(os.Environ(), hostEnv+"=exec sleep 300", hostEnv+"_DIR="+filepath.Dir(o.Socket))
	host.Stderr = os.Stderr
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the host's program runs", func() bool { _, err := tmuxOf(o, "has-session", "-t", "=hosted"); return err == nil })
	if err := host.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = host.Wait()
	eventually(t, "the host's server has ended", func() bool { _, err := tmuxOf(o, "list-sessions"); return err != nil })

	// A server that runs on, as one does whose panes do not notice.
	if out, err := exec.Command(o.Program, "-L", o.Name, "-f", "/dev/null", "new-session", "-d", "sleep 300").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	next, err := tmux.Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tmuxOf(o, "list-sessions", "-F", "#{session_name}"); err != nil || got != "ocp" {
		t.Errorf("behind the next start there is %q, %v; want its own session alone", got, err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	for _, path := range []string{socketOf(o), o.Socket} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
	if _, err := tmuxOf(other, "has-session", "-t", "=bystander"); err != nil {
		t.Errorf("the other server: %v", err)
	}
	bystander.Close()
}

// Who attaches sees the screen, can press what they like, and leaves with Ctrl-C.
func TestAttachIsForLooking(t *testing.T) {
	o := newOptions(t)
	s := listen(t, o)
	term := start(t, s, "seen", "stty -echo; echo look; while read x; do echo got $x; done")
	args := tmux.Attach(o.Program, o.Name, "seen")
	viewer, err := terminal.Start(terminal.Options{
		Path: args[0], Args: args[1:], Rows: 10, Cols: 40, // smaller than the pane
		Env: []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer viewer.Close()
	eventually(t, "the viewer sees the screen", func() bool { return strings.Contains(viewer.Screen(), "look") })
	if _, err := viewer.Write([]byte("typed\n\x02x\x02:kill-server\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := term.Write([]byte("by ocp\n")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the program reads", func() bool { return strings.Contains(term.Screen(), "got by ocp") })
	if got, want := term.Screen(), "look\ngot by ocp"; got != want {
		t.Errorf("the screen is %q, want %q", got, want)
	}
	if size, err := tmuxOf(o, "display-message", "-p", "-t", "=seen:", "#{window_width}x#{window_height}"); err != nil || size != "100x30" {
		t.Errorf("with a smaller viewer the pane is %s, %v", size, err)
	}
	if _, err := viewer.Write([]byte("some keys\x03")); err != nil {
		t.Fatal(err)
	}
	terminaltest.WaitDone(t, viewer)
	if _, err := tmuxOf(o, "has-session", "-t", "=seen"); err != nil {
		t.Errorf("after Ctrl-C of the viewer: %v", err)
	}
}

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		says string // empty for no tmux
		want error
	}{
		{"", tmux.ErrMissing},
		{"tmux 3.1c", tmux.ErrTooOld},
		{"tmux 2.9", tmux.ErrTooOld},
		{"tmux 3.2", nil},
		{"tmux 3.3a", nil},
		{"tmux 10.0", nil},
		{"tmux next-3.7", nil},
		{"tmux master", nil},
	} {
		dir := t.TempDir()
		if tt.says != "" {
			script := fmt.Sprintf("#!/bin/sh\necho '%s'\n", tt.says)
			if err := os.WriteFile(filepath.Join(dir, "tmux"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		program, version, err := tmux.Find(context.Background(), "relative:"+dir)
		if !errors.Is(err, tt.want) {
			t.Errorf("%q: %v, want %v", tt.says, err, tt.want)
		}
		if err == nil && (program != filepath.Join(dir, "tmux") || "tmux "+version != tt.says) {
			t.Errorf("%q: found %q at %s", tt.says, version, program)
		}
	}
}
