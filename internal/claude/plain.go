package claude

import (
	"fmt"
	"os"
	"path/filepath"
)

// Plain is a place in which the CLI can be run without a Launcher, as somebody would run
// it by hand: with a home, a configuration and a working directory of its own, past all
// dialogs. It is for probes of what the CLI does when it is started otherwise.
type Plain struct {
	Dir    string   // the working directory
	Config string   // the configuration directory
	Env    []string // the whole environment
}

// NewPlain makes a place in an existing folder. Of env, the caller's own environment,
// sessions' variables are passed on; it must hold a credential.
func NewPlain(dir string, env []string) (Plain, error) {
	dir, err := filepath.EvalSymlinks(dir) // the CLI goes by its working directory's real path
	if err != nil {
		return Plain{}, fmt.Errorf("make a place for the CLI: %w", err)
	}
	p := place{dir: dir, cwd: filepath.Join(dir, "cwd"), config: filepath.Join(dir, "config"), private: true}
	for _, made := range []string{p.home(), p.temp(), p.cwd, p.config} {
		if err := os.MkdirAll(made, 0o700); err != nil {
			return Plain{}, fmt.Errorf("make a place for the CLI: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(p.config, ".claude.json"), seed(env, p.cwd), 0o600); err != nil {
		return Plain{}, fmt.Errorf("make a place for the CLI: %w", err)
	}
	return Plain{
		Dir: p.cwd, Config: p.config,
		Env: environment(env, nil, "TMPDIR="+p.temp(), "HOME="+p.home(), "CLAUDE_CONFIG_DIR="+p.config),
	}, nil
}
