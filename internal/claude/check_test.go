package claude

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ocp/internal/claude/claudetest"
	"ocp/internal/prompt"
	"ocp/internal/turn"
)

func checkRequest(script []claudetest.Step) prompt.Request {
	return prompt.Request{Model: claudetest.Script{Steps: script}.Model(), Conversation: answeredAlready}
}

// The check's session starts, runs no turn, and what it shows is what Health tells.
func TestCheck(t *testing.T) {
	boot := claudetest.Boot()
	noStart := boot[:3]
	type row struct {
		steps   []claudetest.Step
		change  func(*Options)
		kind    turn.Kind // empty if the check ends well
		says    string
		fault   string
		warning string
		plan    string
	}
	together(t, map[string]row{
		"well": {steps: claudetest.Answer("never said")},
		"well, with a start screen": {
			steps: session(boot, steps(claudetest.Step{Do: claudetest.Print, Text: " Claude Code v2.1.332\n Sonnet 4.6 · Claude Max · Ann's Organization\n"})),
			plan:  "Claude Max",
		},
		"well, by commands": {steps: boot, change: func(o *Options) { o.HookTransport = Command }},
		"a login dialog": {
			steps: session(boot[:1], steps(claudetest.Step{Do: claudetest.Dialog, Text: claudetest.Login})),
			kind:  turn.Authentication, says: "asks for a login", fault: "asks for a login",
		},
		"an exit": {
			steps: steps(claudetest.Step{Do: claudetest.Exit, N: 3}),
			kind:  turn.SessionFailed, says: "exit code 3", fault: "ended before",
		},
		"no start": {
			steps: session(boot[:2], steps(wait(time.Hour))), change: func(o *Options) { o.StartTimeout = time.Second },
			kind: turn.SessionFailed, says: "did not start in time", fault: "did not start in time",
		},
		"hooks forbidden": {
			steps: noStart, kind: turn.SessionFailed, says: "hooks do not reach ocp",
			fault: "hooks do not reach ocp", warning: "transcript alone",
		},
		"another version": {steps: boot, change: func(o *Options) { o.Version = "9.9.9" }, warning: "not tested with Claude Code 9.9.9"},
		"no version":      {steps: boot, change: func(o *Options) { o.Version = "" }, fault: "version"},
	}, func(t *testing.T, test row) {
		l := standinLauncher(t, func(o *Options) {
			o.Version = claudetest.Version
			if test.change != nil {
				test.change(o)
			}
		})
		defer closeLauncher(t, l)
		err := l.checkWith(t.Context(), checkRequest(test.steps))
		failed, _ := errors.AsType[*turn.Error](err)
		switch {
		case (test.kind == "") != (err == nil):
			t.Errorf("got %v, want kind %q", err, test.kind)
		case err != nil && (failed == nil || failed.Kind != test.kind || !strings.Contains(err.Error(), test.says)):
			t.Errorf("got %v, want %q of kind %s", err, test.says, test.kind)
		}
		wantHealth(t, l, test.fault, test.warning)
		h := l.Health()
		if silent := test.says == "hooks do not reach ocp"; h.Silent != silent || h.HTTPSilent {
			t.Errorf("silent %v, http silent %v", h.Silent, h.HTTPSilent)
		}
		if h.Plan != test.plan || h.Sessions != 1 {
			t.Errorf("plan %q of %d sessions", h.Plan, h.Sessions)
		}
		if err == nil && !h.Proved {
			t.Error("that hooks come is not proved")
		}
		if (h.Boot > 0) != (err == nil) {
			t.Errorf("it booted in %v", h.Boot)
		}
	})
}

// wantHealth wants one fault and one warning that say so, or none.
func wantHealth(t *testing.T, l *Launcher, fault, warning string) {
	t.Helper()
	h := l.Health()
	for _, list := range []struct {
		name, want string
		got        []string
	}{{"faults", fault, h.Faults}, {"warnings", warning, h.Warnings}} {
		if list.want == "" && len(list.got) > 0 ||
			list.want != "" && (len(list.got) != 1 || !strings.Contains(list.got[0], list.want)) {
			t.Errorf("%s are %q, want %q", list.name, list.got, list.want)
		}
	}
	if h.Checking {
		t.Error("it is still checking")
	}
}

