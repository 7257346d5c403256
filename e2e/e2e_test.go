// Package e2e runs the real binary as a user would: `ocp serve` as a process, the
// real Claude Code CLI at every pinned version behind it, a scripted model upstream,
// and official clients in front.
//
// OCP_TEST_CLIS names the CLIs as VERSION=PATH, separated by commas; `make test-cli`
// sets it. Nothing here is skipped when a CLI is missing: it fails.
//
// OCP_TEST_TERMINAL, if it is set, is the --terminal of all; tests that name one keep it.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ocpBinary is built by TestMain with the race detector.
var ocpBinary string

// cli is one installed Claude Code CLI.
type cli struct{ version, path string }

// clis are all that the suite runs on.
var clis []cli

func TestMain(m *testing.M) {
	code, err := prepare(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func prepare(m *testing.M) (int, error) {
	named := os.Getenv("OCP_TEST_CLIS")
	if named == "" {
		return 0, fmt.Errorf("OCP_TEST_CLIS is not set: run `make test-cli`")
	}
	for pair := range strings.SplitSeq(named, ",") {
		version, path, ok := strings.Cut(pair, "=")
		if _, err := os.Stat(path); !ok || err != nil {
			return 0, fmt.Errorf("OCP_TEST_CLIS: %q is not VERSION=PATH of an installed CLI: run `make cli`", pair)
		}
		clis = append(clis, cli{version, path})
	}
	dir, err := os.MkdirTemp("", "ocp-e2e-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	ocpBinary = filepath.Join(dir, "ocp")
	build := exec.Command("go", "build", "-race", "-o", ocpBinary, "ocp/cmd/ocp")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return 0, fmt.Errorf("build ocp: %w", err)
	}
	return m.Run(), nil
}

// onEachCLI runs a test on every pinned CLI, on all at once, and beside other tests: they
// wait for the CLI or the model most of the time.
func onEachCLI(t *testing.T, test func(t *testing.T, c cli)) {
	t.Helper()
	t.Parallel()
	onEachCLIAlone(t, test)
}

// onEachCLIAlone is onEachCLI for tests that keep the machine busy.
// It returns when the test has ended on all.
func onEachCLIAlone(t *testing.T, test func(t *testing.T, c cli)) {
	t.Helper()
	t.Run("cli", func(t *testing.T) {
		for _, c := range clis {
			t.Run(c.version, func(t *testing.T) {
				t.Parallel()
				test(t, c)
			})
		}
	})
}

// onOneCLIAtATime is onEachCLI for tests that change what all CLIs of this machine see.
func onOneCLIAtATime(t *testing.T, test func(t *testing.T, c cli)) {
	for _, c := range clis {
		t.Run(c.version, func(t *testing.T) { test(t, c) })
	}
}
