package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ran is what became of a run of ocp.
type ran struct {
	code           int
	stdout, stderr string
}

// runOcp runs ocp to its end, with an environment of PATH, HOME and what is given.
func runOcp(t *testing.T, env []string, args ...string) ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, ocpBinary, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("ocp %q: %v\n%s", args, err, stderr.String())
	}
	return ran{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func TestVersion(t *testing.T) {
	got := runOcp(t, nil, "version")
	if got.code != 0 || got.stderr != "" || !regexp.MustCompile(`^ocp \S+ go1\.\S+ \w+/\w+\n$`).MatchString(got.stdout) {
		t.Errorf("%+v", got)
	}
}

// Whoever gives ocp what cannot be is told what it is, with one line for each fault and
// the code of its kind: 2 for a command line that cannot be, 1 for all else.
func TestRefusedCommandLines(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	install := "npm install -g @anthropic-ai/claude-code"
	notRunnable := filepath.Join(t.TempDir(), "claude")
	if err := os.WriteFile(notRunnable, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	claude := "--claude=" + clis[0].path
	for _, row := range []struct {
		name  string
		args  []string
		env   []string
		code  int
		words []string
	}{
		{name: "no command", args: nil, code: 2},
		{name: "no such command", args: []string{"sreve"}, code: 2, words: []string{"sreve"}},
		{name: "no such flag", args: []string{"serve", "--lisen=x"}, code: 2, words: []string{"--lisen"}},
		{name: "not a number", args: []string{"serve", "--concurrency=many"}, code: 2, words: []string{"--concurrency", "many"}},
		{name: "not a duration", args: []string{"serve", "--turn-timeout=soon"}, code: 2, words: []string{"--turn-timeout"}},
		{name: "not a choice", args: []string{"serve", "--hook-transport=pigeon"}, code: 2, words: []string{"--hook-transport", "http", "command"}},
		{name: "no slots", args: []string{"serve", claude, "--concurrency=0"}, code: -1, words: []string{"--concurrency"}},
		{name: "two faults", args: []string{"serve", claude, "--queue=-1", "--keep-alive=0s"}, code: -1, words: []string{"--queue", "--keep-alive"}},
		{name: "not loopback", args: []string{"serve", claude, "--listen=0.0.0.0:0"}, code: -1, words: []string{"--listen", "0.0.0.0", "127.0.0.1"}},
		{name: "every address", args: []string{"serve", claude, "--listen=:0"}, code: -1, words: []string{"--listen", "127.0.0.1"}},
		{name: "not loopback, by variable", args: []string{"serve", claude}, env: []string{"OCP_LISTEN=192.0.2.1:80"}, code: -1, words: []string{"--listen", "192.0.2.1"}},
		{name: "no claude on PATH", args: []string{"serve", "--listen=127.0.0.1:0"}, env: []string{"PATH=/nowhere"}, code: 1, words: []string{install, "--claude"}},
		{name: "no such claude", args: []string{"serve", "--claude=/nowhere/claude"}, code: 1, words: []string{install, "/nowhere/claude"}},
		{name: "not a program", args: []string{"serve", "--claude=" + notRunnable}, code: 1, words: []string{install, notRunnable}},
		{name: "no tmux", args: []string{"serve", claude, "--listen=127.0.0.1:0", "--terminal=tmux"}, env: []string{"PATH=/nowhere"}, code: 1, words: []string{"--terminal tmux", "install", "--terminal pty"}},
		{name: "demo without claude", args: []string{"demo"}, env: []string{"PATH=/nowhere"}, code: 1, words: []string{install}},
		{name: "demo of nothing", args: []string{"demo", claude, "--scenario=nothing"}, code: 1, words: []string{"--scenario", "nothing", "list"}},
		{name: "probe of nothing", args: []string{"probe", claude, "--only=nothing"}, code: 1, words: []string{"--only", "nothing", "--list"}},
		{name: "port taken", args: []string{"serve", claude, "--listen=" + taken.Addr().String()}, code: 1, words: []string{"--listen", "address already in use"}},
		{name: "hook by hand", args: []string{"hook"}, code: 1, words: []string{"not by hand"}},
		{name: "editor by hand", args: []string{"editor", "file"}, code: 1, words: []string{"not by hand"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := runOcp(t, row.env, row.args...)
			if got.code != row.code && !(row.code == -1 && (got.code == 1 || got.code == 2)) {
				t.Errorf("exit code %d, want %d", got.code, row.code)
			}
			if got.stdout != "" || !strings.HasPrefix(got.stderr, "ocp: ") {
				t.Errorf("stdout %q", got.stdout)
			}
			for _, word := range row.words {
				if !strings.Contains(got.stderr, word) {
					t.Errorf("%q is not said", word)
				}
			}
			if strings.Count(got.stderr, install) > 1 {
				t.Error("the install command is said twice")
			}
			if t.Failed() {
				t.Log(got.stderr)
			}
		})
	}
}

// The demo shows what it promises, for each CLI and each way of hooks, and leaves nothing.
func TestDemo(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		for _, transport := range []string{"http", "command"} {
			t.Run(transport, func(t *testing.T) {
				temp := t.TempDir()
				got := runOcp(t, []string{"TMPDIR=" + temp}, "demo", "--claude", c.path, "--hook-transport", transport)
				if got.code != 0 || got.stderr != "" {
					t.Errorf("exit code %d: %s", got.code, got.stderr)
				}
				for _, check := range []string{"exact", "prefix-stable", "incremental", "interactive"} {
					if !regexp.MustCompile(`(?m)^ok +` + check + ` `).MatchString(got.stdout) {
						t.Errorf("no ok for %q", check)
					}
				}
				for _, words := range []string{"FAIL", "panic"} {
					if strings.Contains(got.stdout, words) {
						t.Errorf("%q in the output", words)
					}
				}
				if !strings.Contains(got.stdout, "Claude Code "+c.version) || !strings.Contains(got.stdout, "│ # How this answer reaches you 🌊\n") {
					t.Error("no version, or no line of the answer")
				}
				if t.Failed() {
					t.Log(got.stdout)
				}
				if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
					t.Errorf("left in the temporary folder: %v, %v", left, err)
				}
			})
		}
	})
}

// A probe finds what holds and what does not, and leaves nothing.
func TestProbe(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		temp := t.TempDir()
		got := runOcp(t, []string{"TMPDIR=" + temp}, "probe", "--claude", c.path, "--only", "hook-fires,primed-exact,dead-files", "--json")
		if got.code != 0 {
			t.Errorf("exit code %d: %s", got.code, got.stderr)
		}
		var report struct {
			CLIs []struct {
				CLI      string
				Findings []struct{ ID, Status string }
			}
		}
		if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || len(report.CLIs) != 1 || report.CLIs[0].CLI != c.version {
			t.Fatalf("%v: %s", err, got.stdout)
		}
		for i, id := range []string{"hook-fires", "primed-exact", "dead-files"} {
			if f := report.CLIs[0].Findings; len(f) != 3 || f[i].ID != id || f[i].Status != "ok" {
				t.Errorf("%+v", f)
			}
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("left in the temporary folder: %v, %v", left, err)
		}
	})
}

func TestDemoScenarioList(t *testing.T) {
	got := runOcp(t, nil, "demo", "--scenario", "list")
	if got.code != 0 || !strings.Contains(got.stdout, "max-tokens-once") {
		t.Errorf("%+v", got)
	}
}
