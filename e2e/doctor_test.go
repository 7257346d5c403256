package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ocp/internal/messagesapi"
)

// diagnosis is what `ocp doctor --json` prints.
type diagnosis struct {
	ran
	Checks []finding
	Fixed  []string
	OK     bool
}

type finding struct{ ID, Claim, Status, Evidence, Remedy string }

// diagnose runs the doctor. Whatever it finds, it prints no secret and leaves nothing in
// its temporary folder.
func diagnose(t *testing.T, env []string, args ...string) diagnosis {
	t.Helper()
	temp := t.TempDir()
	d := diagnosis{ran: runOcp(t, append([]string{"TMPDIR=" + temp}, env...), append([]string{"doctor", "--json"}, args...)...)}
	if err := json.Unmarshal([]byte(d.stdout), &d); err != nil {
		t.Fatalf("exit code %d, %v: %s%s", d.code, err, d.stdout, d.stderr)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
	for _, secret := range []string{apiKey, loginToken, refreshToken} {
		if strings.Contains(d.stdout+d.stderr, secret) {
			t.Error("a secret was printed")
		}
	}
	if d.OK != (d.code == 0) || d.OK == (d.stderr != "") {
		t.Errorf("ok is %v, the exit code %d: %s", d.OK, d.code, d.stderr)
	}
	return d
}

func (d diagnosis) find(t *testing.T, id string) finding {
	t.Helper()
	for _, c := range d.Checks {
		if c.ID == id {
			return c
		}
	}
	t.Errorf("there is no check %q", id)
	return finding{}
}

// failed are the names of the checks that have failed.
func (d diagnosis) failed() string {
	var ids []string
	for _, c := range d.Checks {
		if c.Status == "fail" {
			ids = append(ids, c.ID)
		}
	}
	return strings.Join(ids, " ")
}

// doctorModel is a scripted model that the doctor must not ask.
func doctorModel(t *testing.T) *messagesapi.Server {
	model, err := messagesapi.Start(messagesapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		model.Close()
		for _, r := range model.Requests() {
			if r.Method == http.MethodPost {
				t.Errorf("the model was asked: %s %s", r.Method, r.Path)
			}
		}
	})
	return model
}

// A setup in which nothing is wrong passes, with a key as with a login, and nothing of the
// operator's is changed.
func TestDoctorFindsNothing(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		model := doctorModel(t)
		for name, test := range map[string]struct {
			env []string
			arg string
		}{
			"a key":             {env: []string{"ANTHROPIC_API_KEY=" + apiKey}},
			"a key, by command": {env: []string{"ANTHROPIC_API_KEY=" + apiKey}, arg: "command"},
			"a login":           {},
			"a proxy":           {env: []string{"ANTHROPIC_API_KEY=" + apiKey, "HTTP_PROXY=http://127.0.0.1:1", "https_proxy=http://127.0.0.1:1"}},
		} {
			t.Run(name, func(t *testing.T) {
				o := newOperator(t)
				o.logIn(t)
				before := snapshot(t, filepath.Dir(o.home))
				env := append([]string{"HOME=" + o.home, "ANTHROPIC_BASE_URL=" + model.URL()}, test.env...)
				args := []string{"--claude", c.path, "--state-dir", filepath.Join(o.home, "more", "state"), "--listen", "127.0.0.1:0"}
				if test.arg != "" {
					args = append(args, "--hook-transport", test.arg)
				}
				got := diagnose(t, env, args...)
				if got.code != 0 || got.failed() != "" {
					t.Errorf("exit code %d: %s", got.code, got.stdout)
				}
				for _, id := range []string{"cli-found", "cli-version", "config-dir", "login", "state-dir", "instance", "port", "proxy", "session", "hooks"} {
					if f := got.find(t, id); f.Status != "ok" {
						t.Errorf("got %+v", f)
					}
				}
				if f := got.find(t, "cli-version"); !strings.Contains(f.Evidence, c.version) {
					t.Errorf("got %+v", f)
				}
				if f := got.find(t, "proxy"); strings.Contains(f.Evidence, "HTTP_PROXY, https_proxy") != (name == "a proxy") {
					t.Errorf("got %+v", f)
				}
				if after := snapshot(t, filepath.Dir(o.home)); !maps.Equal(before, after) {
					t.Errorf("something of the operator's was changed: %v", changes(before, after))
				}
				o.nothingRan(t)
			})
		}
	})
}

// changes are the paths whose modes or contents differ.
func changes(before, after map[string]string) []string {
	var paths []string
	for path := range after {
		if before[path] != after[path] {
			paths = append(paths, path)
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			paths = append(paths, path+" (gone)")
		}
	}
	return paths
}

