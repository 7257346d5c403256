package terminal

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// hostEnv makes the test binary start the shell script in it under a terminal, and
// do nothing more.
const hostEnv = "OCP_TERMINAL_TEST_HOST"

func TestMain(m *testing.M) {
	if script := os.Getenv(hostEnv); script != "" {
		// A SIGHUP that is ignored here, as under nohup, would be in the script too.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
		if _, err := Start(Options{Path: "/bin/sh", Args: []string{"-c", script}}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {}
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must happen before it reports that it
// did not. No result depends on it.
const patience = time.Minute

// start runs a shell script; the terminal is closed when the test ends.
func start(t *testing.T, script string, o Options) *Terminal {
	t.Helper()
	o.Path, o.Args = "/bin/sh", []string{"-c", script}
	if o.Env == nil {
		o.Env = []string{"PATH=" + os.Getenv("PATH")}
	}
	term, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { term.Close() })
	return term
}

func waitDone(t *testing.T, term *Terminal) {
	t.Helper()
	select {
	case <-term.Done():
	case <-time.After(patience):
		t.Fatalf("the program has not ended; its screen:\n%s", term.Screen())
	}
}

func TestExit(t *testing.T) {
	tests := []struct {
		script string
		want   Exit
		text   string
	}{
		{"exit 0", Exit{}, "exit code 0"},
		{"exit 7", Exit{Code: 7}, "exit code 7"},
		{"kill -TERM $$", Exit{Code: -1, Signal: syscall.SIGTERM}, "signal: terminated"},
		{"kill -KILL $$", Exit{Code: -1, Signal: syscall.SIGKILL}, "signal: killed"},
	}
	for _, tt := range tests {
		t.Run(tt.script, func(t *testing.T) {
			term := start(t, tt.script, Options{})
			waitDone(t, term)
			if got := term.Exit(); got != tt.want || got.String() != tt.text {
				t.Errorf("Exit = %+v (%v), want %+v (%s)", got, got, tt.want, tt.text)
			}
			if err := term.Close(); err != nil {
				t.Errorf("Close after exit: %v", err)
			}
		})
	}
}

func TestStartErrors(t *testing.T) {
	tests := []struct {
		name string
		o    Options
		want error
	}{
		{"relative path", Options{Path: "sh"}, nil},
		{"size out of range", Options{Path: "/bin/sh", Rows: maxSide + 1}, nil},
		{"negative size", Options{Path: "/bin/sh", Cols: -1}, nil},
		{"no such program", Options{Path: "/nonexistent/program"}, os.ErrNotExist},
		{"no such directory", Options{Path: "/bin/sh", Dir: "/nonexistent"}, os.ErrNotExist},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			term, err := Start(tt.o)
			if err == nil {
				term.Close()
				t.Fatal("Start succeeded")
			}
			if tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("Start: %v, want %v", err, tt.want)
			}
		})
	}
}

func TestEnvAndDir(t *testing.T) {
	t.Setenv("OCP_TERMINAL_TEST_LEAK", "leaked")
	env, err := exec.LookPath("env")
	if err != nil {
		t.Skip(err)
	}
	for _, want := range [][]string{{"A=1", "B=two words"}, {}, nil} {
		term, err := Start(Options{Path: env, Env: want, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		waitDone(t, term)
		if diff := cmp.Diff(strings.Join(want, "\n"), term.Screen()); diff != "" {
			t.Errorf("environment (-want +got):\n%s", diff)
		}
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	term := start(t, "pwd -P", Options{Dir: dir, Cols: maxSide})
	waitDone(t, term)
	if got := term.Screen(); got != dir {
		t.Errorf("working directory = %q, want %q", got, dir)
	}
}

func TestLeadsItsOwnSession(t *testing.T) {
	term := start(t, "ps -o pid=,pgid=,sid=,tpgid= -p $$", Options{})
	waitDone(t, term)
	pid := strconv.Itoa(term.Pid())
	got := strings.Fields(term.Screen())
	if diff := cmp.Diff([]string{pid, pid, pid, pid}, got); diff != "" {
		t.Errorf("pid, group, session and foreground group (-want +got):\n%s", diff)
	}
}

func TestWindowSize(t *testing.T) {
	w := newWire(t)
	script := fmt.Sprintf(`exec 3>%q; trap 'echo winch >&3' WINCH
		stty size; echo up >&3
		while :; do sleep 0.01; done`, w.path)
	term := start(t, script, Options{Rows: 17, Cols: 71})
	w.expect(t, "up")
	if err := term.Resize(maxSide+1, 10); err == nil {
		t.Error("Resize accepted a size out of range")
	}
	if err := term.Resize(31, 93); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "winch")
	term.Kill()
	waitDone(t, term)
	if got := term.Screen(); got != "17 71" {
		t.Errorf("size at start = %q, want 17 71", got)
	}
	if err := term.Resize(20, 20); !errors.Is(err, ErrExited) {
		t.Errorf("Resize after exit: %v, want ErrExited", err)
	}

	term = start(t, "read x; stty size", Options{})
	if err := term.Resize(31, 93); err != nil {
		t.Fatal(err)
	}
	if _, err := term.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	waitDone(t, term)
	if got := strings.TrimSpace(term.Screen()); got != "31 93" {
		t.Errorf("size after Resize = %q, want 31 93", got)
	}
}

func TestManyAtOnce(t *testing.T) {
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			term, err := Start(Options{Path: "/bin/sh", Args: []string{"-c", "read x; echo got $x; exec cat"}})
			if err != nil {
				t.Error(err)
				return
			}
			term.Write(fmt.Appendf(nil, "%d\n\x04", i))
			waitOrKill(t, term)
			if got, want := term.Screen(), fmt.Sprintf("%d\ngot %d", i, i); got != want {
				t.Errorf("screen = %q, want %q", got, want)
			}
		})
	}
	all.Wait()
}

// waitOrKill is waitDone for goroutines, which must not end the test.
func waitOrKill(t *testing.T, term *Terminal) {
	select {
	case <-term.Done():
	case <-time.After(patience):
		t.Error("the program has not ended")
		term.Kill()
	}
}
