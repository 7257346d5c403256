package terminal

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stubborn is a script part that leaves a process in the background that ignores
// SIGHUP and SIGTERM and has the wire open; it says "up" when that is so.
func stubborn(w *wire) string {
	return fmt.Sprintf("(trap '' HUP TERM; exec >%q; echo up; exec sleep 300) & ", w.path)
}

func TestGroupIsKilled(t *testing.T) {
	for _, tt := range []struct {
		name string
		rest string // what the leader does when the other process is up
		end  func(*Terminal)
		want Exit
	}{
		{"by Kill", "exec sleep 300", func(t *Terminal) { t.Kill() }, Exit{-1, syscall.SIGKILL}},
		{"by Close", "exec sleep 300", func(t *Terminal) { t.Close() }, Exit{-1, syscall.SIGTERM}},
		{"after the leader's exit", "read x; exit 3", func(t *Terminal) { t.Write([]byte("\n")) }, Exit{Code: 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWire(t)
			// A Grace beyond the test's patience: the group must die with its leader.
			term := start(t, stubborn(w)+tt.rest, Options{Grace: 2 * patience})
			w.expect(t, "up")
			tt.end(term)
			w.expectEnd(t)
			waitDone(t, term)
			if got := term.Exit(); got != tt.want {
				t.Errorf("Exit = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestCloseTerminatesTheGroup(t *testing.T) {
	w := newWire(t)
	script := fmt.Sprintf(`exec 3>%q
		(trap 'echo term >&3; exit' TERM; echo up >&3; while :; do sleep 0.01; done) &
		trap '' TERM; echo up >&3; wait; exit 4`, w.path)
	term := start(t, script, Options{Grace: patience})
	w.expect(t, "up")
	w.expect(t, "up")
	var closing sync.WaitGroup
	closing.Go(func() { term.Close() })
	w.expect(t, "term")
	closing.Wait()
	if got, want := term.Exit(), (Exit{Code: 4}); got != want {
		t.Errorf("Exit = %v, want %v", got, want)
	}
}

func TestCloseKillsWhatIgnoresTerm(t *testing.T) {
	for _, grace := range []time.Duration{time.Millisecond, -1} {
		w := newWire(t)
		script := fmt.Sprintf("trap '' HUP TERM; exec 3>%q; echo up >&3; while :; do sleep 300; done", w.path)
		term := start(t, script, Options{Grace: grace})
		w.expect(t, "up")
		if err := term.Close(); err != nil {
			t.Error(err)
		}
		w.expectEnd(t)
		if got, want := term.Exit(), (Exit{-1, syscall.SIGKILL}); got != want {
			t.Errorf("Exit = %v, want %v", got, want)
		}
	}
}

func TestCloseGivesTimeToEnd(t *testing.T) {
	w := newWire(t)
	script := fmt.Sprintf(`trap 'echo bye; exit 5' TERM; echo up >%q
		while :; do sleep 0.01; done`, w.path)
	term := start(t, script, Options{Grace: patience})
	w.expect(t, "up")
	term.Close()
	if got, want := term.Exit(), (Exit{Code: 5}); got != want {
		t.Errorf("Exit = %v, want %v", got, want)
	}
	// The shell may also report the end of the sleep that SIGTERM interrupted.
	if got := term.Screen(); !strings.HasSuffix(got, "bye") {
		t.Errorf("screen = %q, want it to end with bye", got)
	}
}

// A process that left the group outlives the terminal, and must not delay its end
// by holding it open.
func TestEscapedProcessDoesNotBlock(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	for _, flood := range []string{"exec sleep 300", "exec yes"} {
		w := newWire(t)
		script := fmt.Sprintf(`setsid sh -c 'trap "" HUP; exec 3>%s; echo $$ >&3; %s' & read x; echo end`, w.path, flood)
		term := start(t, script, Options{})
		line, _ := w.line(t)
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatalf("pid of the escaped process: %v", err)
		}
		if _, err := term.Write([]byte("\n")); err != nil {
			t.Error(err)
		}
		waitDone(t, term)
		if err := term.Close(); err != nil {
			t.Error(err)
		}
		_ = syscall.Kill(pid, syscall.SIGKILL) // yes has died of the closed terminal
		w.expectEnd(t)
	}
}

func TestCloseConcurrently(t *testing.T) {
	term := start(t, "exec sleep 300", Options{})
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
			term.Resize(20, 20)
			term.Write([]byte("x"))
			term.Kill()
			term.Exit()
		})
	}
	all.Wait()
}

func TestCloseDuringFlood(t *testing.T) {
	w := newWire(t)
	// The wire opens when head has passed on 1 MB, and yes goes on.
	script := fmt.Sprintf("yes | { head -c 1000000; echo flooding >%q; exec cat; }", w.path)
	term := start(t, script, Options{})
	w.expect(t, "flooding")
	if err := term.Close(); err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(term.Screen(), "y\ny\n") {
		t.Errorf("screen = %q, want lines of y", term.Screen())
	}
}

// If this process dies, however it dies, nothing it ran may survive.
func TestProgramDiesWithItsHost(t *testing.T) {
	w := newWire(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host := exec.Command(exe)
	script := fmt.Sprintf("exec 3>%q; echo up >&3; /bin/sleep 300", w.path)
	host.Env = append(os.Environ(), hostEnv+"="+script)
	host.Stderr = os.Stderr
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "up")
	if err := host.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = host.Wait()
	w.expectEnd(t)
}
