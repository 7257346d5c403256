package setup

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOlder(t *testing.T) {
	for name, test := range map[string]struct {
		env   map[string]string
		want  map[string]any
		notes []string
	}{
		"nothing": {env: map[string]string{"PATH": "/bin", "OCP_LISTEN": "x"}, want: map[string]any{}},
		"plain": {
			env:  map[string]string{"CLAUDE_PROXY_PORT": "4000", "CLAUDE_BIN": "/c", "CLAUDE_TIMEOUT": "600000", "CLAUDE_HEARTBEAT_INTERVAL": "30000", "CLAUDE_MAX_CONCURRENT": "8"},
			want: map[string]any{"listen": "127.0.0.1:4000", "claude": "/c", "turn-timeout": "10m0s", "keep-alive": "30s", "concurrency": 8},
		},
		"interactive": {
			env: map[string]string{
				"CLAUDE_TUI_MODE": "true", "CLAUDE_TIMEOUT": "600000", "CLAUDE_TUI_WALLCLOCK_MS": "180000", "CLAUDE_MAX_CONCURRENT": "8",
				"OCP_TUI_MAX_CONCURRENT": "3", "OCP_TUI_POOL_SIZE": "0", "OCP_TUI_EFFORT": "high",
			},
			want:  map[string]any{"turn-timeout": "3m0s", "concurrency": 3, "pool": 0, "effort": "high"},
			notes: []string{"CLAUDE_TUI_MODE has no counterpart: it is always so"},
		},
		"its default of turns at once is none of ours": {
			env: map[string]string{"CLAUDE_TUI_MODE": "true", "CLAUDE_MAX_CONCURRENT": "8"}, want: map[string]any{},
			notes: []string{"CLAUDE_TUI_MODE has no counterpart"},
		},
		"inherited effort": {env: map[string]string{"OCP_TUI_EFFORT": "inherit"}, want: map[string]any{"effort": ""}},
		"beyond loopback without a key": {
			env: map[string]string{"CLAUDE_BIND": "0.0.0.0"}, want: map[string]any{"listen": "127.0.0.1:3456"},
			notes: []string{"CLAUDE_BIND is not taken over: beyond loopback OCP needs keys"},
		},
		"beyond loopback with a key": {
			env: map[string]string{"CLAUDE_BIND": "::", "PROXY_API_KEY": "k"}, want: map[string]any{"listen": "[::]:3456"},
		},
		"nonsense": {
			env:   map[string]string{"CLAUDE_PROXY_PORT": "x", "CLAUDE_TIMEOUT": "-1", "CLAUDE_HEARTBEAT_INTERVAL": "0", "CLAUDE_MAX_CONCURRENT": "0"},
			want:  map[string]any{},
			notes: []string{"CLAUDE_PROXY_PORT is no port", "CLAUDE_TIMEOUT is not", "CLAUDE_HEARTBEAT_INTERVAL is 0", "CLAUDE_MAX_CONCURRENT is not"},
		},
		"no counterpart": {
			env: map[string]string{"OCP_ADMIN_KEY": "secret", "PROXY_ANONYMOUS_KEY": "secret", "OCP_TUI_NEW": "secret"}, want: map[string]any{},
			notes: []string{"OCP_ADMIN_KEY has no counterpart", "PROXY_ANONYMOUS_KEY has no counterpart", "OCP_TUI_NEW is not known"},
		},
	} {
		got := Older(test.env)
		if diff := cmp.Diff(test.want, got.Values); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		notes := strings.Join(got.Notes, "\n")
		for _, want := range test.notes {
			if !strings.Contains(notes, want) {
				t.Errorf("%s: no %q in\n%s", name, want, notes)
			}
		}
		if len(got.Notes) != len(test.notes) || strings.Contains(notes, "secret") {
			t.Errorf("%s: notes\n%s", name, notes)
		}
		for key := range got.Values {
			if got.From[key] == "" {
				t.Errorf("%s: %s is of nothing", name, key)
			}
		}
	}
	if got := Older(map[string]string{"PROXY_API_KEY": "three"}); strings.Contains(got.Key, "three") || !strings.HasPrefix(got.Key, "sha256:") {
		t.Errorf("the key is kept as %q", got.Key)
	}
}

// TestDocs wants docs/install.md to name every variable that is known. Those of TUI mode
// that have no counterpart it names by their prefix.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Concat(slices.Collect(maps.Keys(none)), translated)
	for _, name := range names {
		if (none[name] == "" || !strings.HasPrefix(name, "OCP_TUI_")) && !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("docs/install.md does not name %s", name)
		}
	}
}
