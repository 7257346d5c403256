package claudetest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"ocp/internal/hook"
)

// Fate is what the input box makes of a text and the Enter behind it.
type Fate string

// The fates of a text.
const (
	Submitted Fate = "submitted"
	Swallowed Fate = "swallowed" // for an unknown command, or for nothing being left
	Exited    Fate = "exited"    // the CLI ended
)

// InputBox is the input box of a CLI version, 2.1.207 or 2.1.332: what becomes of a text
// that the external editor puts into it and Enter submits, repeated where it has to be. It
// is a model of what was measured, and knows nothing of what anybody thinks is safe.
func InputBox(version, text string) (submitted string, fate Fate) {
	old := version == "2.1.207"
	// The completions are of the file system and of agents, so any word may have one.
	if marked := completed.FindString(text); marked != "" && !(old && strings.HasPrefix(strings.TrimSpace(marked), ":")) {
		text += "(completed)"
	}
	if !old {
		text = strings.Map(visible, controls.Replace(text))
		text = pasteTags.ReplaceAllString(text, `<\$1`)
	}
	// 2.1.332 does not compose each text; that a text be composed is so on both.
	text = norm.NFC.String(text)
	text = strings.TrimRightFunc(strings.TrimSuffix(text, `\`), blank)
	switch bare := strings.TrimFunc(text, blank); {
	case bare == "":
		return "", Swallowed
	case slices.Contains([]string{"exit", "quit", ":q", ":q!", ":wq", ":wq!"}, bare):
		return "", Exited
	}
	if command := strings.TrimPrefix(text, "/"); command != text {
		name, _, _ := strings.Cut(command, " ")
		if !strings.Contains(name, "/") {
			return "", Swallowed
		}
	}
	return text, Submitted
}

var (
	// completed finds a last word that calls a list of completions up.
	completed = regexp.MustCompile(`(^|\s)(@\S*|@"[^"]*|:[a-z0-9_+-]{2,})$`)
	pasteTags = regexp.MustCompile(`(?i)<(/?pasted_content)`)
	controls  = strings.NewReplacer("\t", "    ", "\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")
)

// visible is what 2.1.332 keeps of a character. It is stricter than the CLI, which keeps
// joiners and variation selectors that mean something.
func visible(r rune) rune {
	switch {
	case r == '\n':
	case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r),
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return -1
	}
	return r
}

// blank is what JavaScript's trim takes for white space, and what the box trims besides.
func blank(r rune) bool {
	return r != '\u0085' && unicode.IsSpace(r) || r == '\ufeff' || r == '\u200b' || r == '\u2060'
}

// maxTyped is how many keys may wait to be read.
const maxTyped = 64 << 10

// typing is what a turn whose prompt was typed has more than others.
type typing struct {
	text     string // the prompt
	promptID string // what its hook calls and its user record carry
}

// asked is what the running turn answers.
func (s *standin) asked() string {
	if s.promptID != "" {
		return s.text
	}
	return s.transcript.prompt()
}

// prompt waits at the input box until a prompt is submitted, and lets the next turn begin.
// A blocked prompt is back in the box (2.1.332).
func (s *standin) prompt(step Step) error {
	content, lost := "", step.N
	showBox(content)
	for key := range s.typed {
		switch {
		case key == '\a':
			content = s.edit(content)
		case key != '\r' || content == "":
			continue
		case lost > 0:
			lost--
			continue
		default:
			submitted, fate := InputBox(Version, content)
			switch fate {
			case Exited:
				s.hooks.run("SessionEnd", s.common("SessionEnd", s.options["--resume"], map[string]any{"reason": "prompt_input_exit"}))
				exit(0)
			case Submitted:
				showBox("")
				if s.submit(submitted) {
					return nil
				}
				content = submitted
			case Swallowed:
				content = ""
			}
		}
		showBox(content)
		fmt.Print("\r\n  " + s.reason)
	}
	return nil
}

// submit runs the UserPromptSubmit hook, and begins a turn unless that blocks it.
func (s *standin) submit(text string) bool {
	id := newID()
	s.promptID = id
	reason, blocked := s.hooks.run(hook.UserPromptSubmit, s.common(hook.UserPromptSubmit, s.options["--resume"], map[string]any{
		"prompt": text, "permission_mode": "default",
	}))
	if blocked && !s.unblocked {
		s.reason = reason
		return false
	}
	s.reason = ""
	s.text, s.turn, s.waits = text, newID(), false
	clear(s.ids)
	clear(s.transcript.ids)
	s.transcript.user(text, id)
	return true
}

// edit runs the external editor on what is in the box, and returns what it leaves. While
// it is open the screen is blank; if it fails, the box stays as it is.
func (s *standin) edit(content string) string {
	file, err := os.CreateTemp("", "claude-prompt-")
	if err != nil {
		return content
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return content
	}
	show("")
	words := append(strings.Split(os.Getenv("VISUAL"), " "), file.Name()) // so does the CLI
	if err := exec.Command(words[0], words[1:]...).Run(); err != nil {
		return content
	}
	edited, err := os.ReadFile(file.Name())
	if err != nil {
		return content
	}
	return string(edited)
}

// showBox shows the input box with a text in it, of which there may not be room for all.
func showBox(content string) {
	const room = 10
	lines := strings.Split("❯ "+strings.ReplaceAll(content, "\n", "\n  "), "\n")
	top := rule
	if above := len(lines) - room; above > 0 {
		lines, top = lines[above:], fmt.Sprintf("─── ↑ %d more ───", above)
	}
	show(top + "\n" + strings.Join(lines, "\n") + "\n" + rule + "\n  ⏸ manual mode on")
}
