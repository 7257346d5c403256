package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"ocp/internal/transcript"
)

// approvedTail is how much of an API key the CLI keeps to know it again.
const approvedTail = 20

// place is where a session lives on disk.
type place struct {
	dir        string // all of it but, with the operator's login, the transcript
	cwd        string
	settings   string
	mcp        string   // the file of MCP servers
	system     string   // FIFO that the system text is given through
	prompt     string   // FIFO that later prompts are given through
	editor     []string // environment that makes the CLI take them from there
	config     string   // the CLI's configuration directory
	private    bool     // config is the session's own
	transcript string
	sessionEnv string // folder that the CLI makes in config for each session, and leaves
}

// newPlace makes a session's folders and files. With credentials in the environment
// the session has a configuration directory of its own, so that sessions cannot damage
// each other's (the CLI rewrites .claude.json at every start) and nothing of the
// operator's is touched. Without, it uses the operator's login where it lies.
func (l *Launcher) newPlace(id string) (place, error) {
	p := place{
		dir:      filepath.Join(l.state.sessions(), shortID(id)),
		settings: l.state.settingsPath(),
		mcp:      l.state.mcpPath(),
		private:  l.private(),
		editor:   editorVars(l.options.EditorCommand),
	}
	p.system, p.prompt = filepath.Join(p.dir, "system"), filepath.Join(p.dir, "prompt")
	if p.private {
		p.cwd, p.config = filepath.Join(p.dir, "cwd"), filepath.Join(p.dir, "config")
	} else {
		p.cwd, p.config = l.state.sharedDir(), operatorConfig(l.options.Env)
	}
	p.transcript = filepath.Join(transcript.ProjectDir(p.config, p.cwd), id+".jsonl")
	p.sessionEnv = filepath.Join(p.config, "session-env", id)

	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return place{}, fmt.Errorf("make session folder: %w", err)
	}
	if err := p.fill(l.options.Env); err != nil {
		return place{}, errors.Join(err, p.remove())
	}
	return p, nil
}

func (p place) fill(env []string) error {
	for _, dir := range []string{p.home(), p.temp(), p.cwd} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make session folder: %w", err)
		}
	}
	for _, fifo := range []string{p.system, p.prompt} {
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			return fmt.Errorf("make FIFO: %w", err)
		}
	}
	if !p.private {
		return nil
	}
	if err := os.Mkdir(p.config, 0o700); err != nil {
		return fmt.Errorf("make configuration folder: %w", err)
	}
	return os.WriteFile(filepath.Join(p.config, ".claude.json"), seed(env, p.cwd), 0o600)
}

func (p place) home() string { return filepath.Join(p.dir, "home") }
func (p place) temp() string { return filepath.Join(p.dir, "tmp") }

// environment is what of a session's environment depends on where it lives.
func (p place) environment(env []string) []string {
	vars := append([]string{"TMPDIR=" + p.temp(), PromptVar + "=" + p.prompt}, p.editor...)
	if p.private {
		return append(vars, "HOME="+p.home(), "CLAUDE_CONFIG_DIR="+p.config)
	}
	for _, name := range []string{"HOME", "CLAUDE_CONFIG_DIR"} {
		if value, ok := lookup(env, name); ok {
			vars = append(vars, name+"="+value)
		}
	}
	// Skips the trust dialog for OCP's own empty working directory, which would
	// otherwise have to be entered in the operator's configuration. It changes nothing
	// of what is sent upstream.
	return append(vars, "CLAUDE_CODE_SANDBOXED=1")
}

// writeTranscript puts the conversation where the CLI resumes it from and returns its
// size in bytes: the turn's own records are behind them.
func (p place) writeTranscript(entries []transcript.Entry) (int64, error) {
	if err := os.MkdirAll(filepath.Dir(p.transcript), 0o700); err != nil {
		return 0, fmt.Errorf("make transcript folder: %w", err)
	}
	return transcript.Create(p.transcript, entries)
}

// remove deletes everything of the session; in the operator's configuration that is
// the transcript and the folder that the CLI has made for it.
func (p place) remove() error {
	var errs []error
	if !p.private {
		if err := os.Remove(p.transcript); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		if err := os.RemoveAll(p.sessionEnv); err != nil {
			errs = append(errs, err)
		}
	}
	if err := os.RemoveAll(p.dir); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return fmt.Errorf("remove what the session left: %w", errors.Join(errs...))
	}
	return nil
}

// operatorConfig is where the CLI keeps the operator's configuration.
func operatorConfig(env []string) string {
	if dir, ok := lookup(env, "CLAUDE_CONFIG_DIR"); ok {
		return dir
	}
	home, _ := lookup(env, "HOME")
	return filepath.Join(home, ".claude")
}

// seed is a .claude.json with which the CLI starts without a dialog (facts, section 15).
func seed(env []string, cwd string) []byte {
	config := map[string]any{
		"hasCompletedOnboarding": true,
		"projects":               map[string]any{cwd: map[string]any{"hasTrustDialogAccepted": true}},
	}
	if key, ok := lookup(env, "ANTHROPIC_API_KEY"); ok {
		config["customApiKeyResponses"] = map[string]any{"approved": []string{keyTail(key)}, "rejected": []string{}}
	}
	data, err := json.Marshal(config)
	if err != nil {
		panic(err) // maps of strings and booleans always marshal
	}
	return data
}
