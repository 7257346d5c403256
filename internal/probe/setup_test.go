package probe

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ocp/internal/claude"
	"ocp/internal/config"
	"ocp/internal/terminal/tmux"
	"ocp/internal/turn"
)

// good is a setup in which nothing is wrong.
func good() *Setup {
	return &Setup{
		Settings: config.Serve{Listen: "127.0.0.1:3456", Concurrency: 2, Pool: 1, Keep: 2, StateDir: "/s", HookTransport: "http", StartTimeout: time.Minute},
		CLI:      "/c/claude", FoundBy: "the first on PATH", Version: claude.TestedVersions[0],
		Login: claude.Login{Variable: "ANTHROPIC_API_KEY", ConfigDir: "/h/.claude", ConfigFile: "/h/.claude.json"},
		State: claude.StateLook{Exists: true, Existing: "/s"}, Free: 1 << 40, Memory: 1 << 40, CanEdit: true,
		Session: &Session{Boot: time.Second, Proved: true}, Now: time.Unix(1000, 0),
	}
}

func silent() *Session {
	return &Session{Silent: true, Err: &turn.Error{Kind: turn.SessionFailed, Message: "its hooks do not reach ocp"}}
}

// noVariable makes sessions use the operator's login.
func noVariable(s *Setup) {
	s.Login.Variable, s.Session.Copy = "", true
}

