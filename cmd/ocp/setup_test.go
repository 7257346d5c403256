package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ocp/internal/claude/claudetest"
)

// TestSetup runs the command on a home of its own, and then serve's own reading of what it
// has written. Every setting that the file shows must be one, with its default.
func TestSetup(t *testing.T) {
	home := t.TempDir()
	var stdout, stderr bytes.Buffer
	p := program{
		stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr,
		env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "ANTHROPIC_API_KEY=" + credential},
	}
	t.Setenv("OCP_QUEUE", "7")
	t.Setenv("OCP_API_KEY", "canary")
	if code := run(p, []string{"setup", "--yes", "--no-service", "--claude", claudetest.Path(), "--listen", "127.0.0.1:0"}); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
	path := filepath.Join(home, ".config", "ocp", "config.toml")
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if all := string(written) + stdout.String() + stderr.String(); strings.Contains(all, "canary") || strings.Contains(all, credential) {
		t.Errorf("a secret is shown:\n%s", all)
	}
	for _, name := range []string{"OCP_QUEUE", "OCP_API_KEY"} {
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	want, err := parseServe(t, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plain := want.Serve
	want.Claude, want.Listen, want.Queue = claudetest.Path(), "127.0.0.1:0", 7
	got, err := parseServe(t, home)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Serve, got.Serve); diff != "" {
		t.Error(diff)
	}

	// All that is shown, as if it were set, and nothing that is.
	shown := regexp.MustCompile(`(?m)^[a-z].*\n`).ReplaceAll(written, nil)
	shown = regexp.MustCompile(`(?m)^#([a-z-]+ = )`).ReplaceAll(shown, []byte("$1"))
	if err := os.WriteFile(path, shown, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err = parseServe(t, home)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.file.Lines) < 20 {
		t.Errorf("only %d settings are shown", len(got.file.Lines))
	}
	if diff := cmp.Diff(plain, got.Serve, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}
