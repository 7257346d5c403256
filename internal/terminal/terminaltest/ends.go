package terminaltest

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ocp/internal/terminal"
)

// stubborn is a script part that leaves a process in the background that ignores
// SIGHUP and SIGTERM and has the wire open; it says "up" when that is so.
func stubborn(w *Wire) string {
	return fmt.Sprintf("(trap '' HUP TERM; exec >%q; echo up; exec sleep 300) & ", w.Path)
}

func testGroupIsKilled(t *testing.T, s Subject) {
	for _, tt := range []struct {
		name string
		rest string // what the leader does when the other process is up
		end  func(Terminal)
		want terminal.Exit
	}{
		{"by Kill", "exec sleep 300", func(t Terminal) { t.Kill() }, terminal.Exit{Code: -1, Signal: syscall.SIGKILL}},
		{"by Close", "exec sleep 300", func(t Terminal) { t.Close() }, terminal.Exit{Code: -1, Signal: syscall.SIGTERM}},
		{"after the leader's exit", "read x; exit 3", func(t Terminal) { t.Write([]byte("\n")) }, terminal.Exit{Code: 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := NewWire(t)
			// A Grace beyond the test's patience: the group must die with its leader.
			term := s.script(t, stubborn(w)+tt.rest, terminal.Options{Grace: 2 * Patience})
			w.Expect(t, "up")
			tt.end(term)
			w.ExpectEnd(t)
			WaitDone(t, term)
			if got := term.Exit(); got != tt.want {
				t.Errorf("Exit = %v, want %v", got, tt.want)
			}
		})
	}
}

func testCloseTerminatesTheGroup(t *testing.T, s Subject) {
	w := NewWire(t)
	script := fmt.Sprintf(`exec 3>%q
		(trap 'echo term >&3; exit' TERM; echo up >&3; while :; do sleep 0.01; done) &
		trap '' TERM; echo up >&3; wait; exit 4`, w.Path)
	term := s.script(t, script, terminal.Options{Grace: Patience})
	w.Expect(t, "up")
	w.Expect(t, "up")
	var closing sync.WaitGroup
	closing.Go(func() { term.Close() })
	w.Expect(t, "term")
	closing.Wait()
	if got, want := term.Exit(), (terminal.Exit{Code: 4}); got != want {
		t.Errorf("Exit = %v, want %v", got, want)
	}
}

func testCloseKillsWhatIgnoresTerm(t *testing.T, s Subject) {
	for _, grace := range []time.Duration{time.Millisecond, -1} {
		w := NewWire(t)
		script := fmt.Sprintf("trap '' HUP TERM; exec 3>%q; echo up >&3; while :; do sleep 300; done", w.Path)
		term := s.script(t, script, terminal.Options{Grace: grace})
		w.Expect(t, "up")
		if err := term.Close(); err != nil {
			t.Error(err)
		}
		w.ExpectEnd(t)
		if got, want := term.Exit(), (terminal.Exit{Code: -1, Signal: syscall.SIGKILL}); got != want {
			t.Errorf("Exit = %v, want %v", got, want)
		}
	}
}

func testCloseGivesTimeToEnd(t *testing.T, s Subject) {
	w := NewWire(t)
	script := fmt.Sprintf(`trap 'echo bye; exit 5' TERM; echo up >%q
		while :; do sleep 0.01; done`, w.Path)
	term := s.script(t, script, terminal.Options{Grace: Patience})
	w.Expect(t, "up")
	term.Close()
	if got, want := term.Exit(), (terminal.Exit{Code: 5}); got != want {
		t.Errorf("Exit = %v, want %v", got, want)
	}
	// The shell may also report the end of the sleep that SIGTERM interrupted.
	if got := term.Screen(); !strings.HasSuffix(got, "bye") {
		t.Errorf("screen = %q, want it to end with bye", got)
	}
}

// A process that left the group outlives the terminal, and must not delay its end
// by holding it open.
func testEscapedProcessDoesNotBlock(t *testing.T, s Subject) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	for _, flood := range []string{"exec sleep 300", "exec yes"} {
		w := NewWire(t)
		script := fmt.Sprintf(`setsid sh -c 'trap "" HUP; exec 3>%s; echo $$ >&3; %s' & read x; echo end`, w.Path, flood)
		term := s.script(t, script, terminal.Options{})
		line, _ := w.Line(t)
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatalf("pid of the escaped process: %v", err)
		}
		if _, err := term.Write([]byte("\n")); err != nil {
			t.Error(err)
		}
		WaitDone(t, term)
		if err := term.Close(); err != nil {
			t.Error(err)
		}
		_ = syscall.Kill(pid, syscall.SIGKILL) // yes has died of the closed terminal
		w.ExpectEnd(t)
	}
}

func testCloseConcurrently(t *testing.T, s Subject) {
	term := s.script(t, "exec sleep 300", terminal.Options{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := term.Close(); err != nil {
				t.Error(err)
			}
			select {
			case <-term.Done():
			default:
				t.Error("Close returned before the end")
			}
		})
		all.Go(func() {
			term.Screen()
			term.Write([]byte("x"))
			term.Kill()
			term.Exit()
		})
	}
	all.Wait()
}

func testCloseDuringFlood(t *testing.T, s Subject) {
	w := NewWire(t)
	// The wire opens when head has passed on 1 MB, and yes goes on.
	script := fmt.Sprintf("yes | { head -c 1000000; echo flooding >%q; exec cat; }", w.Path)
	term := s.script(t, script, terminal.Options{})
	w.Expect(t, "flooding")
	if err := term.Close(); err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(term.Screen(), "y\ny\n") {
		t.Errorf("screen = %q, want lines of y", term.Screen())
	}
}

// If the process that holds the terminal dies, however it dies, nothing it ran may survive.
func testProgramDiesWithItsHost(t *testing.T, s Subject) {
	w := NewWire(t)
	host := s.Host(t, fmt.Sprintf("exec 3>%q; echo up >&3; /bin/sleep 300", w.Path))
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	w.Expect(t, "up")
	if err := host.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = host.Wait()
	w.ExpectEnd(t)
}
