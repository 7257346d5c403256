package tmux_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"ocp/internal/terminal"
	"ocp/internal/terminal/terminaltest"
	"ocp/internal/terminal/tmux"
)

// The test binary is also what runs in panes, and a host that is to be killed.
const (
	paneArg = "pane-of-test"
	hostEnv = "OCP_TMUX_TEST_HOST"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == paneArg {
		if err := tmux.RunPane(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if script := os.Getenv(hostEnv); script != "" {
		s, err := tmux.Listen(options(os.Getenv(hostEnv + "_DIR")))
		if err == nil {
			_, err = s.Start("hosted", terminal.Options{Path: "/bin/sh", Args: []string{"-c", script}})
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {}
	}
	goleak.VerifyTestMain(m)
}

func options(dir string) tmux.Options {
	program, _, err := tmux.Find(context.Background(), os.Getenv("PATH"))
	if err != nil {
		panic(err)
	}
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return tmux.Options{
		Program: program, Name: "ocp-test-" + filepath.Base(dir), Socket: filepath.Join(dir, "panes"),
		// A program with the race detector would sleep a second at its end.
		Pane: []string{"/usr/bin/env", "GORACE=atexit_sleep_ms=0", exe, paneArg},
	}
}

// newOptions are for a server of the test's own.
func newOptions(t *testing.T) tmux.Options {
	t.Helper()
	dir, err := os.MkdirTemp("", rand.Text()[:8])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return options(dir)
}

func listen(t *testing.T, o tmux.Options) *tmux.Server {
	t.Helper()
	s, err := tmux.Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	o := newOptions(t)
	s := listen(t, o)
	var started atomic.Int64
	terminaltest.Run(t, terminaltest.Subject{
		Start: func(o terminal.Options) (terminaltest.Terminal, error) {
			return s.Start(fmt.Sprintf("pane%d", started.Add(1)), o)
		},
		Host: func(t *testing.T, script string) *exec.Cmd {
			o := newOptions(t)
			t.Cleanup(func() {
				if err := tmux.Sweep(o.Program, o.Name); err != nil {
					t.Error(err)
				}
			})
			host := exec.Command(os.Args[0])
			host.Env = append(os.Environ(), hostEnv+"="+script, hostEnv+"_DIR="+filepath.Dir(o.Socket))
			host.Stderr = os.Stderr
			return host
		},
	})
}
