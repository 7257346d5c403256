package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

// parseServe is what `ocp serve` with the arguments would be told.
func parseServe(t *testing.T, home string, args ...string) (*serveCommand, error) {
	t.Helper()
	var c commands
	p := program{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, env: []string{"HOME=" + home}}
	parser, err := newParser(&c, p, kong.Exit(func(int) { t.Error("the parser exits") }))
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(append([]string{"serve"}, args...))
	return &c.Serve, err
}

func writeConfig(t *testing.T, text string) (home string) {
	t.Helper()
	home = t.TempDir()
	path := filepath.Join(home, ".config", "ocp", "config.toml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

// TestOrderOfSettings gives each way another value, and takes one way after the other
// away.
func TestOrderOfSettings(t *testing.T) {
	home := writeConfig(t, "concurrency = 3\n")
	t.Setenv("OCP_CONCURRENCY", "4")
	for _, step := range []struct {
		what  string
		args  []string
		env   bool
		home  string
		value int
	}{
		{"flag", []string{"--concurrency", "5"}, true, home, 5},
		{"environment", nil, true, home, 4},
		{"file", nil, false, home, 3},
		{"file that is none", []string{"--config", os.DevNull}, false, home, 2},
		{"default", nil, false, t.TempDir(), 2},
	} {
		if !step.env {
			if err := os.Unsetenv("OCP_CONCURRENCY"); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := parseServe(t, step.home, step.args...); err != nil || got.Concurrency != step.value {
			t.Errorf("%s: got %d (%v), want %d", step.what, got.Concurrency, err, step.value)
		}
	}
}

func TestEveryKindOfSetting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine")
	text := `listen = "[::1]:0"
pool = 0
turn-timeout = "90s"
start-check = false
strict-params = true
api-key = ["a,b", "c"]
models = "one,two"
effort = ""
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OCP_CONFIG", path)
	got, err := parseServe(t, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	want, err := parseServe(t, t.TempDir(), "--config", os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	want.Listen, want.Pool, want.TurnTimeout, want.StartCheck, want.StrictParams = "[::1]:0", 0, 90*time.Second, false, true
	want.APIKey, want.Models, want.Effort = []string{"a,b", "c"}, []string{"one,two"}, ""
	if diff := cmp.Diff(want.Serve, got.Serve); diff != "" {
		t.Error(diff)
	}
	if !got.exposed() {
		t.Error("a file with keys that others can read is not told")
	}
}

func TestRefusedSettings(t *testing.T) {
	for text, says := range map[string]string{
		"conurrency = 3":         `line 1: there is no setting "conurrency"; did you mean "concurrency"?`,
		"\nconcurrency = \"x\"":  `line 2: expected a valid`,
		"turn-timeout = 10":      `line 1: expected duration`,
		"log-level = \"loud\"":   `line 1: must be one of debug,info,warn,error`,
		"start-check = \"ja\"":   `line 1: bool value must be`,
		"config = \"x\"":         `there is no setting "config"`,
		"concurrency = [1]":      `line 1: expected`,
		"listen = true\n[x]":     `line 2: settings have no sections`,
		"models = [1979-05-27]":  `line 1: models is neither`,
		"help = true":            `there is no setting "help"`,
		"keep-for = \"5 hours\"": `line 1: expected duration`,
	} {
		if _, err := parseServe(t, writeConfig(t, text)); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "config.toml") {
			t.Errorf("%q: got %v, want %q", text, err, says)
		}
	}
	_, err := parseServe(t, t.TempDir(), "--config", "/none/such")
	if err == nil || !strings.Contains(err.Error(), "--config: ") || !strings.Contains(err.Error(), "/none/such") {
		t.Errorf("a named file that is not there: %v", err)
	}
}

// TestOthersTakeNoFile checks that a file of settings is not in the way of commands that
// have their own.
func TestOthersTakeNoFile(t *testing.T) {
	var c commands
	p := program{env: []string{"HOME=" + writeConfig(t, "nonsense = 1")}}
	parser, err := newParser(&c, p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"version"}); err != nil {
		t.Error(err)
	}
	if _, err := parser.Parse([]string{"doctor"}); err == nil {
		t.Error("doctor does not read the file")
	}
}

// TestStateDirOfTheFile checks that commands about serve's state take its directory, and
// nothing else, from the file.
func TestStateDirOfTheFile(t *testing.T) {
	p := program{env: []string{"HOME=" + writeConfig(t, "state-dir = \"/mine\"\nconcurrency = 9\n")}}
	for _, args := range [][]string{{"keys", "add", "x"}, {"keys", "list"}, {"usage"}, {"watch"}} {
		var c commands
		parser, err := newParser(&c, p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(args); err != nil {
			t.Fatal(err)
		}
		got := []string{c.Keys.Add.StateDir, c.Keys.List.StateDir, c.Usage.StateDir, c.Watch.StateDir}
		if !slices.Contains(got, "/mine") || c.Keys.Add.Concurrency != 0 {
			t.Errorf("%v: %v, concurrency %d", args, got, c.Keys.Add.Concurrency)
		}
	}
}
