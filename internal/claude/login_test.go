package claude

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

const secretKey = "sk-ant-api03-canary-of-a-key-that-nobody-has"

// put writes a file below a folder, for others to read or not.
func put(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func TestFindLogin(t *testing.T) {
	const stored = ".claude/" + credentialsFile
	refused := `{"customApiKeyResponses":{"rejected":["x","` + keyTail(secretKey) + `"]}}`
	for name, test := range map[string]struct {
		env   []string
		files map[string]string // by path below HOME
		mode  os.FileMode
		want  Login // of it, what has no path
		fault string
	}{
		"nothing":                 {},
		"a key":                   {env: []string{"ANTHROPIC_API_KEY=" + secretKey}, want: Login{Variable: "ANTHROPIC_API_KEY"}},
		"a token":                 {env: []string{"CLAUDE_CODE_OAUTH_TOKEN=t"}, want: Login{Variable: "CLAUDE_CODE_OAUTH_TOKEN"}},
		"an empty token":          {env: []string{"CLAUDE_CODE_OAUTH_TOKEN="}},
		"a refused key":           {env: []string{"ANTHROPIC_API_KEY=" + secretKey}, files: map[string]string{".claude.json": refused}, want: Login{Variable: "ANTHROPIC_API_KEY", KeyRefused: true}},
		"a refused key, inside":   {env: []string{"ANTHROPIC_API_KEY=" + secretKey}, files: map[string]string{".claude.json": "{}", ".claude/.claude.json": refused}, want: Login{Variable: "ANTHROPIC_API_KEY", KeyRefused: true}},
		"another key was refused": {env: []string{"ANTHROPIC_API_KEY=other"}, files: map[string]string{".claude.json": refused}, want: Login{Variable: "ANTHROPIC_API_KEY"}},
		"a subscription": {
			files: map[string]string{stored: `{"claudeAiOauth":{"accessToken":"` + secretKey + `","refreshToken":"r","expiresAt":1000}}`},
			want:  Login{Subscription: true, Renewable: true, Expires: time.UnixMilli(1000)},
		},
		"one that cannot be renewed": {
			files: map[string]string{stored: `{"claudeAiOauth":{"accessToken":"` + secretKey + `"}}`}, want: Login{Subscription: true},
		},
		"one that is no more":   {files: map[string]string{stored: `{"claudeAiOauth":{"accessToken":""}}`}},
		"credentials of others": {files: map[string]string{stored: `{"mcpOAuth":{}}`}},
		"a key of the Console":  {files: map[string]string{".claude.json": `{"primaryApiKey":"` + secretKey + `"}`}, want: Login{ConsoleKey: true}},
		"exposed": {
			files: map[string]string{stored: `{}`, ".claude.json": `{"primaryApiKey":"k"}`}, mode: 0o644,
			want: Login{ConsoleKey: true, Exposed: []string{".claude.json", stored}},
		},
		"exposed without secrets": {files: map[string]string{".claude.json": `{}`}, mode: 0o644},
		"no JSON":                 {files: map[string]string{".claude.json": secretKey}, fault: "not the JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			for path, content := range test.files {
				mode := test.mode
				if mode == 0 {
					mode = 0o600
				}
				put(t, filepath.Join(home, path), content, mode)
			}
			got := FindLogin(append(test.env, "HOME="+home))
			if (test.fault == "") != (len(got.Faults) == 0) || test.fault != "" && !strings.Contains(got.Faults[0], test.fault) {
				t.Errorf("faults are %q, want %q", got.Faults, test.fault)
			}
			if shown := toJSON(t, got); strings.Contains(shown, secretKey) {
				t.Errorf("a secret is in it: %s", shown)
			}
			for i, path := range got.Exposed {
				got.Exposed[i], _ = filepath.Rel(home, path)
			}
			if want := (test.want.Variable != "" || test.want.Subscription || test.want.ConsoleKey || runtime.GOOS == "darwin"); got.Found() != want {
				t.Errorf("found: %v", got.Found())
			}
			got.ConfigDir, got.ConfigFile, got.Faults, got.Keychain = "", "", nil, false
			if g, w := toJSON(t, got), toJSON(t, test.want); g != w {
				t.Errorf("got  %s\nwant %s", g, w)
			}
		})
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

// The copy holds what decides how a session starts, no secret, and nothing of the
// operator's is changed.
func TestCopyConfig(t *testing.T) {
	home, dir := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	put(t, filepath.Join(home, ".claude.json"), `{"hasCompletedOnboarding":true,"primaryApiKey":"`+secretKey+`","mcpServers":{"x":{"env":{"K":"`+secretKey+`"}}},"someToken":"`+secretKey+`"}`, 0o600)
	put(t, filepath.Join(home, ".claude", credentialsFile), `{"claudeAiOauth":{"accessToken":"`+secretKey+`"}}`, 0o600)
	put(t, filepath.Join(home, ".claude", remotePolicy), `{"disableAllHooks":true}`, 0o600)
	if err := CopyConfig([]string{"HOME=" + home}, dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, []string{".claude.json", "home", remotePolicy}) {
		t.Errorf("the copy holds %q", names)
	}
	if got, err := os.ReadFile(filepath.Join(dir, ".claude.json")); err != nil || string(got) != `{"hasCompletedOnboarding":true}` {
		t.Errorf("got %s, %v", got, err)
	}
	if err := CopyConfig([]string{"HOME=" + t.TempDir()}, t.TempDir()); err != nil {
		t.Errorf("nothing to copy: %v", err)
	}
}

func TestReadPolicy(t *testing.T) {
	for content, want := range map[string]Policy{
		`{}`:                             {},
		`no JSON`:                        {},
		`{"disableAllHooks":true}`:       {NoHooks: "disableAllHooks"},
		`{"disableAllHooks":false}`:      {},
		`{"allowManagedHooksOnly":true}`: {NoHooks: "allowManagedHooksOnly"},
		`{"allowedHttpHookUrls":[]}`:     {NoHTTP: true},
		`{"apiKeyHelper":"/bin/key"}`:    {Helper: true},
		`{"env":{"https_proxy":"http://x","NO_PROXY":"","OTHER":"1"}}`: {Proxies: []string{"https_proxy"}},
	} {
		file := filepath.Join(t.TempDir(), "managed-settings.json")
		put(t, file, content, 0o600)
		want.Files = []string{file}
		if got := readPolicy([]string{filepath.Join(t.TempDir(), "none"), file}); toJSON(t, got) != toJSON(t, want) {
			t.Errorf("%s: got %s", content, toJSON(t, got))
		}
	}
}

func TestProxies(t *testing.T) {
	got := Proxies([]string{"https_proxy=x", "HTTP_PROXY=", "NO_PROXY=y", "ALL_PROXY=z", "PATH=/bin"})
	if !slices.Equal(got, []string{"ALL_PROXY", "https_proxy"}) {
		t.Errorf("got %q", got)
	}
}

func TestHasHook(t *testing.T) {
	for version, want := range map[string]bool{
		"2.1.150": false, "2.1.151": false, "2.1.150-beta.1": false, "2.0.999": false, "1.9.400": false, "2.1.20": false,
		FirstWithHook: true, "2.1.207": true, "2.1.1000": true, "2.2.0": true, "10.0.0": true,
		"unknown": true, "": true,
	} {
		if got := HasHook(version); got != want {
			t.Errorf("%q: got %v", version, got)
		}
	}
	for _, version := range TestedVersions {
		if !HasHook(version) || KnownBad(version) != "" {
			t.Errorf("%s is tested and said not to work", version)
		}
	}
}
