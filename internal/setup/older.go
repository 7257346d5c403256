package setup

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Translated is what of the older Node program's settings there is for OCP.
type Translated struct {
	Values map[string]any // by key of the settings file
	From   map[string]string
	Key    string   // line of a file of hashed keys; empty if there was no key
	Notes  []string // what became of each variable that has no value here; no secret is in one
}

// none says why a variable of the older program has no setting here.
var none = map[string]string{
	"CLAUDE_AUTH_MODE":          "keys decide: without any, OCP serves on loopback only",
	"OCP_ADMIN_KEY":             "keys are managed by commands, not over HTTP",
	"PROXY_ANONYMOUS_KEY":       "there is no key that all may know",
	"CLAUDE_MAX_PROMPT_CHARS":   "conversations are not cut",
	"CLAUDE_SESSION_TTL":        "see keep and keep-for: what a client sends decides how a conversation goes on",
	"CLAUDE_CACHE_TTL":          "answers are not cached",
	"CLAUDE_ALLOWED_TOOLS":      "sessions have no tools",
	"CLAUDE_SKIP_PERMISSIONS":   "sessions have no tools",
	"CLAUDE_MCP_CONFIG":         "sessions have no MCP",
	"CLAUDE_NO_CONTEXT":         "it is always so: no CLAUDE.md and no memory",
	"CLAUDE_TUI_MODE":           "it is always so: the CLI runs interactively",
	"CLAUDE_TUI_ERROR_PATTERNS": "the CLI's errors are known by their marks, not their wording",
	"OCP_TUI_STREAM":            "it is always so: answers stream",
	"OCP_TUI_STREAM_HOLDBACK":   "nothing is held back",
	"OCP_TUI_STREAM_DIR":        "see state-dir",
	"OCP_TUI_STREAM_POLL_MS":    "nothing is polled",
	"OCP_TUI_HOME":              "each session has a home of its own",
	"OCP_TUI_CWD":               "each session has a folder of its own",
	"OCP_TUI_ENTRYPOINT":        "the CLI says itself what it is",
	"OCP_TUI_FULL_TOOLS":        "sessions have no tools",
	"OCP_TUI_ALLOW_LAN":         "see listen and keys",
	"OCP_PROXY_URL":             "it is for clients: see `ocp connect`",
}

// Older translates the environment of the older Node program, as its README (versions
// 3.5 to 3.14) and its notes on its TUI mode name the variables. Others it may have had are
// not known here; those of its prefixes are named in a note.
func Older(env map[string]string) Translated {
	t := Translated{Values: map[string]any{}, From: map[string]string{}}
	tui := env["CLAUDE_TUI_MODE"] == "true"
	t.key(env)
	t.listen(env)
	t.text(env, "CLAUDE_BIN", "claude")
	t.duration(env, "CLAUDE_TIMEOUT", "turn-timeout")
	t.duration(env, "CLAUDE_HEARTBEAT_INTERVAL", "keep-alive")
	t.number(env, "OCP_TUI_POOL_SIZE", "pool")
	// In that mode these two had their own.
	if _, own := env["OCP_TUI_MAX_CONCURRENT"]; own {
		t.number(env, "OCP_TUI_MAX_CONCURRENT", "concurrency")
	} else if !tui {
		t.number(env, "CLAUDE_MAX_CONCURRENT", "concurrency")
	}
	if tui {
		t.duration(env, "CLAUDE_TUI_WALLCLOCK_MS", "turn-timeout")
	}
	switch effort := env["OCP_TUI_EFFORT"]; effort {
	case "":
	case "inherit":
		t.set("OCP_TUI_EFFORT", "effort", "")
	default:
		t.set("OCP_TUI_EFFORT", "effort", effort)
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if why, ok := none[name]; ok {
			t.note("%s has no counterpart: %s", name, why)
		} else if !slices.Contains(translated, name) && (strings.HasPrefix(name, "OCP_TUI_") || strings.HasPrefix(name, "CLAUDE_TUI_") || strings.HasPrefix(name, "CLAUDE_PROXY_") || strings.HasPrefix(name, "PROXY_")) {
			t.note("%s is not known here, and left out", name)
		}
	}
	return t
}

// translated lists what Older gives a value.
var translated = []string{
	"CLAUDE_PROXY_PORT", "CLAUDE_BIND", "CLAUDE_BIN", "CLAUDE_TIMEOUT", "CLAUDE_HEARTBEAT_INTERVAL", "CLAUDE_MAX_CONCURRENT",
	"CLAUDE_TUI_WALLCLOCK_MS", "OCP_TUI_MAX_CONCURRENT", "OCP_TUI_POOL_SIZE", "OCP_TUI_EFFORT", "PROXY_API_KEY",
}

func (t *Translated) note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

func (t *Translated) set(name, key string, value any) {
	t.Values[key], t.From[key] = value, name
}

func (t *Translated) listen(env map[string]string) {
	host, port := env["CLAUDE_BIND"], env["CLAUDE_PROXY_PORT"]
	from := "CLAUDE_BIND"
	switch {
	case host == "" && port == "":
		return
	case host == "":
		host, from = "127.0.0.1", "CLAUDE_PROXY_PORT"
	case port == "":
		port = "3456"
	default:
		from = "CLAUDE_BIND and CLAUDE_PROXY_PORT"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		t.note("CLAUDE_PROXY_PORT is no port, and left out")
		return
	}
	if ip := net.ParseIP(host); t.Key == "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		t.note("CLAUDE_BIND is not taken over: beyond loopback OCP needs keys; make one, then set listen")
		host = "127.0.0.1"
	}
	t.set(from, "listen", net.JoinHostPort(host, port))
}

func (t *Translated) text(env map[string]string, name, key string) {
	if env[name] != "" {
		t.set(name, key, env[name])
	}
}

func (t *Translated) number(env map[string]string, name, key string) {
	if env[name] == "" {
		return
	}
	n, err := strconv.Atoi(env[name])
	if err != nil || n < 0 || n == 0 && key == "concurrency" {
		t.note("%s is not a number that %s can have, and left out", name, key)
		return
	}
	t.set(name, key, n)
}

// duration takes over milliseconds. Zero, which was for none, is left out.
func (t *Translated) duration(env map[string]string, name, key string) {
	if env[name] == "" {
		return
	}
	n, err := strconv.ParseInt(env[name], 10, 32)
	switch {
	case err != nil || n < 0:
		t.note("%s is not a number of milliseconds, and left out", name)
	case n == 0:
		t.note("%s is 0, which %s cannot be, and left out", name, key)
	default:
		t.set(name, key, (time.Duration(n) * time.Millisecond).String())
	}
}

// key keeps the shared key as a hash: clients go on with it, and it is nowhere in clear.
func (t *Translated) key(env map[string]string) {
	if key := env["PROXY_API_KEY"]; key != "" {
		t.Key = fmt.Sprintf("sha256:%x of the older program", sha256.Sum256([]byte(key)))
	}
}

// unitEnv reads the Environment= lines of a unit that the older program's installer wrote.
func unitEnv(unit string) map[string]string {
	env := map[string]string{}
	for line := range strings.Lines(unit) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "Environment=")
		if !ok {
			continue
		}
		name, value, ok := strings.Cut(strings.Trim(line, `"`), "=")
		if ok && !strings.Contains(name, " ") {
			env[name] = strings.Trim(value, `"`)
		}
	}
	return env
}