// script writes a program that does what is said and then is the CLI.
func script(t *testing.T, c cli, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claude")
	text := fmt.Sprintf("#!/bin/sh\n%s\nexec '%s' \"$@\"\n", lines, c.path)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

const key = "ANTHROPIC_API_KEY=" + apiKey

// The doctor tells apart what can be wrong: one check fails or warns, with the remedy for
// that, and no other fails.
func TestDoctorTellsApart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	onEachCLI(t, func(t *testing.T, c cli) {
		model := doctorModel(t)
		refused := filepath.Join(t.TempDir(), ".claude.json")
		tail := apiKey[len(apiKey)-20:]
		if err := os.WriteFile(refused, []byte(`{"customApiKeyResponses":{"rejected":["`+tail+`"]}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct {
			name, claude     string
			env, args        []string
			id, status       string
			evidence, remedy string
			session          string // status of the check of the session
		}{
			{
				name: "no CLI", claude: "/nowhere/claude", env: []string{key}, session: "skip",
				id: "cli-found", status: "fail", evidence: "/nowhere/claude", remedy: "npm install -g @anthropic-ai/claude-code",
			},
			{
				name: "too old", claude: script(t, c, `if [ "$1" = --version ]; then echo '2.1.150 (Claude Code)'; exit; fi`), env: []string{key}, session: "skip",
				id: "cli-version", status: "fail", evidence: "MessageDisplay", remedy: "@latest",
			},
			{
				name: "not logged in", claude: c.path, session: "skip",
				id: "login", status: "fail", evidence: "not logged in", remedy: "/login",
			},
			{
				name: "key rejected", claude: c.path, env: []string{key, "CLAUDE_CONFIG_DIR=" + filepath.Dir(refused)}, session: "ok",
				id: "login", status: "warn", evidence: "told not to use", remedy: "unset ANTHROPIC_API_KEY",
			},
			{
				name: "proxy capturing hooks", claude: script(t, c, "unset NO_PROXY no_proxy; export HTTP_PROXY=http://127.0.0.1:1"), env: []string{key}, session: "ok",
				id: "hooks", status: "fail", evidence: "a proxy captures them", remedy: "NO_PROXY",
			},
			{
				name: "port taken", claude: c.path, env: []string{key}, args: []string{"--listen", taken.Addr().String()}, session: "ok",
				id: "port", status: "fail", evidence: "another program serves on " + taken.Addr().String(), remedy: "--listen",
			},
			{
				name: "state directory not writable", claude: c.path, env: []string{key}, args: []string{"--state-dir", "/proc/self/state"}, session: "ok",
				id: "state-dir", status: "fail", evidence: "/proc/self", remedy: "--state-dir DIR",
			},
			{
				name: "no temporary folder", claude: c.path, env: []string{key, "TMPDIR=/nowhere"}, session: "fail",
				id: "session", status: "fail", evidence: "/nowhere", remedy: "--log-level debug",
			},
			{
				name: "no start", claude: script(t, c, `if [ "$1" != --version ]; then exit 3; fi`), env: []string{key}, session: "fail",
				id: "session", status: "fail", evidence: "exit code 3", remedy: "--log-level debug",
			},
		} {
			t.Run(row.name, func(t *testing.T) {
				args := []string{"--claude", row.claude, "--listen", "127.0.0.1:0"}
				got := diagnose(t, append([]string{"ANTHROPIC_BASE_URL=" + model.URL()}, row.env...), append(args, row.args...)...)
				f := got.find(t, row.id)
				if f.Status != row.status || !strings.Contains(f.Evidence, row.evidence) || !strings.Contains(f.Remedy, row.remedy) {
					t.Errorf("got %+v", f)
				}
				want := ""
				if row.status == "fail" {
					want = row.id
				}
				if got.failed() != want {
					t.Errorf("failed: %q, want %q", got.failed(), want)
				}
				if f := got.find(t, "session"); f.Status != row.session {
					t.Errorf("got %+v, want %s", f, row.session)
				}
			})
		}
	})
}

// A CLI that was never set up is found by the session, though there is a login.
func TestDoctorFindsDialog(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		o := newOperator(t)
		o.logIn(t)
		if err := os.Remove(filepath.Join(o.home, ".claude.json")); err != nil {
			t.Fatal(err)
		}
		got := diagnose(t, []string{"HOME=" + o.home}, "--claude", c.path, "--listen", "127.0.0.1:0")
		if f := got.find(t, "session"); got.failed() != "session" || !strings.Contains(f.Remedy, "run `claude` in a terminal") {
			t.Errorf("failed: %q, got %+v", got.failed(), f)
		}
	})
}

// A running ocp is found by its state directory and its port, and not disturbed.
func TestDoctorSecondInstance(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{script: scenarioByPrompt()})
		before := snapshot(t, p.state)
		listen := strings.TrimPrefix(p.url, "http://")
		base := []string{key, "ANTHROPIC_BASE_URL=" + p.model.URL()}
		got := diagnose(t, base, "--claude", c.path, "--listen", listen, "--state-dir", p.state, "--fix")
		if f := got.find(t, "instance"); got.failed() != "instance" || !strings.Contains(f.Evidence, fmt.Sprint("process ", p.cmd.Process.Pid)) || !strings.Contains(f.Remedy, "--state-dir") {
			t.Errorf("failed: %q, got %+v", got.failed(), f)
		}
		if f := got.find(t, "port"); f.Status != "skip" {
			t.Errorf("got %+v", f)
		}
		if f := got.find(t, "session"); f.Status != "ok" || len(got.Fixed) > 0 {
			t.Errorf("got %+v, fixed %q", f, got.Fixed)
		}
		got = diagnose(t, base, "--claude", c.path, "--listen", listen)
		if f := got.find(t, "port"); got.failed() != "port" || !strings.Contains(f.Evidence, "another ocp") {
			t.Errorf("failed: %q, got %+v", got.failed(), f)
		}
		if after := snapshot(t, p.state); !maps.Equal(before, after) {
			t.Errorf("its state directory was changed: %v", changes(before, after))
		}
		x, err := p.ask(withPatience(t), true, "hello")
		if err == nil {
			err = x.exact("no scenario was named")
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// Without --fix nothing is changed; with it what is safe is, and said.
func TestDoctorFix(t *testing.T) {
	dir := t.TempDir()
	state, keys := filepath.Join(dir, "state"), filepath.Join(dir, "keys")
	for path, content := range map[string]string{
		keys: "sha256:" + strings.Repeat("a", 64) + "\n", filepath.Join(state, "ocp.lock"): "", filepath.Join(state, "sessions", "one", "file"): "",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := snapshot(t, dir)
	args := []string{"--claude", "/nowhere/claude", "--listen", "127.0.0.1:0", "--state-dir", state, "--api-key-file", keys}
	got := diagnose(t, nil, args...)
	for _, id := range []string{"settings", "state-dir"} {
		if f := got.find(t, id); f.Status != "warn" || !strings.Contains(f.Remedy, "ocp doctor --fix") {
			t.Errorf("got %+v", f)
		}
	}
	if after := snapshot(t, dir); !maps.Equal(before, after) || len(got.Fixed) > 0 {
		t.Errorf("changed without --fix: %v, fixed %q", changes(before, after), got.Fixed)
	}
	got = diagnose(t, nil, append(args, "--fix")...)
	if len(got.Fixed) != 3 {
		t.Errorf("fixed %q", got.Fixed)
	}
	for _, id := range []string{"settings", "state-dir", "instance"} {
		if f := got.find(t, id); f.Status != "ok" {
			t.Errorf("got %+v", f)
		}
	}
	for path, want := range map[string]os.FileMode{state: 0o700, keys: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if _, err := os.Stat(filepath.Join(state, "sessions", "one")); !os.IsNotExist(err) {
		t.Errorf("the session that was left is there: %v", err)
	}
}

// People get a table with the remedy below what it is for.
func TestDoctorTable(t *testing.T) {
	got := runOcp(t, []string{key}, "doctor", "--claude", "/nowhere/claude", "--listen", "127.0.0.1:0")
	if got.code != 1 || !regexp.MustCompile(`^ocp: 1 of \d\d checks failed\n$`).MatchString(got.stderr) {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	for _, line := range []string{`ok    login +ANTHROPIC_API_KEY`, `FAIL  cli-found +.*\n {6,}→ install it with`, `skip  session +none was started`} {
		if !regexp.MustCompile(`(?m)^` + line).MatchString(got.stdout) {
			t.Errorf("no %q in\n%s", line, got.stdout)
		}
	}
}

// What managed settings do to hooks is told apart, and from what a proxy does.
func TestDoctorFindsPolicy(t *testing.T) {
	for _, policy := range []struct{ settings, evidence, remedy string }{
		{`{"disableAllHooks":true}`, "managed settings say disableAllHooks", "remove disableAllHooks"},
		{`{"allowManagedHooksOnly":true}`, "managed settings say allowManagedHooksOnly", "remove allowManagedHooksOnly"},
		{`{"allowedHttpHookUrls":[]}`, "allowedHttpHookUrls", "--hook-transport command"},
		{`{"env":{"HTTP_PROXY":"http://127.0.0.1:1","NO_PROXY":"","no_proxy":""}}`, "a proxy captures them, set by managed settings", "NO_PROXY"},
	} {
		t.Run(policy.settings, func(t *testing.T) {
			setPolicy(t, policy.settings)
			onEachCLIAlone(t, func(t *testing.T, c cli) {
				got := diagnose(t, []string{key}, "--claude", c.path, "--listen", "127.0.0.1:0")
				if f := got.find(t, "hooks"); got.failed() != "hooks" || !strings.Contains(f.Evidence, policy.evidence) || !strings.Contains(f.Evidence, managedSettings) || !strings.Contains(f.Remedy, policy.remedy) {
					t.Errorf("failed: %q, got %+v", got.failed(), f)
				}
			})
		})
	}
}
