package terminal_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"ocp/internal/terminal"
	"ocp/internal/terminal/terminaltest"
)

// hostEnv makes the test binary start the shell script in it under a terminal, and
// do nothing more.
const hostEnv = "OCP_TERMINAL_TEST_HOST"

func TestMain(m *testing.M) {
	if script := os.Getenv(hostEnv); script != "" {
		// A SIGHUP that is ignored here, as under nohup, would be in the script too.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
		if _, err := terminal.Start(terminal.Options{Path: "/bin/sh", Args: []string{"-c", script}}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {}
	}
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	terminaltest.Run(t, terminaltest.Subject{
		Start: func(o terminal.Options) (terminaltest.Terminal, error) { return terminal.Start(o) },
		Host: func(t *testing.T, script string) *exec.Cmd {
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			host := exec.Command(exe)
			host.Env = append(os.Environ(), hostEnv+"="+script)
			host.Stderr = os.Stderr
			return host
		},
	})
}

// start runs a shell script; the terminal is closed when the test ends.
func start(t *testing.T, script string, o terminal.Options) *terminal.Terminal {
	t.Helper()
	o.Path, o.Args = "/bin/sh", []string{"-c", script}
	if o.Env == nil {
		o.Env = []string{"PATH=" + os.Getenv("PATH")}
	}
	term, err := terminal.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { term.Close() })
	return term
}

func TestLeadsItsOwnSession(t *testing.T) {
	term := start(t, "ps -o pid=,pgid=,sid=,tpgid= -p $$", terminal.Options{})
	terminaltest.WaitDone(t, term)
	pid := strconv.Itoa(term.Pid())
	got := strings.Fields(term.Screen())
	if diff := cmp.Diff([]string{pid, pid, pid, pid}, got); diff != "" {
		t.Errorf("pid, group, session and foreground group (-want +got):\n%s", diff)
	}
}

func TestWindowSize(t *testing.T) {
	w := terminaltest.NewWire(t)
	script := fmt.Sprintf(`exec 3>%q; trap 'echo winch >&3' WINCH
		stty size; echo up >&3
		while :; do sleep 0.01; done`, w.Path)
	term := start(t, script, terminal.Options{Rows: 17, Cols: 71})
	w.Expect(t, "up")
	if err := term.Resize(501, 10); err == nil {
		t.Error("Resize accepted a size out of range")
	}
	if err := term.Resize(31, 93); err != nil {
		t.Fatal(err)
	}
	w.Expect(t, "winch")
	term.Kill()
	terminaltest.WaitDone(t, term)
	if got := term.Screen(); got != "17 71" {
		t.Errorf("size at start = %q, want 17 71", got)
	}
	if err := term.Resize(20, 20); !errors.Is(err, terminal.ErrExited) {
		t.Errorf("Resize after exit: %v, want ErrExited", err)
	}

	term = start(t, "read x; stty size", terminal.Options{})
	if err := term.Resize(31, 93); err != nil {
		t.Fatal(err)
	}
	if _, err := term.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	terminaltest.WaitDone(t, term)
	if got := strings.TrimSpace(term.Screen()); got != "31 93" {
		t.Errorf("size after Resize = %q, want 31 93", got)
	}
}

func TestUnreadInputIsBounded(t *testing.T) {
	w := terminaltest.NewWire(t)
	term := start(t, fmt.Sprintf("stty raw -echo; echo up >%q; exec sleep 300", w.Path), terminal.Options{})
	w.Expect(t, "up")
	block := make([]byte, 64<<10)
	for range 2 * terminal.MaxBacklog / len(block) {
		if _, err := term.Write(block); err != nil {
			if !errors.Is(err, terminal.ErrBacklog) {
				t.Errorf("Write: %v, want ErrBacklog", err)
			}
			return // closing must not wait for the unread input either
		}
	}
	t.Error("Write never refused")
}
