package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// state is what /readyz and /status have in common, and what these tests look at of the
// rest.
type state struct {
	code     int
	raw      string
	Status   string
	Reasons  []string
	Warnings []string
	CLI      struct {
		Version string
		Tested  bool
	}
	Turns     map[string]int
	HookCalls struct{ Accepted, Refused int } `json:"hook_calls"`
}

// get asks for /readyz or /status.
func (p *proxy) get(t *testing.T, path string) state {
	t.Helper()
	resp, err := http.Get(p.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := state{code: resp.StatusCode, raw: string(data)}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatalf("%s: %v: %s", path, err, data)
	}
	return got
}

// The check at the start finds that a session starts and that both kinds of hooks arrive,
// asks the model nothing, and leaves nothing.
func TestStartCheck(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		for _, transport := range []string{"http", "command"} {
			t.Run(transport, func(t *testing.T) {
				p := startProxy(t, c, proxyOptions{check: true, args: []string{"--hook-transport", transport}})
				p.log.wait(t, p.done, `level=INFO msg="the start-up check passed`, c.version)
				if got := p.get(t, "/readyz"); got.code != 200 || got.Status != "ready" {
					t.Errorf("readyz: %d %s", got.code, got.raw)
				}
				got := p.get(t, "/status")
				if got.CLI.Version != c.version || !got.CLI.Tested || len(got.Warnings) > 0 || len(got.Turns) > 0 || got.HookCalls.Accepted < 2 {
					t.Errorf("status: %s", got.raw)
				}
				if strings.Contains(got.raw, p.state) || strings.Contains(got.raw, apiKey) {
					t.Errorf("a path or a key in the status: %s", got.raw)
				}
				for _, r := range p.model.Requests() {
					if r.Method == http.MethodPost {
						t.Errorf("the check asked the model: %s %s", r.Method, r.Path)
					}
				}
				if left := p.sessionDirs(); len(left) > 0 {
					t.Errorf("session folders left: %v", left)
				}
			})
		}
	})
}

// A shutdown does not wait for the check, and a check that is cut off says nothing.
func TestShutdownDuringStartCheck(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{check: true})
		eventually(t, patience, "the check has a session", func() bool { return len(p.processes()) > 0 })
		if got := p.get(t, "/readyz"); got.code != 503 || got.Status != "checking" {
			t.Errorf("readyz: %d %s", got.code, got.raw)
		}
		p.finish()
		if strings.Contains(p.log.text(), "start-up check") {
			t.Errorf("a check was reported:\n%s", p.log.text())
		}
	})
}

// The check sees what a request would run into, and says it without one.
func TestStartCheckFindsFaults(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		// A login that was never made: the operator's configuration is empty.
		p := startProxy(t, c, proxyOptions{check: true, noKey: true})
		line := p.log.wait(t, p.done, `level=ERROR msg="the start-up check failed`)
		if !strings.Contains(line, "reason=") {
			t.Errorf("no reason: %s", line)
		}
		got := p.get(t, "/readyz")
		if got.code != 503 || got.Status != "not_ready" || len(got.Reasons) == 0 {
			t.Errorf("readyz: %d %s", got.code, got.raw)
		}
		if got := p.get(t, "/status"); !strings.Contains(fmt.Sprint(got.Warnings), "no login was found") {
			t.Errorf("status: %s", got.raw)
		}
		t.Logf("said: %s", got.Reasons)
	})
}

// managedSettings is where the CLI takes an administrator's settings from. The released
// CLIs have no way to make it another.
const managedSettings = "/etc/claude-code/managed-settings.json"

// setPolicy writes managed settings, for as short as can be: every CLI on this machine
// obeys them. The caller must call remove.
func setPolicy(t *testing.T, policy string) (remove func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may write managed settings; CI does")
	}
	if _, err := os.Stat(managedSettings); err == nil {
		t.Fatalf("%s is there already: this test would have to change it", managedSettings)
	}
	if err := os.MkdirAll(filepath.Dir(managedSettings), 0o755); err != nil {
		t.Fatal(err)
	}
	remove = func() {
		_ = os.Remove(managedSettings)
		_ = os.Remove(filepath.Dir(managedSettings))
	}
	t.Cleanup(remove)
	if err := os.WriteFile(managedSettings, []byte(policy), 0o644); err != nil {
		t.Fatal(err)
	}
	return remove
}

// Where a policy forbids hooks, answers come from the transcript alone, whole, and ocp
// says so. Nothing hangs.
func TestHooksForbiddenByPolicy(t *testing.T) {
	for _, policy := range []struct{ settings, warning, reason string }{
		{`{"disableAllHooks":true}`, "transcript alone", "hooks do not reach ocp"},
		{`{"allowManagedHooksOnly":true}`, "transcript alone", "hooks do not reach ocp"},
		{`{"allowedHttpHookUrls":[]}`, "--hook-transport command", ""},
	} {
		t.Run(policy.settings, func(t *testing.T) {
			onOneCLIAtATime(t, func(t *testing.T, c cli) {
				p := startProxy(t, c, proxyOptions{script: scenarioByPrompt()})
				remove := setPolicy(t, policy.settings)
				begun := time.Now()
				x, err := p.ask(withPatience(t), true, "hello")
				remove()
				if err == nil {
					err = x.exact("no scenario was named")
				}
				if err != nil {
					t.Error(err)
				}
				t.Logf("answered after %v", time.Since(begun))
				p.log.wait(t, p.done, "level=WARN", "not streamed")
				if got := p.get(t, "/status"); !strings.Contains(fmt.Sprint(got.Warnings), policy.warning) {
					t.Errorf("status: %s", got.raw)
				}
				ready := p.get(t, "/readyz")
				if ready.code != 200 && policy.reason == "" || !strings.Contains(fmt.Sprint(ready.Reasons), policy.reason) {
					t.Errorf("readyz: %d %s", ready.code, ready.raw)
				}
				// Without the policy the next turn takes all that back.
				if _, err := p.ask(withPatience(t), true, "hello"); err != nil {
					t.Error(err)
				}
				if got := p.get(t, "/readyz"); got.code != 200 {
					t.Errorf("readyz afterwards: %d %s", got.code, got.raw)
				}
			})
		})
	}
}

// The check at the start finds a policy that forbids hooks.
func TestStartCheckFindsForbiddenHooks(t *testing.T) {
	setPolicy(t, `{"disableAllHooks":true}`)
	onEachCLIAlone(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{check: true})
		p.log.wait(t, p.done, `level=ERROR msg="the start-up check failed`, "hooks do not reach ocp")
		if got := p.get(t, "/readyz"); got.code != 503 || !strings.Contains(got.raw, "managed settings") {
			t.Errorf("readyz: %d %s", got.code, got.raw)
		}
	})
}

// A state directory that cannot be used is said to be one, at once.
func TestStateDirThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// Not even root makes folders there, so that what is wrong is the same for all.
	for name, dir := range map[string]string{"a file": file, "below a file": filepath.Join(file, "state"), "not writable": "/proc/self/state"} {
		t.Run(name, func(t *testing.T) {
			got := runOcp(t, nil, "serve", "--listen=127.0.0.1:0", "--claude="+clis[0].path, "--state-dir="+dir)
			if got.code != 1 || !strings.HasPrefix(got.stderr, "ocp: --state-dir: ") || !strings.Contains(got.stderr, file) && !strings.Contains(got.stderr, "/proc") {
				t.Errorf("exit code %d: %s", got.code, got.stderr)
			}
		})
	}
}
