package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runIn runs a command with a home and nothing else in its environment.
func runIn(t *testing.T, home string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(program{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, env: []string{"HOME=" + home}}, args)
	return code, out.String(), errs.String()
}

func TestConnect(t *testing.T) {
	home := writeConfig(t, "listen = \"0.0.0.0:4000\"\n")
	code, out, errs := runIn(t, home, "connect")
	if code != 0 || strings.Count(out, "\n") != 7 || errs != "" {
		t.Errorf("list: %d\n%s%s", code, out, errs)
	}
	code, out, _ = runIn(t, home, "connect", "cline", "--model", "opus")
	if code != 0 || !strings.Contains(out, "Base URL:     http://127.0.0.1:4000/v1\n") || !strings.Contains(out, "Model ID:     opus\n") {
		t.Errorf("cline: %d\n%s", code, out)
	}
	for _, args := range [][]string{
		{"connect", "emacs"},
		{"connect", "cline", "--write"},
		{"connect", "aider", "--url", "localhost"},
	} {
		if code, out, errs := runIn(t, home, args...); code == 0 || out != "" || errs == "" {
			t.Errorf("%v: %d\n%s%s", args, code, out, errs)
		}
	}
}

// TestConnectWrites keeps what was there, shows what changes and not the key.
func TestConnectWrites(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, ".config", "opencode", "opencode.jsonc")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	const mine = "{\n  // mine\n  \"theme\": \"x\"\n}\n"
	if err := os.WriteFile(path, []byte(mine), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs := runIn(t, home, "connect", "opencode", "--write", "--api-key", "canary", "--url", "http://box:1/v1/")
	if code != 0 || !strings.Contains(out, "\n-  \"theme\": \"x\"\n+  \"theme\": \"x\",\n") || strings.Contains(out+errs, "canary") || !strings.Contains(errs, "chmod 600") {
		t.Errorf("%d\n%s%s", code, out, errs)
	}
	written, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(written), "  // mine\n") || !strings.Contains(string(written), `"apiKey": "canary"`) || !strings.Contains(string(written), `"http://box:1/v1"`) {
		t.Errorf("%v\n%s", err, written)
	}
	backups, err := filepath.Glob(path + ".bak-*")
	if err != nil || len(backups) != 1 {
		t.Fatalf("backups: %v, %v", backups, err)
	}
	if kept, err := os.ReadFile(backups[0]); err != nil || string(kept) != mine {
		t.Errorf("%v: the backup is\n%s", err, kept)
	}
	if code, out, _ := runIn(t, home, "connect", "opencode", "--write", "--api-key", "canary", "--url", "http://box:1"); code != 0 || !strings.Contains(out, "as it should be") {
		t.Errorf("again: %d\n%s", code, out)
	}
}
