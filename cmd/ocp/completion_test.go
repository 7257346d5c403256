package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"ocp/internal/programtest"
)

func TestComplete(t *testing.T) {
	home := t.TempDir()
	for words, want := range map[string][]string{
		"ser":                    {"serve"},
		"hook":                   nil, // hidden
		"serve --keep-":          {"--keep-transcripts", "--keep-alive", "--keep-for"},
		"serve --no-":            {"--no-start-check"},
		"serve --log-level ":     {"debug", "info", "warn", "error"},
		"serve --log-level = w":  {"warn"},
		"serve --log-level =":    {"debug", "info", "warn", "error"},
		"serve --log-level=e":    {"--log-level=error"},
		"serve --log-level x":    nil,
		"serve --claude ":        {":files"},
		"serve --queue ":         nil,
		"serve --strict-params ": nil,
		"serve ":                 nil,
		"serve --queue 3 --eff":  {"--effort"},
		"connect op":             {"opencode", "open-webui"},
		"connect opencode --ur":  {"--url"},
		"connect --write ai":     {"aider"},
		"connect --model x ai":   {"aider"},
		"nonsense --l":           nil,
		"--h":                    {"--help"},
	} {
		code, out, errs := runIn(t, home, append([]string{"complete", "--"}, strings.Split(words, " ")...)...)
		if code != 0 || errs != "" {
			t.Errorf("%s: %d\n%s", words, code, errs)
		}
		var got []string
		for line := range strings.Lines(out) {
			value, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			got = append(got, value)
		}
		if diff := cmp.Diff(want, got); diff != "" && words != "serve --keep-" || len(got) != len(want) {
			t.Errorf("%s: %s", words, diff)
		}
	}
}

// shellWithOcp is a folder with an ocp that completes, and else prints its arguments.
func shellWithOcp(t *testing.T) (dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\ncase $1 in\ncomplete) %s=1 exec '%s' \"$@\" ;;\nesac\nprintf 'ARGS'; printf '[%%s]' \"$@\"; echo .\n", asOcp, self)
	if err := os.WriteFile(filepath.Join(dir, "ocp"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestShellsComplete types into the shells, with the tab key, and sees what they run.
func TestShellsComplete(t *testing.T) {
	for shell, test := range map[string]struct{ command, load []string }{
		"bash": {[]string{"--norc", "--noprofile", "-i"}, []string{"source '%s'"}},
		"zsh":  {[]string{"-f", "-i"}, []string{"autoload -U compinit", "compinit -D -u", "source '%s'"}},
	} {
		t.Run(shell, func(t *testing.T) {
			path := programtest.Find(t, shell)
			dir := shellWithOcp(t)
			code, script, errs := runIn(t, dir, "completion", shell)
			if code != 0 {
				t.Fatal(errs)
			}
			file := filepath.Join(dir, "script")
			if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "Filename"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, path, test.command...)
			cmd.Dir = dir
			cmd.Env = []string{"HOME=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH"), "TERM=xterm", "PS1=ready> "}
			terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 200})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = terminal.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			out := bufio.NewReader(terminal)
			until := func(typed, want string) {
				for seen := ""; !strings.HasSuffix(seen, want); {
					b, err := out.ReadByte()
					if seen += string(b); err != nil || strings.HasSuffix(seen, "].\r") {
						t.Fatalf("%q: no %s: %v\n%s", typed, want, err, seen)
					}
				}
			}
			const prompt = "ready> "
			until("", prompt)
			for _, line := range test.load {
				fmt.Fprintln(terminal, strings.ReplaceAll(line, "%s", file))
				until(line, prompt)
			}
			// A shell may take a tab for another key if more is typed behind it.
			for _, line := range [][][2]string{
				{{"ocp ser\t", "serve"}, {"--log-l\t", "--log-level"}, {"de\t", "debug"}, {"\n", "ARGS[serve][--log-level][debug]."}},
				{{"ocp serve --log-level=wa\t", "=warn"}, {"\n", "ARGS[serve][--log-level=warn]."}},
				{{"ocp serve --claude Filen\t", "ame"}, {"\n", "ARGS[serve][--claude][Filename]."}},
				{{"ocp connect opencode --wri\t", "--write"}, {"\n", "ARGS[connect][opencode][--write]."}},
			} {
				for _, step := range line {
					fmt.Fprint(terminal, step[0])
					until(step[0], step[1])
				}
				until("", prompt)
			}
		})
	}
	t.Run("fish", func(t *testing.T) {
		path := programtest.Find(t, "fish")
		dir := shellWithOcp(t)
		_, script, _ := runIn(t, dir, "completion", "fish")
		for typed, want := range map[string]string{"ocp ser": "serve\t", "ocp serve --log-level ": "debug\n", "ocp serve --log-level=w": "--log-level=warn\n"} {
			cmd := exec.CommandContext(t.Context(), path, "--no-config", "-c", script+"\ncomplete -C '"+typed+"'")
			cmd.Env = []string{"HOME=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH")}
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%q: %v\n%s", typed, err, out)
			}
		}
	})
}

// TestManPage lets formatters judge the page.
func TestManPage(t *testing.T) {
	_, page, _ := runIn(t, t.TempDir(), "man")
	for _, want := range []string{"\n.SS ocp serve", "\n.TP\n.B \\-\\-listen=", "($OCP_LISTEN)", "\n.SS ocp connect"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(page, "ocp hook") || strings.Contains(page, "ocp complete ") {
		t.Error("the page has hidden commands")
	}
	for _, formatter := range [][]string{{"groff", "-man", "-ww", "-Tutf8"}, {"mandoc", "-T", "lint", "-W", "error"}} {
		cmd := exec.CommandContext(t.Context(), programtest.Find(t, formatter[0]), formatter[1:]...)
		cmd.Stdin = strings.NewReader(page)
		var errs strings.Builder
		cmd.Stderr = &errs
		if err := cmd.Run(); err != nil || errs.Len() > 0 {
			t.Errorf("%v: %v\n%s", formatter, err, &errs)
		}
	}
}
