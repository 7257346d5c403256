package setup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ocp/internal/claude"
	"ocp/internal/config"
	"ocp/internal/probe"
)

// rig is a machine that is a folder, and what has been done on it.
type rig struct {
	t       *testing.T
	machine Machine
	options Options
	look    probe.Setup
	ran     []string
	fails   string // the command that does
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, look: probe.Setup{
		CLI: "/c/claude", FoundBy: "the first on PATH", Version: claude.TestedVersions[0],
		Login: claude.Login{Subscription: true, ConfigDir: "/h/.claude"}, Memory: 1 << 40, Now: time.Unix(1000, 0),
	}}
	home := t.TempDir()
	r.machine = Machine{
		OS: "linux", UID: 7, Home: home, Env: map[string]string{}, Self: "/opt/ocp",
		Run: func(_ context.Context, name string, args ...string) (string, error) {
			line := strings.Join(append([]string{name}, args...), " ")
			r.ran = append(r.ran, line)
			if r.fails != "" && strings.HasPrefix(line, r.fails) {
				return "", errors.New("no medium found")
			}
			return "", nil
		},
	}
	r.options = Options{
		Yes: true, Config: filepath.Join(home, ".config", "ocp", "config.toml"), Default: true, Given: map[string]any{},
		Keys: []Key{{"listen", "Where.", `"127.0.0.1:3456"`}, {"claude", "Which.", `""`}, {"concurrency", strings.Repeat("how many ", 20), "2"}},
		Parse: func(content []byte) (config.Serve, error) {
			s := config.Serve{
				Listen: "127.0.0.1:3456", Concurrency: 2, TurnTimeout: time.Minute, StartTimeout: time.Minute, KeepAlive: time.Minute,
			}
			lines, err := config.ParseFile(content)
			for _, l := range lines {
				switch l.Key {
				case "listen":
					s.Listen, _ = l.Value.(string)
				case "claude":
					s.Claude, _ = l.Value.(string)
				case "api-key-file":
					s.APIKeyFile, _ = l.Value.(string)
				case "concurrency":
					n, _ := l.Value.(int64)
					s.Concurrency = int(n)
				}
			}
			return s, err
		},
		Look:    func(_ context.Context, s config.Serve) *probe.Setup { l := r.look; l.Settings = s; return &l },
		Answers: func(context.Context, string) bool { return true },
	}
	now := time.Date(2026, 1, 2, 3, 4, 4, 0, time.UTC)
	r.options.Now = func() time.Time { now = now.Add(time.Second); return now }
	return r
}

// run runs setup and returns what it has said.
func (r *rig) run(answers string) (string, error) {
	r.t.Helper()
	r.ran = nil
	var out strings.Builder
	err := Run(r.t.Context(), r.machine, r.options, strings.NewReader(answers), &out)
	return out.String(), err
}

func (r *rig) must(answers string) string {
	r.t.Helper()
	out, err := r.run(answers)
	if err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
	return out
}

func (r *rig) file(name string) string {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.machine.Home, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}

