package tmux

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// commandBound is how long one command of tmux may take. Usual are some milliseconds.
const commandBound = 5 * time.Second

// leastMajor and leastMinor are the oldest version that has what is used here: attaching
// read-only without changing the size, and -N.
const leastMajor, leastMinor = 3, 2

var (
	// ErrMissing is returned by Find if there is no tmux.
	ErrMissing = errors.New("there is no tmux on PATH: install it (apt-get install tmux, or brew install tmux)")

	// ErrTooOld is returned by Find for a tmux before version 3.2.
	ErrTooOld = fmt.Errorf("tmux is too old: install version %d.%d or later", leastMajor, leastMinor)
)

// Find looks tmux up in a PATH and returns its absolute path and its version, such as
// "3.3a". Errors: ErrMissing, ErrTooOld, or that it cannot be run.
func Find(ctx context.Context, path string) (program, version string, err error) {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // never a program of the working directory
		}
		if program, err = exec.LookPath(filepath.Join(dir, "tmux")); err == nil {
			break
		}
	}
	if err != nil || program == "" {
		return "", "", ErrMissing
	}
	ctx, cancel := context.WithTimeout(ctx, commandBound)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "-V").Output()
	if err != nil {
		return "", "", fmt.Errorf("%s -V: %w", program, err)
	}
	version = strings.TrimPrefix(strings.TrimSpace(string(out)), "tmux ")
	if tooOld(version) {
		return program, version, fmt.Errorf("%w (%s is %s)", ErrTooOld, program, version)
	}
	return program, version, nil
}

var released = regexp.MustCompile(`^(?:next-)?([0-9]+)\.([0-9]+)`)

// tooOld tells releases apart. What else calls itself a version ("master") is let through.
func tooOld(version string) bool {
	m := released.FindStringSubmatch(version)
	if m == nil {
		return false
	}
	major, _ := strconv.Atoi(m[1]) // digits; one that is too large is large
	minor, _ := strconv.Atoi(m[2])
	return major < leastMajor || major == leastMajor && minor < leastMinor
}

// Attach is the command line that shows a pane on the terminal it is run on. Whoever runs
// it can only look: Ctrl-C leaves.
func Attach(program, name, pane string) []string {
	return []string{program, "-u", "-L", name, "attach-session", "-r", "-t", "=" + pane}
}

// command is one call of tmux on the server of that name, which it may start or must not.
// The operator's own tmux has no part in it: neither its server, nor its configuration, nor
// what is set inside one of its panes.
func command(ctx context.Context, program, name string, start bool, args ...string) *exec.Cmd {
	global := []string{"-u", "-L", name, "-f", "/dev/null"}
	if !start {
		global = append(global, "-N")
	}
	cmd := exec.CommandContext(ctx, program, append(global, args...)...)
	cmd.Env = environment
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	return cmd
}

// environment is tmux's own, and through it the panes'. TMUX_TMPDIR is not in it, so that
// the server's socket is always in /tmp.
var environment = []string{"PATH=/usr/bin:/bin", "HOME=/", "SHELL=/bin/sh", "TERM=xterm-256color", "LANG=C.UTF-8"}

// describe puts what tmux said into the error of its command.
func describe(what string, err error, said []byte) error {
	if text := strings.TrimSpace(string(said)); text != "" {
		return fmt.Errorf("tmux: %s: %w: %.200s", what, err, text)
	}
	return fmt.Errorf("tmux: %s: %w", what, err)
}
