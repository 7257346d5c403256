// Package terminaltest says what a terminal of a program must do, whatever it is made of.
// Only test files may import it.
package terminaltest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/terminal"
)

// Patience is how long a test waits for what must happen before it reports that it did
// not. No result depends on it.
const Patience = time.Minute

// Terminal is one program under a terminal.
type Terminal interface {
	Pid() int
	Screen() string
	Write(keys []byte) (int, error)
	Kill()
	Close() error
	Done() <-chan struct{}
	Exit() terminal.Exit
}

// Subject is a way to run programs under terminals.
type Subject struct {
	// Start runs a program.
	Start func(o terminal.Options) (Terminal, error)

	// Host is a command that starts a shell script under a terminal, and then does
	// nothing more.
	Host func(t *testing.T, script string) *exec.Cmd
}

// Run tests a subject.
func Run(t *testing.T, s Subject) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Subject)
	}{
		{"Exit", testExit},
		{"StartErrors", testStartErrors},
		{"EnvAndDir", testEnvAndDir},
		{"LeadsItsOwnGroup", testLeadsItsOwnGroup},
		{"WindowSize", testWindowSize},
		{"ManyAtOnce", testManyAtOnce},
		{"LastScreen", testLastScreen},
		{"QueriesAreAnswered", testQueriesAreAnswered},
		{"UnreadAnswersDoNotBlock", testUnreadAnswersDoNotBlock},
		{"KeysAndLiveScreen", testKeysAndLiveScreen},
		{"EveryByteArrives", testEveryByteArrives},
		{"LargeWriteArrivesWhole", testLargeWriteArrivesWhole},
		{"GroupIsKilled", testGroupIsKilled},
		{"CloseTerminatesTheGroup", testCloseTerminatesTheGroup},
		{"CloseKillsWhatIgnoresTerm", testCloseKillsWhatIgnoresTerm},
		{"CloseGivesTimeToEnd", testCloseGivesTimeToEnd},
		{"EscapedProcessDoesNotBlock", testEscapedProcessDoesNotBlock},
		{"CloseConcurrently", testCloseConcurrently},
		{"CloseDuringFlood", testCloseDuringFlood},
		{"ProgramDiesWithItsHost", testProgramDiesWithItsHost},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

// script runs a shell script; the terminal is closed when the test ends.
func (s Subject) script(t *testing.T, script string, o terminal.Options) Terminal {
	t.Helper()
	o.Path, o.Args = "/bin/sh", []string{"-c", script}
	if o.Env == nil {
		o.Env = []string{"PATH=" + os.Getenv("PATH")}
	}
	term, err := s.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { term.Close() })
	return term
}

// WaitDone waits for the program's end.
func WaitDone(t *testing.T, term Terminal) {
	t.Helper()
	select {
	case <-term.Done():
	case <-time.After(Patience):
		t.Fatalf("the program has not ended; its screen:\n%s", term.Screen())
	}
}

func testExit(t *testing.T, s Subject) {
	tests := []struct {
		script string
		want   terminal.Exit
		text   string
	}{
		{"exit 0", terminal.Exit{}, "exit code 0"},
		{"exit 7", terminal.Exit{Code: 7}, "exit code 7"},
		{"kill -TERM $$", terminal.Exit{Code: -1, Signal: syscall.SIGTERM}, "signal: terminated"},
		{"kill -KILL $$", terminal.Exit{Code: -1, Signal: syscall.SIGKILL}, "signal: killed"},
	}
	for _, tt := range tests {
		t.Run(tt.script, func(t *testing.T) {
			term := s.script(t, tt.script, terminal.Options{})
			WaitDone(t, term)
			if got := term.Exit(); got != tt.want || got.String() != tt.text {
				t.Errorf("Exit = %+v (%v), want %+v (%s)", got, got, tt.want, tt.text)
			}
			if err := term.Close(); err != nil {
				t.Errorf("Close after exit: %v", err)
			}
		})
	}
}

func testStartErrors(t *testing.T, s Subject) {
	const maxSide = 500
	tests := []struct {
		name string
		o    terminal.Options
		want error
	}{
		{"relative path", terminal.Options{Path: "sh"}, nil},
		{"size out of range", terminal.Options{Path: "/bin/sh", Rows: maxSide + 1}, nil},
		{"negative size", terminal.Options{Path: "/bin/sh", Cols: -1}, nil},
		{"no such program", terminal.Options{Path: "/nonexistent/program"}, os.ErrNotExist},
		{"no such directory", terminal.Options{Path: "/bin/sh", Dir: "/nonexistent"}, os.ErrNotExist},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			term, err := s.Start(tt.o)
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

func testEnvAndDir(t *testing.T, s Subject) {
	t.Setenv("OCP_TERMINAL_TEST_LEAK", "leaked")
	env, err := exec.LookPath("env")
	if err != nil {
		t.Skip(err)
	}
	for _, want := range [][]string{{"A=1", "B=two words"}, {}, nil} {
		term, err := s.Start(terminal.Options{Path: env, Env: want, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		WaitDone(t, term)
		if diff := cmp.Diff(strings.Join(want, "\n"), term.Screen()); diff != "" {
			t.Errorf("environment (-want +got):\n%s", diff)
		}
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	term := s.script(t, "pwd -P", terminal.Options{Dir: dir, Cols: 500})
	WaitDone(t, term)
	if got := term.Screen(); got != dir {
		t.Errorf("working directory = %q, want %q", got, dir)
	}
}

func testLeadsItsOwnGroup(t *testing.T, s Subject) {
	term := s.script(t, "ps -o pid=,pgid=,tpgid= -p $$", terminal.Options{})
	WaitDone(t, term)
	pid := fmt.Sprint(term.Pid())
	if diff := cmp.Diff([]string{pid, pid, pid}, strings.Fields(term.Screen())); diff != "" {
		t.Errorf("pid, group and foreground group (-want +got):\n%s", diff)
	}
}

func testWindowSize(t *testing.T, s Subject) {
	for _, tt := range []struct {
		o    terminal.Options
		want string
	}{{terminal.Options{}, "30 100"}, {terminal.Options{Rows: 17, Cols: 71}, "17 71"}} {
		term := s.script(t, "stty size", tt.o)
		WaitDone(t, term)
		if got := term.Screen(); got != tt.want {
			t.Errorf("size = %q, want %s", got, tt.want)
		}
	}
}

func testManyAtOnce(t *testing.T, s Subject) {
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			term, err := s.Start(terminal.Options{Path: "/bin/sh", Args: []string{"-c", "read x; echo got $x; exec cat"}})
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

// waitOrKill is WaitDone for goroutines, which must not end the test.
func waitOrKill(t *testing.T, term Terminal) {
	select {
	case <-term.Done():
	case <-time.After(Patience):
		t.Error("the program has not ended")
		term.Kill()
	}
}

// All that a program has written is on its last screen, also if it dies in the middle of
// an escape sequence.
func testLastScreen(t *testing.T, s Subject) {
	for _, script := range []string{
		`yes | head -c 2000000; printf '\n\033[Hlast'`,
		`yes | head -c 2000000; printf '\033[Hlast\033]0;title'`,
		`stty raw; yes | head -c 2000000; printf '\033[Hlast'; kill -KILL $$`,
	} {
		term := s.script(t, script, terminal.Options{})
		WaitDone(t, term)
		if got := term.Screen(); !strings.HasPrefix(got, "last") {
			t.Errorf("%s: the screen is not the last one: %.40q", script, got)
		}
	}
}
