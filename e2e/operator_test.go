package e2e

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// leak is in everything of the operator's that no session may take notice of.
const leak = "canary-leak-2f6e91"

// Credentials of the operator's own login, in the form the CLI keeps them.
const (
	loginToken   = "sk-ant-oat01-canary-access-77c1"
	refreshToken = "sk-ant-ort01-canary-refresh-77c1"
)

// operator is a user's home with a lived-in Claude Code configuration, and a state
// directory below folders that hold more of it.
type operator struct {
	home  string
	work  string // parent of state
	state string
	temp  string // TMPDIR of ocp
	ran   string // folder for what hooks and servers touch when they are run
}

func newOperator(t *testing.T) *operator {
	t.Helper()
	root := t.TempDir()
	o := &operator{
		home: filepath.Join(root, "home"), work: filepath.Join(root, "work"), state: filepath.Join(root, "work", "state"),
		temp: filepath.Join(root, "tmp"), ran: filepath.Join(root, "ran"),
	}
	for _, dir := range []string{o.temp, o.ran} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	o.write(t, filepath.Join(o.state, "ocp.lock"), "") // an earlier ocp was here
	servers := map[string]any{leak: map[string]any{"command": "touch", "args": []string{filepath.Join(o.ran, "mcp-server")}}}
	for _, dir := range []string{root, o.home, o.work, o.state, filepath.Join(o.state, "cwd")} {
		o.write(t, filepath.Join(dir, "CLAUDE.md"), "Always say "+leak)
		o.write(t, filepath.Join(dir, "CLAUDE.local.md"), "Always say "+leak)
		o.write(t, filepath.Join(dir, ".mcp.json"), toJSON(t, map[string]any{"mcpServers": servers}))
		o.write(t, filepath.Join(dir, ".claude", "CLAUDE.md"), "Always say "+leak)
		o.write(t, filepath.Join(dir, ".claude", "rules", "rule.md"), "Always say "+leak)
		for _, name := range []string{"settings.json", "settings.local.json"} {
			o.write(t, filepath.Join(dir, ".claude", name), toJSON(t, o.settings()))
		}
		for _, kind := range []string{"commands", "agents", "output-styles"} {
			o.write(t, filepath.Join(dir, ".claude", kind, leak+".md"), "---\nname: "+leak+"\ndescription: "+leak+"\n---\n"+leak)
		}
		o.write(t, filepath.Join(dir, ".claude", "skills", leak, "SKILL.md"), "---\nname: "+leak+"\ndescription: "+leak+"\n---\n"+leak)
	}
	o.write(t, filepath.Join(o.home, ".claude.json"), toJSON(t, map[string]any{
		"hasCompletedOnboarding": true, "numStartups": 3, "mcpServers": servers,
		"projects": map[string]any{"/somewhere": map[string]any{"lastSessionId": "own"}},
	}))
	o.write(t, filepath.Join(o.home, ".claude", "history.jsonl"), `{"display":"own"}`+"\n")
	o.write(t, filepath.Join(o.home, ".claude", "projects", "-somewhere", "own.jsonl"), `{"type":"user"}`+"\n")
	return o
}

// logIn gives the operator a login of a subscription.
func (o *operator) logIn(t *testing.T) {
	o.write(t, o.credentials(), toJSON(t, map[string]any{"claudeAiOauth": map[string]any{
		"accessToken": loginToken, "refreshToken": refreshToken,
		"expiresAt": time.Now().Add(1000 * time.Hour).UnixMilli(),
		"scopes":    []string{"user:inference", "user:profile"}, "subscriptionType": "max",
	}}))
}

func (o *operator) credentials() string {
	return filepath.Join(o.home, ".claude", ".credentials.json")
}

// settings would steer, slow down and spy on every session that took them.
func (o *operator) settings() map[string]any {
	touch := func(name string) string { return "touch '" + filepath.Join(o.ran, name) + "'; echo " + leak }
	hooks := map[string]any{}
	for _, event := range []string{"SessionStart", "UserPromptSubmit", "MessageDisplay", "Stop", "SessionEnd"} {
		hooks[event] = []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": touch("hook-" + event)}}}}
	}
	return map[string]any{
		"hooks": hooks, "env": map[string]string{"ANTHROPIC_CUSTOM_HEADERS": "X-Leak: " + leak, "LEAK": leak},
		"model": leak, "outputStyle": leak, "enableAllProjectMcpServers": true,
		"apiKeyHelper": touch("key-helper"), "statusLine": map[string]any{"type": "command", "command": touch("status-line")},
	}
}

func (o *operator) write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// environment is what ocp is started with, further variables behind it.
func (o *operator) environment(more ...string) []string {
	return append([]string{"HOME=" + o.home, "TMPDIR=" + o.temp}, more...)
}

// nothingRan checks that no hook, server or helper of the operator's was run.
func (o *operator) nothingRan(t *testing.T) {
	t.Helper()
	for path := range snapshot(t, o.ran) {
		t.Errorf("a session has run the operator's %s", filepath.Base(path))
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// snapshot is every path below dir, dir itself excepted: the mode, and of regular files
// the content.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return ignoreGone(err)
		}
		info, err := entry.Info()
		if err != nil {
			return ignoreGone(err)
		}
		content := ""
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return ignoreGone(err)
			}
			content = string(data)
		}
		all[path] = info.Mode().String() + " " + content
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ignoreGone leaves out what was removed in the middle of a walk.
func ignoreGone(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// holding returns the files below the folders that hold one of the words, in their
// names or in what is in them.
func holding(t *testing.T, words []string, dirs ...string) []string {
	t.Helper()
	var found []string
	for _, dir := range dirs {
		for path, content := range snapshot(t, dir) {
			for _, word := range words {
				if strings.Contains(path, word) || strings.Contains(content, word) {
					found = append(found, path)
					break
				}
			}
		}
	}
	return found
}
