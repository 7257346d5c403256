package claude

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ocp/internal/claude/claudetest"
	"ocp/internal/prompt"
)

// typed is a session of the stand-in whose first turn is over.
func typed(t *testing.T, ctx context.Context, steps ...claudetest.Step) *typing {
	t.Helper()
	l := standinLauncher(t, nil)
	t.Cleanup(func() { closeLauncher(t, l) })
	script := claudetest.Script{Steps: session(claudetest.Answer("one\n"), steps)}
	y := startTyping(t, l, Key{Model: script.Model()}, question(script, "a question").Conversation)
	y.finish(ctx)
	return y
}

func TestSubmit(t *testing.T) {
	long := strings.Repeat("a line of a long text, with ünïcödé in it\n", 2000) + "end"
	for name, texts := range map[string][]string{
		"one":     {"a second question"},
		"several": {"two", "three\n\n  lines", "four"},
		"long":    {long, "short"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var steps []claudetest.Step
			for range texts {
				steps = append(steps, claudetest.Reply("m", "again\n")...)
			}
			y := typed(t, ctx, steps...)
			for _, text := range texts {
				if prompt.BoxHazard(claudetest.Version, text) != "" {
					t.Fatalf("%.40q may not be submitted", text)
				}
				said, err := y.submit(ctx, text)
				if err != nil || said == nil || said.Prompt != text || said.PromptID == "" {
					t.Fatalf("%.40q: got %v, %v", text, said, err)
				}
				y.finish(ctx)
			}
		})
	}
}

// An Enter that is lost is repeated.
func TestSubmitRepeatsEnter(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	steps := claudetest.Reply("m", "again\n")
	steps[0].N = 3
	y := typed(t, ctx, steps...)
	if _, err := y.submit(ctx, "a question"); err != nil {
		t.Fatal(err)
	}
	y.finish(ctx)
}

// What comes out otherwise is blocked, and submitting ends.
func TestSubmitOfAnotherText(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, text := range []string{"a tab\there", "white space ", "see @/etc/hostn", "back\\"} {
		y := typed(t, ctx, claudetest.Reply("m", "again\n")...)
		said, err := y.submit(ctx, text)
		if !errors.Is(err, errNotTyped) || said == nil || !said.Blocked || said.Prompt == text {
			t.Errorf("%q: got %v, %v", text, said, err)
		}
	}
}

// Whatever else is on the screen, no key is sent into it.
func TestSubmitKeepsItsHandsOff(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for name, screen := range map[string]string{
		"a dialog":            claudetest.LimitUpgrade,
		"another dialog":      claudetest.Trust332,
		"nothing":             " ",
		"a box with a text":   strings.Replace(claudetest.MainScreen(""), "❯ ", "❯ some text", 1),
		"an unknown question": "Do you like this?\n\n ❯ 1. Yes\n   2. No",
	} {
		t.Run(name, func(t *testing.T) {
			input := filepath.Join(t.TempDir(), "input")
			l := standinLauncher(t, nil)
			t.Cleanup(func() { closeLauncher(t, l) })
			script := claudetest.Script{Input: input, Steps: session(
				claudetest.Boot(), steps(claudetest.Step{Do: claudetest.Print, Text: screen}), claudetest.Answer("one")[len(claudetest.Boot()):],
			)}
			y := startTyping(t, l, Key{Model: script.Model()}, question(script, "a question").Conversation)
			y.finish(ctx)
			said, err := y.submit(ctx, "a question")
			if !errors.Is(err, errNotTyped) || said != nil {
				t.Errorf("got %v, %v", said, err)
			}
			noInput(t, input)
		})
	}
}

// A session that ends, and one that never asks for the text.
func TestSubmitFails(t *testing.T) {
	for name, steps := range map[string][]claudetest.Step{
		"the CLI ends":     {{Do: claudetest.Exit}},
		"there is no turn": {},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			y := typed(t, ctx, steps...)
			ended, end := context.WithCancelCause(ctx)
			end(context.Canceled)
			if name == "the CLI ends" {
				ended = ctx
			}
			if said, err := y.submit(ended, "a question"); !errors.Is(err, errNotTyped) || said != nil {
				t.Errorf("got %v, %v", said, err)
			}
		})
	}
}

func TestBoxContent(t *testing.T) {
	const rule = "────────────────────────────────────────"
	const footer = "\n  ⏸ manual mode on"
	for _, test := range []struct {
		name, screen, want string
		ok                 bool
	}{
		{"empty", rule + "\n❯ \n" + rule + footer, "", true},
		{"a text", "● answer\n\n" + rule + " ocp ─\n❯ a text\n" + rule + footer, "a text", true},
		{"lines", rule + "\n❯ one\n\n  two\n" + rule + footer, "one\n\n  two", true},
		{"a rule in the text", rule + "\n❯ one\n  " + rule + "\n  two\n" + rule + footer, "one\n  " + rule + "\n  two", true},
		{"a list below", rule + "\n❯ see @/etc/hostn\n" + rule + "\n/etc/hostname", "see @/etc/hostn", true},
		{"more than is shown", "● answer\n─── ↑ 30 more ─── ocp ─\n  one\n  two\n" + rule + footer, "one\n  two", true},
		{"more than fits", "  one\n\n  two\n" + rule + footer, "one\n\n  two", true},
		{"no box", "● answer\n\n❯ text", "", false},
		{"blank", "", "", false},
		{"a dialog", claudetest.LimitUpgrade, "", false},
		{"another dialog", claudetest.Trust332, "", false},
		{"one rule below a conversation", "● answer\n" + rule + footer, "", false},
	} {
		if got, ok := boxContent(test.screen); got != test.want || ok != test.ok {
			t.Errorf("%s: got %q, %v", test.name, got, ok)
		}
	}
}

func TestEditorVars(t *testing.T) {
	for _, command := range [][]string{nil, {"/a b/ocp", "editor"}, {"/ocp", "edit or"}} {
		if got := editorVars(command); got != nil {
			t.Errorf("%q: got %q", command, got)
		}
	}
	if got := editorVars([]string{"/ocp", "editor"}); len(got) != 2 || got[0] != "VISUAL=/ocp editor" || got[1] != "EDITOR=/ocp editor" {
		t.Errorf("got %q", got)
	}
}

// The editor writes nothing over a text that is in the box, nor half a prompt.
func TestEdit(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := filepath.Join(t.TempDir(), "file")
	if err := Edit(ctx, "/dev/null", file); err == nil {
		t.Error("a file that is not there was edited")
	}
	for content, fifo := range map[string]string{"": os.DevNull, "text": filepath.Join(t.TempDir(), "none")} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Edit(t.Context(), fifo, file); err == nil {
			t.Errorf("%q was edited from nothing", content)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != content {
			t.Errorf("%q was made %q, %v", content, got, err)
		}
	}
}
