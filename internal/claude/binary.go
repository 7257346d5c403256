package claude

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// InstallCommand installs the CLI where Find finds it.
const InstallCommand = "npm install -g @anthropic-ai/claude-code"

// ErrNotFound is returned by Find, with the command that installs the CLI.
var ErrNotFound = errors.New("the Claude Code CLI was not found: install it with `" + InstallCommand + "`, or name it with --claude PATH")

// versionTimeout bounds `claude --version`, which takes a tenth of a second.
const versionTimeout = 20 * time.Second

// Find returns the absolute path of the claude binary: the one named, or else the
// first on PATH, or else ~/.local/bin/claude, where a service does not look by itself.
func Find(named string, env []string) (string, error) {
	if named != "" {
		path, err := filepath.Abs(named)
		if err != nil {
			return "", fmt.Errorf("--claude: %w", err)
		}
		if !executable(path) {
			return "", fmt.Errorf("--claude: %s is not a program that can be run: install the CLI with `%s`", named, InstallCommand)
		}
		return path, nil
	}
	dirs := filepath.SplitList(Variable(env, "PATH"))
	if home := Variable(env, "HOME"); home != "" {
		dirs = append(dirs, filepath.Join(home, ".local", "bin"))
	}
	for _, dir := range dirs {
		if path := filepath.Join(dir, "claude"); filepath.IsAbs(path) && executable(path) {
			return path, nil
		}
	}
	return "", ErrNotFound
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Version asks the CLI for its version, such as "2.1.332".
func Version(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir(), "DISABLE_AUTOUPDATER=1"}
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("`%s --version` failed: %w", path, err)
	}
	version, _, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if version == "" {
		return "", fmt.Errorf("`%s --version` printed no version", path)
	}
	return version, nil
}

// Variable is the value of a variable in an environment, empty if it has none.
func Variable(env []string, name string) string {
	value, _ := lookup(env, name)
	return value
}
