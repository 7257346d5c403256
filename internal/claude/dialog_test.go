package claude

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ocp/internal/claude/claudetest"
	"ocp/internal/turn"
)

type dialogScreen struct {
	screen, meaning string
	kind            turn.Kind
	late            bool
}

// dialogScreens are the screens on which the CLI waits for a key, and what is made of
// them.
var dialogScreens = map[string]dialogScreen{
	"trust, No chosen":             {claudetest.Trust332, "trust its working directory", turn.SessionFailed, false},
	"trust, Yes chosen":            {claudetest.Trust207, "trust its working directory", turn.SessionFailed, false},
	"key, choices without numbers": {claudetest.Key332, "whether to use the API key", turn.SessionFailed, false},
	"key, choices with numbers":    {claudetest.Key207, "whether to use the API key", turn.SessionFailed, false},
	"theme, automatic":             {claudetest.Theme332, "asks for a theme", turn.SessionFailed, false},
	"theme, dark":                  {claudetest.Theme207, "asks for a theme", turn.SessionFailed, false},
	"login":                        {claudetest.Login, "asks for a login", turn.Authentication, false},
	"limit menu, Stop chosen":      {claudetest.LimitStop, "usage-limit menu", turn.RateLimited, true},
	"limit menu, Upgrade chosen":   {claudetest.LimitUpgrade, "usage-limit menu", turn.RateLimited, true},
}

func TestDialogsAreRecognised(t *testing.T) {
	for name, test := range dialogScreens {
		d := dialogOn(test.screen)
		if d == nil || !strings.Contains(d.meaning, test.meaning) || d.kind != test.kind || d.late != test.late {
			t.Errorf("%s: got %+v, want %q of kind %s", name, d, test.meaning, test.kind)
		}
		above := "❯ a message that is on the screen\n\n⏺ and its answer\n\n"
		if got := dialogOn(above + test.screen); got != d {
			t.Errorf("%s: below a conversation it is taken for %+v", name, got)
		}
	}
}

// A conversation that quotes a dialog is not one, however exactly it does.
func TestQuotedDialogsAreNone(t *testing.T) {
	for name, test := range dialogScreens {
		for _, prefix := range []string{"", "❯ "} {
			screen := claudetest.MainScreen(prefix + test.screen)
			if d := dialogOn(screen); d != nil {
				t.Errorf("%s: a quotation was taken for a dialog:\n%s", name, screen)
			}
		}
	}
	for _, screen := range []string{
		"", "\n\n", "❯", "❯ No, exit", "do you trust me?\n\n❯ yes",
		"What do you want to do?\n\n❯ Go on",
		claudetest.MainScreen("❯ hello"),
	} {
		if d := dialogOn(screen); d != nil {
			t.Errorf("%q was taken for a dialog: %+v", screen, d)
		}
	}
}

func TestExplain(t *testing.T) {
	for screen, want := range map[string]string{
		"Do you trust the files in this folder?\n❯ 1. Yes, proceed\n  2. No, exit": "trust its working directory",
		claudetest.Key332:  "whether to use the API key",
		claudetest.Offline: "cannot connect to the upstream",
		"No conversation found with session ID: 1234":       "did not find the conversation",
		"❯ my own text that says nothing of a known dialog": "",
	} {
		got := explain(screen)
		if (want == "") != (got == nil) || got != nil && !strings.Contains(got.meaning, want) {
			t.Errorf("%q: got %+v, want %q", screen, got, want)
		}
	}
}

// No key is pressed on a dialog, whichever choice is under the cursor, and the error
// that comes names it. It comes although the start may take an hour.
func TestDialogsAreNotAnswered(t *testing.T) {
	together(t, dialogScreens, func(t *testing.T, test dialogScreen) {
		l := standinLauncher(t, nil)
		defer closeLauncher(t, l)
		before := claudetest.Boot()[:1]
		if test.late {
			before = claudetest.Boot()
		}
		input := filepath.Join(t.TempDir(), "input")
		r := perform(t, l, claudetest.Script{
			Steps: session(before, steps(claudetest.Step{Do: claudetest.Dialog, Text: test.screen})),
			Input: input,
		}, marker)
		if r.err == nil || r.err.Kind != test.kind || !strings.Contains(r.err.Message, test.meaning) {
			t.Errorf("got %v, want kind %s and a message with %q", r.err, test.kind, test.meaning)
		}
		if r.started != test.late {
			t.Errorf("started: %v, want %v", r.started, test.late)
		}
		noInput(t, input)
	})
}