func (r *rig) files() string {
	r.t.Helper()
	var all []string
	err := filepath.WalkDir(r.machine.Home, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			all = append(all, strings.TrimPrefix(path, r.machine.Home+"/"))
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func wants(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

const unitFile = ".config/systemd/user/ocp.service"

func TestFreshAndAgain(t *testing.T) {
	r := newRig(t)
	out := r.must("")
	wants(t, out, "OK    cli-found", "OK    login", "it answers on 127.0.0.1:3456", "http://127.0.0.1:3456/v1/chat/completions", "any, such as unused")
	wants(t, r.file(".config/ocp/config.toml"), "#listen = \"127.0.0.1:3456\"\n\n", "#claude = \"\"\nclaude = '/c/claude'\n", "#concurrency = 2\n")
	for line := range strings.Lines(r.file(".config/ocp/config.toml")) {
		if len(line) > commentWidth+1 {
			t.Errorf("a long line: %q", line)
		}
	}
	wants(t, r.file(unitFile), `ExecStart="/opt/ocp" serve`+"\n", "PATH=/c:"+r.machine.Home+"/.local/bin:/usr/local/bin")
	if got := strings.Join(r.ran, "\n"); got != "systemctl --user show-environment\nsystemctl --user daemon-reload\nsystemctl --user enable ocp.service\nsystemctl --user restart ocp.service" {
		t.Errorf("ran:\n%s", got)
	}
	config, unit := r.file(".config/ocp/config.toml"), r.file(unitFile)
	out = r.must("")
	wants(t, out, "is as it should be")
	if r.file(".config/ocp/config.toml") != config || r.file(unitFile) != unit || r.files() != ".config/ocp/config.toml "+unitFile {
		t.Errorf("a second run has changed something: %s", r.files())
	}
}

func TestDryRun(t *testing.T) {
	r := newRig(t)
	r.options.DryRun = true
	wants(t, r.must(""), "would write "+r.options.Config, "would write "+filepath.Join(r.machine.Home, unitFile), "would run  systemctl --user restart ocp.service")
	for _, command := range r.ran {
		if command != "systemctl --user show-environment" {
			t.Errorf("ran %s", command)
		}
	}
	if r.files() != "" {
		t.Errorf("wrote %s", r.files())
	}
}

// TestKeeps checks that what a person has set stays, and that a change is shown and asked
// about.
func TestKeeps(t *testing.T) {
	r := newRig(t)
	mine := "# mine\nconcurrency = 5 # five\nclaude = \"/my/claude\"\n"
	if err := os.MkdirAll(filepath.Dir(r.options.Config), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.options.Config, []byte(mine), 0o640); err != nil {
		t.Fatal(err)
	}
	r.machine.Env = map[string]string{"CLAUDE_MAX_CONCURRENT": "8", "CLAUDE_BIN": "/old/claude"}
	r.options.NoService = true
	r.must("")
	if got := r.file(".config/ocp/config.toml"); got != mine {
		t.Errorf("--yes has changed it:\n%s", got)
	}

	r.options.Yes = false
	out, err := r.run("\n3\nno\n")
	if err == nil || !strings.Contains(err.Error(), "nothing was changed") || r.file(".config/ocp/config.toml") != mine {
		t.Errorf("%v\n%s", err, r.file(".config/ocp/config.toml"))
	}
	wants(t, out, "Turns at once (about 250 MB each) [5]", "-concurrency = 5 # five\n+concurrency = 3 # five")

	r.must("127.0.0.1:99\n3\nx\ny\n")
	if got := r.file(".config/ocp/config.toml"); got != strings.Replace(mine, "= 5", "= 3", 1)+"listen = '127.0.0.1:99'\n" {
		t.Errorf("got:\n%s", got)
	}
	if got := r.file(".config/ocp/config.toml.bak-20260102-030405"); got != mine {
		t.Errorf("the backup is:\n%s", got)
	}
	if out, err := r.run("nonsense\n\ny\n"); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := r.run(""); err == nil || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestUnitThatWasChanged(t *testing.T) {
	r := newRig(t)
	r.must("")
	path := filepath.Join(r.machine.Home, unitFile)
	mine := strings.Replace(r.file(unitFile), "TasksMax=4096", "TasksMax=9", 1)
	if err := os.WriteFile(path, []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	wants(t, r.must(""), "is not as setup has written it", "-TasksMax=9\n+TasksMax=4096", "left as it is")
	if r.file(unitFile) != mine {
		t.Error("it was written over")
	}
	r.options.Yes = false
	r.must("\n\ny\ny\n")
	wants(t, r.file(unitFile), "TasksMax=4096")

	// One that setup wrote itself is brought up to date without a question.
	r.options.Yes, r.machine.Self = true, "/new/ocp"
	r.must("")
	wants(t, r.file(unitFile), `ExecStart="/new/ocp" serve`)
}

func TestNoServiceManager(t *testing.T) {
	r := newRig(t)
	r.fails = "systemctl --user show-environment"
	wants(t, r.must(""), "cannot be asked (no medium found)", "Start it with:  ocp serve\n")
	if r.files() != ".config/ocp/config.toml" {
		t.Errorf("wrote %s", r.files())
	}
	r.fails = "systemctl --user enable"
	if out, err := r.run(""); err == nil || !strings.Contains(err.Error(), "systemctl --user enable ocp.service: no medium found") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestLaunchd(t *testing.T) {
	r := newRig(t)
	r.machine.OS, r.options.Default, r.fails = "darwin", false, "launchctl bootout"
	r.must("")
	agent := r.file("Library/LaunchAgents/local.ocp.plist")
	wants(t, agent, "<string>/opt/ocp</string>", "<string>--config</string>", r.options.Config, "written by ocp setup: ")
	if !untouched([]byte(agent)) || untouched([]byte(strings.Replace(agent, "/opt/ocp", "/x", 1))) {
		t.Error("it is not known again")
	}
	wants(t, strings.Join(r.ran, "\n"), "launchctl bootout gui/7/local.ocp\nlaunchctl bootstrap gui/7 "+r.machine.Home)
}

func TestNotReady(t *testing.T) {
	r := newRig(t)
	r.look.CLIErr = claude.ErrNotFound
	if out, err := r.run(""); err == nil || !strings.Contains(err.Error(), claude.InstallCommand) || r.files() != "" || len(r.ran) != 0 {
		t.Errorf("no CLI: %v, %s, %s", err, r.files(), out)
	}
	r = newRig(t)
	r.look.Login.Subscription = false
	if out, err := r.run(""); err == nil || !strings.Contains(err.Error(), "/login") || !strings.Contains(r.files(), unitFile) {
		t.Errorf("no login: %v, %s, %s", err, r.files(), out)
	}
	r = newRig(t)
	r.look.Port.Taken = true
	wants(t, r.must(""), "another program serves", "It is not started")
	r = newRig(t)
	r.options.Answers = func(context.Context, string) bool { return false }
	wants(t, r.must(""), "does not answer", "journalctl")
	r = newRig(t)
	r.machine.Env["CLAUDE_CODE_OAUTH_TOKEN"] = "canary"
	if out := r.must(""); !strings.Contains(out, "printenv CLAUDE_CODE_OAUTH_TOKEN") || strings.Contains(out, "canary") {
		t.Errorf("a token of the environment: %s", out)
	}
}

func TestMoveIn(t *testing.T) {
	r := newRig(t)
	unit := filepath.Join(r.machine.Home, ".config/systemd/user/ocp-proxy.service")
	if err := os.MkdirAll(filepath.Dir(unit), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(unit, []byte("[Service]\nEnvironment=CLAUDE_PROXY_PORT=4000\nEnvironment=\"CLAUDE_BIND=0.0.0.0\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.machine.Env = map[string]string{"PROXY_API_KEY": "canary", "CLAUDE_PROXY_PORT": "4001"}
	out := r.must("")
	wants(t, out, "systemctl --user disable --now ocp-proxy", "listen = 0.0.0.0:4001, by CLAUDE_BIND and CLAUDE_PROXY_PORT", "one of your keys", "http://127.0.0.1:4001/v1")
	wants(t, r.file(".config/ocp/config.toml"), "listen = '0.0.0.0:4001'", "api-key-file = ")
	wants(t, r.file(".config/ocp/keys"), "sha256:")
	r.must("")
	if strings.Count(r.file(".config/ocp/keys"), "\n") != 1 {
		t.Errorf("the key is there twice:\n%s", r.file(".config/ocp/keys"))
	}
	for _, name := range strings.Fields(r.files()) {
		if strings.Contains(r.file(name)+out, "canary") {
			t.Errorf("%s or the terminal shows the key", name)
		}
	}
}