// A check that is called off ends at once, even if its session is deaf, and finds nothing.
func TestCheckCalledOff(t *testing.T) {
	l := standinLauncher(t, func(o *Options) { o.Version = claudetest.Version })
	defer closeLauncher(t, l)
	up := filepath.Join(t.TempDir(), "up")
	if err := syscall.Mkfifo(up, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- l.checkWith(ctx, checkRequest(session(steps(
			claudetest.Step{Do: claudetest.Deaf}, claudetest.Step{Do: claudetest.Tell, Text: up}, wait(time.Hour)))))
	}()
	if _, err := os.ReadFile(up); err != nil { // when the session is up
		t.Fatal(err)
	}
	if !l.Health().Checking {
		t.Error("it does not say that it is checking")
	}
	begun := time.Now()
	cancel()
	err := <-done
	if failed, ok := errors.AsType[*turn.Error](err); !ok || failed.Kind != turn.Canceled {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begun); took >= checkGrace {
		t.Errorf("it took %s", took)
	}
	wantHealth(t, l, "", "")
}

// What later sessions show goes before what the check has found.
func TestHealthFollowsSessions(t *testing.T) {
	l := standinLauncher(t, func(o *Options) { o.Version = "1.0.0" })
	defer closeLauncher(t, l)
	old := "not tested with Claude Code 1.0.0"
	_ = l.checkWith(t.Context(), checkRequest(steps(claudetest.Step{Do: claudetest.Exit, N: 1})))
	wantHealth(t, l, "ended before", old)
	perform(t, l, claudetest.Script{Steps: claudetest.Answer(pieces...)}, marker)
	wantHealth(t, l, "", "")
	if got := l.Health(); got.CLIVersion != claudetest.Version || got.Hooks.Accepted == 0 {
		t.Errorf("got %+v", got)
	}

	silent := session(claudetest.Boot()[:3], steps(record()), claudetest.End())
	if r := perform(t, l, claudetest.Script{Steps: silent}, marker); r.text != wantText {
		t.Errorf("got %q, %v", r.text, r.err)
	}
	wantHealth(t, l, "hooks do not reach ocp", "transcript alone")
	started := session(claudetest.Boot(), steps(claudetest.Step{Do: claudetest.Exit, N: 1}))
	perform(t, l, claudetest.Script{Steps: started}, marker)
	wantHealth(t, l, "", "")

	noHTTP := session(claudetest.Boot(), steps(record()), claudetest.End())
	if r := perform(t, l, claudetest.Script{Steps: noHTTP}, marker); r.text != wantText {
		t.Errorf("got %q, %v", r.text, r.err)
	}
	wantHealth(t, l, "", "--hook-transport command")

	perform(t, l, claudetest.Script{Steps: claudetest.Answer(pieces...)}, marker)
	wantHealth(t, l, "", "")
}

func TestLoggedIn(t *testing.T) {
	home := t.TempDir()
	logged := func(more ...string) bool {
		l := &Launcher{options: Options{Env: append([]string{"HOME=" + home}, more...)}}
		return l.loggedIn()
	}
	if !logged("ANTHROPIC_API_KEY=k") {
		t.Error("a key in the environment is not enough")
	}
	if logged() {
		t.Skip("this system keeps logins where they cannot be seen")
	}
	file := filepath.Join(home, ".claude.json")
	for content, want := range map[string]bool{`{"hasCompletedOnboarding":true}`: false, `{"primaryApiKey":"k"}`: true} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := logged(); got != want {
			t.Errorf("%s: got %v", content, got)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, ".credentials.json"), []byte(`{"claudeAiOauth":{"accessToken":"t"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if logged() || !logged("CLAUDE_CONFIG_DIR="+other) {
		t.Error("credentials are not found where the CLI keeps them")
	}
}

func TestBoxOn(t *testing.T) {
	if !boxOn(claudetest.MainScreen("❯ a question")) {
		t.Error("the input box was not recognised")
	}
	for name, test := range dialogScreens {
		if boxOn(test.screen) {
			t.Errorf("%s was taken for the input box", name)
		}
	}
	if boxOn("") || boxOn("❯ text") {
		t.Error("a screen without a box was taken for one with")
	}
}

// The versions that count as tested are those that the suite runs on.
func TestTestedVersionsArePinned(t *testing.T) {
	pins, err := os.ReadFile(filepath.Join("..", "..", "tools", "cli", "pins.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var pinned []string
	for line := range strings.Lines(string(pins)) {
		if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(line, "#") && !slices.Contains(pinned, fields[0]) {
			pinned = append(pinned, fields[0])
		}
	}
	if !slices.Equal(pinned, TestedVersions) {
		t.Errorf("tested are %q, pinned %q", TestedVersions, pinned)
	}
}