// A session that shows a dialog's text in its conversation, for longer than a dialog is
// looked at, goes on.
func TestQuotedDialogsEndNothing(t *testing.T) {
	before, after := claudetest.Boot()[:3], claudetest.Boot()
	quoting := func(boot []claudetest.Step, screen string) []claudetest.Step {
		return session(boot,
			steps(claudetest.Step{Do: claudetest.Print, Text: claudetest.MainScreen("❯ " + screen)}, wait(4*lookEvery)),
			pick(0, 1, 2, 3, 4), steps(stopNow(), record()), claudetest.End())
	}
	together(t, map[string][]claudetest.Step{
		"trust, before SessionStart": quoting(before, claudetest.Trust332),
		"limit, before SessionStart": quoting(before, claudetest.LimitStop),
		"limit, after it":            quoting(after, claudetest.LimitStop),
		// Not even the dialog itself ends a session that has started.
		"trust, after it": session(after, steps(claudetest.Step{Do: claudetest.Print, Text: claudetest.Trust332}, wait(4*lookEvery)),
			pick(0, 1, 2, 3, 4), steps(stopNow(), record()), claudetest.End()),
		// Nor the menu one that is answering.
		"limit, in the answer": session(after, pick(0), steps(claudetest.Step{Do: claudetest.Print, Text: claudetest.LimitStop}, wait(4*lookEvery)),
			pick(1, 2, 3, 4), steps(stopNow(), record()), claudetest.End()),
	}, func(t *testing.T, script []claudetest.Step) {
		l := standinLauncher(t, nil)
		defer closeLauncher(t, l)
		if r := perform(t, l, claudetest.Script{Steps: script}, marker); r.text != wantText || r.finished == nil {
			t.Errorf("got %q, error %v", r.text, r.err)
		}
	})
}

// A screen caught while it is being drawn, with a conversation that quotes a menu on it
// and no input box yet, ends nothing either.
func TestQuotationWithoutInputBoxEndsNothing(t *testing.T) {
	l := standinLauncher(t, nil)
	defer closeLauncher(t, l)
	r := perform(t, l, claudetest.Script{Steps: session(
		claudetest.Boot(),
		steps(claudetest.Step{Do: claudetest.Print, Text: "{prompt}"}, wait(4*lookEvery)),
		claudetest.Deltas("m", "I would stop."),
		steps(claudetest.Step{Do: claudetest.Stop, Text: "I would stop."}, claudetest.Record("m", "I would stop.")),
		claudetest.End(),
	)}, "Which one?\n"+claudetest.LimitUpgrade)
	if r.finished == nil || r.text != "I would stop." {
		t.Errorf("got %q, error %v", r.text, r.err)
	}
}

// With the operator's login, OCP does not prepare the CLI's configuration: what a CLI
// that was never set up shows is named, and the configuration is left as it was.
func TestUnpreparedConfiguration(t *testing.T) {
	for name, test := range map[string]struct{ config, meaning string }{
		"empty":        {`{}`, "asks for a theme"},
		"key unknown":  {`{"hasCompletedOnboarding":true}`, ""},
		"all prepared": {`{"hasCompletedOnboarding":true,"projects":{}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			file := filepath.Join(home, ".claude.json")
			if err := os.WriteFile(file, []byte(test.config), 0o600); err != nil {
				t.Fatal(err)
			}
			l := standinLauncher(t, func(o *Options) { o.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home} })
			defer closeLauncher(t, l)
			r := perform(t, l, claudetest.Script{Steps: claudetest.Answer(pieces...)}, marker)
			if test.meaning == "" && (r.finished == nil || r.text != wantText) {
				t.Errorf("got %q, error %v", r.text, r.err)
			}
			if test.meaning != "" && (r.err == nil || !strings.Contains(r.err.Message, test.meaning)) {
				t.Errorf("got error %v, want %q", r.err, test.meaning)
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != test.config {
				t.Errorf("the operator's configuration was changed: %s, %v", got, err)
			}
		})
	}
}