// TestChecks judges a good setup with one thing changed, and wants the named checks to
// find it, each with its words, and no other check to find anything.
func TestChecks(t *testing.T) {
	past, future := time.Unix(1, 0), time.Unix(1<<32, 0)
	type finding struct{ id, status, evidence, remedy string }
	noSession := func(cause string) []finding {
		return []finding{{"session", "skip", cause, ""}, {"hooks", "skip", "no session", ""}, {"boot", "skip", "no session", ""}}
	}
	for _, test := range []struct {
		name   string
		change func(*Setup)
		want   []finding
	}{
		{name: "good", change: func(*Setup) {}},
		{"settings", func(s *Setup) { s.SettingsErr = errors.New("--queue: a\n--pool: b") }, []finding{{"settings", "fail", "--queue: a; --pool: b", "serve --help"}}},
		{"keys for all to read", func(s *Setup) { s.KeysExposed, s.Settings.APIKeyFile = true, "/k 1" }, []finding{{"settings", "warn", "others can read", "chmod 600 '/k 1'"}}},
		{"settings file with keys for all to read", func(s *Setup) { s.ConfigExposed, s.ConfigFile = true, "/c 1" }, []finding{{"settings", "warn", "settings file /c 1", "chmod 600 '/c 1'"}}},
		{"in clear", func(s *Setup) { s.Settings.Listen = ":3456" }, []finding{{"tls", "warn", "in clear", "--tls-cert"}}},
		{"encrypted", func(s *Setup) { s.Settings.Listen, s.Settings.TLSCert, s.TLSExpires = ":3456", "/c", future }, nil},
		{"no certificate", func(s *Setup) { s.Settings.TLSCert, s.TLSErr = "/c", errors.New("no such file") }, []finding{{"tls", "fail", "no such file", "PEM"}}},
		{"expired certificate", func(s *Setup) { s.Settings.TLSCert, s.TLSExpires = "/c", past }, []finding{{"tls", "fail", "expired on 1970-01-01 00:00 UTC", "renew"}}},
		{"expiring certificate", func(s *Setup) { s.Settings.TLSCert, s.TLSExpires = "/c", s.Now.Add(time.Hour) }, []finding{{"tls", "warn", "expires on 1970-01-01 01:16 UTC", "renew"}}},
		{"exposed certificate", func(s *Setup) {
			s.Settings.TLSCert, s.Settings.TLSKey, s.TLSExpires, s.TLSExposed = "/c", "/k", future, true
		}, []finding{{"tls", "warn", "others can read the private key in /k", "chmod 600 '/k'"}}},
		{"no CLI", func(s *Setup) { s.CLIErr, s.Session = claude.ErrNotFound, nil }, append([]finding{
			{"cli-found", "fail", "not found", claude.InstallCommand}, {"cli-version", "skip", "no CLI", ""},
		}, noSession("cli-found failed")...)},
		{"no version", func(s *Setup) { s.VersionErr, s.Session = errors.New("exit status 1"), nil }, append([]finding{
			{"cli-version", "fail", "exit status 1", "install it anew"},
		}, noSession("cli-version failed")...)},
		{"too old", func(s *Setup) { s.Version, s.Session = "2.1.150", nil }, append([]finding{
			{"cli-version", "fail", "2.1.150 is too old", "update it"},
		}, noSession("cli-version failed")...)},
		{"known bad", func(s *Setup) { s.KnownBad, s.Session = "it eats text", nil }, append([]finding{
			{"cli-version", "fail", "it eats text", "2.1.332"},
		}, noSession("cli-version failed")...)},
		{"untested", func(s *Setup) { s.Version = "2.1.999" }, []finding{{"cli-version", "warn", "not tested with 2.1.999", "--claude PATH"}}},
		{"unreadable configuration", func(s *Setup) {
			noVariable(s)
			s.Login.Faults, s.Login.Subscription, s.Session = []string{"/h: denied"}, true, nil
		}, append([]finding{
			{"config-dir", "fail", "denied", "make it yours"}, {"going-on", "skip", "your own login", ""},
		}, noSession("config-dir failed")...)},
		{"a configuration that is not used", func(s *Setup) { s.Login.Faults, s.Login.Exposed = []string{"x"}, []string{"/x"} }, nil},
		{"exposed login", func(s *Setup) { noVariable(s); s.Login.Exposed, s.Login.Subscription = []string{"/h/c"}, true }, []finding{
			{"config-dir", "warn", "others can read the login in /h/c", "chmod 600 '/h/c'"}, {"going-on", "skip", "your own login", ""},
		}},
		{"not logged in", func(s *Setup) { noVariable(s); s.Session = nil }, append([]finding{
			{"login", "fail", "not logged in", "/login"}, {"going-on", "skip", "your own login", ""},
		}, noSession("login failed")...)},
		{"expired login", func(s *Setup) { noVariable(s); s.Login.Subscription, s.Login.Expires, s.Session = true, past, nil }, append([]finding{
			{"login", "fail", "expired on 1970-01-01 00:00 UTC", "/login"}, {"going-on", "skip", "your own login", ""},
		}, noSession("login failed")...)},
		{"login to renew", func(s *Setup) {
			noVariable(s)
			s.Login.Subscription, s.Login.Expires, s.Login.Renewable = true, past, true
		}, []finding{{"going-on", "skip", "your own login", ""}}},
		{"valid login", func(s *Setup) { noVariable(s); s.Login.Subscription, s.Login.Expires = true, future }, []finding{{"going-on", "skip", "your own login", ""}}},
		{"key of the Console", func(s *Setup) { noVariable(s); s.Login.ConsoleKey = true }, []finding{{"going-on", "skip", "your own login", ""}}},
		{"keychain", func(s *Setup) { noVariable(s); s.Login.Keychain = true }, []finding{{"login", "skip", "keychain", ""}, {"going-on", "skip", "your own login", ""}}},
		{"another provider", func(s *Setup) { noVariable(s); s.Cloud = "CLAUDE_CODE_USE_BEDROCK" }, []finding{{"going-on", "skip", "your own login", ""}}},
		{"managed keys", func(s *Setup) { noVariable(s); s.Policy.Helper = true }, []finding{{"going-on", "skip", "your own login", ""}}},
		{"key rejected", func(s *Setup) { s.Login.KeyRefused = true }, []finding{{"login", "warn", "told not to use (rejected in /h/.claude.json)", "unset ANTHROPIC_API_KEY"}}},
		{"no home", func(s *Setup) { s.StateErr = errors.New("no HOME") }, []finding{
			{"state-dir", "fail", "no HOME", "--state-dir DIR"}, {"instance", "skip", "no state directory", ""}, {"disk", "skip", "", ""},
		}},
		{"unwritable state", func(s *Setup) { s.State.Err = errors.New("denied") }, []finding{
			{"state-dir", "fail", "/s: denied", "--state-dir DIR"}, {"instance", "skip", "no state directory", ""}, {"disk", "skip", "", ""},
		}},
		{"foreign state", func(s *Setup) { s.State.Foreign = true }, []finding{{"state-dir", "fail", "/s holds something", "an empty or a new folder"}, {"instance", "skip", "", ""}}},
		{"open state", func(s *Setup) { s.State.Open = true }, []finding{{"state-dir", "warn", "others can look into /s", "--fix"}}},
		{"leftovers", func(s *Setup) { s.State.Left = 3 }, []finding{{"state-dir", "warn", "3 sessions", "--fix"}}},
		{"no state yet, in a repository", func(s *Setup) { s.State = claude.StateLook{Existing: "/", InGit: true} }, nil},
		{"second instance", func(s *Setup) { s.State.Holder, s.Port = "77", Port{Taken: true, OCP: "1"} }, []finding{
			{"instance", "fail", "another ocp, process 77", "kill 77"}, {"port", "skip", "that of process 77", ""},
		}},
		{"second instance elsewhere", func(s *Setup) { s.State.Holder = "77" }, []finding{{"instance", "fail", "process 77", "--state-dir"}}},
		{"another ocp's port", func(s *Setup) { s.Port = Port{Taken: true, OCP: "1.2"} }, []finding{{"port", "fail", "another ocp, version 1.2", "--listen"}}},
		{"port taken", func(s *Setup) { s.Port.Taken = true }, []finding{{"port", "fail", "another program serves on 127.0.0.1:3456", "lsof -nP -iTCP:3456"}}},
		{"port forbidden", func(s *Setup) { s.Port.Err = errors.New("permission denied") }, []finding{{"port", "fail", "permission denied", "--listen"}}},
		{"no address", func(s *Setup) { s.Port.Unasked = true }, []finding{{"port", "skip", "no address", ""}}},
		{"disk full", func(s *Setup) { s.Free = 10 << 20 }, []finding{{"disk", "fail", "10 MB", "make room"}}},
		{"disk nearly full", func(s *Setup) { s.Free = 100 << 20 }, []finding{{"disk", "warn", "100 MB", "make room"}}},
		{"unknown disk", func(s *Setup) { s.Free = -1 }, []finding{{"disk", "skip", "", ""}}},
		{"memory for one", func(s *Setup) { s.Memory = 300 << 20 }, []finding{{"memory", "warn", "300 MB available; 2 running, 2 kept and 1 primed take about 1120 MB", "--keep"}}},
		{"memory for none", func(s *Setup) { s.Memory = 200 << 20 }, []finding{{"memory", "fail", "200 MB available, and one session takes about 250 MB", "--keep"}}},
		{"memory for all", func(s *Setup) { s.Memory = 1120 << 20 }, nil},
		{"unknown memory", func(s *Setup) { s.Memory = -1 }, []finding{{"memory", "skip", "", ""}}},
		{"tmux", func(s *Setup) { s.Settings.Terminal, s.Tmux = "tmux", "tmux 3.3a" }, nil},
		{"no tmux", func(s *Setup) { s.Settings.Terminal, s.TmuxErr, s.Session = "tmux", tmux.ErrMissing, nil }, append([]finding{
			{"terminal", "fail", "--terminal tmux: there is no tmux", "install tmux"},
		}, noSession("terminal failed")...)},
		{"no tmux, and none needed", func(s *Setup) { s.TmuxErr = tmux.ErrMissing }, nil},
		{"a space in ocp's path", func(s *Setup) { s.CanEdit = false }, []finding{{"going-on", "warn", "space", "move ocp"}}},
		{"a space that is in no one's way", func(s *Setup) { s.CanEdit, s.Settings.Keep = false, 0 }, []finding{{"going-on", "skip", "--keep is 0", ""}}},
		{"proxy", func(s *Setup) { s.Proxies = []string{"HTTP_PROXY"} }, nil},
		{"managed proxy", func(s *Setup) { s.Policy.Proxies = []string{"HTTPS_PROXY"} }, []finding{{"proxy", "warn", "managed settings set HTTPS_PROXY", "NO_PROXY"}}},
		{"login dialog", func(s *Setup) {
			s.Session = &Session{Err: &turn.Error{Kind: turn.Authentication, Message: "it asks for a login"}}
		}, []finding{
			{"session", "fail", "asks for a login", "/login"}, {"hooks", "skip", "", ""}, {"boot", "skip", "", ""},
		}},
		{"never set up", func(s *Setup) {
			s.Session = &Session{Copy: true, Err: &turn.Error{Kind: turn.SessionFailed, Message: "it asks for a theme", Err: errors.New("why\nso")}}
		}, []finding{
			{"session", "fail", "it asks for a theme (why; so), with a copy", "run `claude` in a terminal"}, {"hooks", "skip", "", ""}, {"boot", "skip", "", ""},
		}},
		{"no start", func(s *Setup) { s.Session = &Session{Err: &turn.Error{Kind: turn.SessionFailed, Message: "no start"}} }, []finding{
			{"session", "fail", "no start", "--log-level debug"}, {"hooks", "skip", "", ""}, {"boot", "skip", "", ""},
		}},
		{"hooks silenced by policy", func(s *Setup) {
			s.Session, s.Policy = silent(), claude.Policy{NoHooks: "disableAllHooks", Files: []string{"/etc/m"}}
		}, []finding{{"hooks", "fail", "managed settings say disableAllHooks (/etc/m)", "remove disableAllHooks from /etc/m"}, {"boot", "skip", "", ""}}},
		{"hooks silenced by nobody", func(s *Setup) { s.Session = silent() }, []finding{{"hooks", "fail", "no managed settings were found", "policy"}, {"boot", "skip", "", ""}}},
		{"http hooks forbidden", func(s *Setup) {
			s.Session.HTTPSilent, s.Policy = true, claude.Policy{NoHTTP: true, Files: []string{"/etc/m"}}
			s.Proxies = []string{"HTTP_PROXY"}
		}, []finding{{"hooks", "fail", "allowedHttpHookUrls in /etc/m", "--hook-transport command"}}},
		{"hooks captured by a managed proxy", func(s *Setup) {
			s.Session.HTTPSilent, s.Policy = true, claude.Policy{Proxies: []string{"HTTP_PROXY"}, Files: []string{"/etc/m"}}
		}, []finding{{"hooks", "fail", "a proxy captures them, set by managed settings (HTTP_PROXY in /etc/m)", "NO_PROXY"}, {"proxy", "warn", "", "NO_PROXY"}}},
		{"hooks captured by a proxy of the environment", func(s *Setup) { s.Session.HTTPSilent, s.Proxies = true, []string{"http_proxy"} }, []finding{
			{"hooks", "fail", "set as http_proxy", "NO_PROXY"},
		}},
		{"hooks captured by a proxy of a script", func(s *Setup) { s.Session.HTTPSilent = true }, []finding{{"hooks", "fail", "/c/claude: is it a script?", "NO_PROXY"}}},
		{"hooks by command stopped", func(s *Setup) { s.Session.HTTPSilent, s.Settings.HookTransport = true, "command" }, []finding{{"hooks", "fail", "SessionEnd has not", "debug"}}},
		{"hooks that are not proved", func(s *Setup) { s.Session.Proved = false }, []finding{{"hooks", "warn", "had to be killed", "run it again"}}},
		{"slow boot", func(s *Setup) { s.Session.Boot = 6 * time.Second }, []finding{{"boot", "warn", "6s; about a second", "--pool"}}},
		{"boot that may come too late", func(s *Setup) { s.Session.Boot, s.Settings.StartTimeout = time.Second, time.Second }, []finding{{"boot", "warn", "1s, of 1s", "--start-timeout"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := good()
			test.change(s)
			wanted := map[string]finding{}
			for _, f := range test.want {
				wanted[f.id] = f
			}
			fails := false
			for _, c := range s.Checks() {
				if (c.Status == Warn || c.Status == Fail) != (c.Remedy != "") || c.Evidence == "" || c.Claim == "" {
					t.Errorf("no remedy, one too many or nothing to show: %+v", c)
				}
				fails = fails || c.Status == Fail
				f, ok := wanted[c.ID]
				delete(wanted, c.ID)
				switch {
				case !ok && c.Status != OK:
					t.Errorf("it found %+v", c)
				case ok && (string(c.Status) != f.status || !strings.Contains(c.Evidence, f.evidence) || !strings.Contains(c.Remedy, f.remedy)):
					t.Errorf("got %+v\nwant %+v", c, f)
				}
			}
			if len(wanted) > 0 {
				t.Errorf("no checks %v", wanted)
			}
			if fails != (Failed(s.Checks()) > 0) {
				t.Errorf("%d failed", Failed(s.Checks()))
			}
			if (s.Session == nil) != (s.Blocked() != "") {
				t.Errorf("blocked by %q", s.Blocked())
			}
		})
	}
}

// What is stable of the checks, for programs that read them.
func TestCheckNames(t *testing.T) {
	var ids []string
	for _, c := range good().Checks() {
		ids = append(ids, c.ID)
	}
	const want = "settings tls cli-found cli-version config-dir login state-dir instance port disk memory terminal going-on proxy session hooks boot"
	if got := strings.Join(ids, " "); got != want {
		t.Errorf("got %s", got)
	}
	manual, err := os.ReadFile(filepath.Join("..", "..", "docs", "doctor.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if !strings.Contains(string(manual), "\n| `"+id+"` |") {
			t.Errorf("the manual does not list %s", id)
		}
	}
	got, err := json.Marshal(Check{ID: "a", Claim: "b", Status: OK, Evidence: "c"})
	if err != nil || string(got) != `{"id":"a","claim":"b","status":"ok","evidence":"c"}` {
		t.Errorf("got %s, %v", got, err)
	}
}
