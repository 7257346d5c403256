package claude

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"ocp/internal/hook"
)

// Transport is how a session's hook calls reach OCP.
type Transport string

// The transports. SessionStart always goes by command: the CLI does not deliver it
// over HTTP (facts, section 13).
const (
	HTTP    Transport = "http"
	Command Transport = "command" // for hosts whose policy forbids http hooks
)

// The variables that a session's hooks read.
const (
	SecretVar = "OCP_HOOK_SECRET"
	SocketVar = "OCP_HOOK_SOCKET"
)

// How many seconds the CLI gives a hook call. SessionStart waits for the client's tools.
const (
	hookTimeout      = 10
	startHookTimeout = 60
)

type hookGroup struct {
	Hooks []hookConfig `json:"hooks"`
}

type hookConfig struct {
	Type           string            `json:"type"`
	Command        string            `json:"command,omitempty"`
	URL            string            `json:"url,omitempty"`
	Headers        map[string]string `json:"headers,omitempty"`
	AllowedEnvVars []string          `json:"allowedEnvVars,omitempty"`
	Timeout        int               `json:"timeout"`
}

// settings is the content of the one settings file that all sessions share: the
// secret is taken from each session's environment.
func settings(transport Transport, url string, command []string) ([]byte, error) {
	for _, s := range append(slices.Clone(command), url) {
		if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			return nil, fmt.Errorf("neither JSON nor a shell can say %q", s)
		}
	}
	byCommand := hookConfig{Type: "command", Command: shellQuote(command), Timeout: hookTimeout}
	byHTTP := hookConfig{
		Type: "http", URL: url, Timeout: hookTimeout,
		Headers:        map[string]string{hook.SecretHeader: "$" + SecretVar},
		AllowedEnvVars: []string{SecretVar},
	}
	start := byCommand
	start.Timeout = startHookTimeout
	rest := byHTTP
	if transport == Command {
		rest = byCommand
	}
	hooks := map[string][]hookGroup{hook.SessionStart: {{Hooks: []hookConfig{start}}}}
	for _, event := range []string{hook.UserPromptSubmit, hook.MessageDisplay, hook.PreToolUse, hook.Stop, hook.StopFailure, hook.SessionEnd} {
		hooks[event] = []hookGroup{{Hooks: []hookConfig{rest}}}
	}
	return json.Marshal(map[string]any{"hooks": hooks})
}

// shellQuote makes a command line that a POSIX shell splits back into words.
func shellQuote(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}
