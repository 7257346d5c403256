package claude

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"ocp/internal/prompt"
	"ocp/internal/turn"
)

// lookEvery is how often the screen of a session is looked at that has not shown a sign
// of life. A dialog must be there on two looks.
const lookEvery = time.Second

// dialog is a screen on which the CLI waits for a key that nobody will press.
type dialog struct {
	title   string // a part of a line above its choices
	choice  string // how one of its choices begins
	kind    turn.Kind
	meaning string
	late    bool // it can come up when the session has started
}

// dialogs are those that are known (facts, section 15). Nothing ever answers one: the
// choice under the cursor may be the one that exits, or one that costs money.
var dialogs = []dialog{
	{title: "Detected a custom API key", choice: "No (recommended)", kind: turn.SessionFailed, meaning: "it asks whether to use the API key"},
	{title: "Choose the text style", choice: "Dark mode", kind: turn.SessionFailed, meaning: "it asks for a theme: it was never set up"},
	{title: "Bypass Permissions mode", choice: "Yes, I accept", kind: turn.SessionFailed, meaning: "it asks for consent to run without permissions"},
	{title: "trust", choice: "No, exit", kind: turn.SessionFailed, meaning: "it asks whether to trust its working directory"},
	{title: "Select login method", choice: "Anthropic Console account", kind: turn.Authentication, meaning: "it asks for a login: log in with the Claude Code CLI, or give ocp a key or token"},
	{title: "What do you want to do?", choice: "Stop", kind: turn.RateLimited, meaning: "it shows its usage-limit menu", late: true},
}

// notices are texts of the CLI that explain why a session ended before it started, or
// did not start in time.
var notices = []struct{ words, meaning string }{
	{"Unable to connect to Anthropic services", "it cannot connect to the upstream"},
	{"No conversation found with session ID", "it did not find the conversation it was to resume"},
}

// cursor stands before the chosen one of a dialog's choices, and before the input box.
const cursor = "❯"

// choiceMarks are what a choice's text may have before it: cursor, number, tick.
var choiceMarks = regexp.MustCompile(`^(❯ *)?([0-9]+\. *)?(✔ *)?`)

// dialogOn returns the known dialog that a screen shows, or nil.
//
// The screen also shows the conversation, on 2.1.332 even before SessionStart, and a
// conversation may quote a dialog, cursor and all. So words alone decide nothing. What a
// conversation cannot do is to be the last thing on the screen with a cursor: below it
// there always is the input box, a cursor of its own between two rules. A dialog takes
// the box's place. Hence: the screen's last cursor must stand in a list that has one of
// the dialog's choices, with the dialog's title above and no rule below.
func dialogOn(screen string) *dialog {
	lines := strings.Split(screen, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	at := -1
	for i, line := range lines {
		if strings.HasPrefix(line, cursor) {
			at = i
		}
	}
	if at < 0 || slices.ContainsFunc(lines[at:], isRule) {
		return nil
	}
	for i, d := range dialogs {
		titled := slices.ContainsFunc(lines[:at], func(line string) bool { return strings.Contains(line, d.title) })
		if titled && slices.ContainsFunc(choicesAround(lines, at), func(line string) bool { return strings.HasPrefix(line, d.choice) }) {
			return &dialogs[i]
		}
	}
	return nil
}

// quotedIn reports whether the conversation has the dialog's words, so that a screen that
// shows them need not be a dialog's. Only letters and digits count: the CLI breaks lines
// and draws Markdown.
func (d *dialog) quotedIn(c prompt.Conversation) bool {
	var all strings.Builder
	for _, m := range c.Messages {
		for _, b := range m.Content {
			all.WriteString(alphanumerics(b.Text + string(b.Raw)))
		}
	}
	return strings.Contains(all.String(), alphanumerics(d.title)) && strings.Contains(all.String(), alphanumerics(d.choice))
}

func alphanumerics(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

// isRule reports whether a line is one of those above and below the input box. It may
// hold the session's name.
func isRule(line string) bool { return strings.HasPrefix(line, "────") }

// maxGap is how many empty lines may stand between two choices: the login dialog has
// one.
const maxGap = 1

// choicesAround returns the lines of the list that the line at belongs to, without
// what stands before their texts.
func choicesAround(lines []string, at int) []string {
	var choices []string
	for _, step := range []int{-1, 1} {
		gap := 0
		for i := at; i >= 0 && i < len(lines) && gap <= maxGap; i += step {
			if lines[i] == "" {
				gap++
				continue
			}
			gap = 0
			choices = append(choices, choiceMarks.ReplaceAllString(lines[i], ""))
		}
	}
	return choices
}

// reason is why a session does not answer, as far as its screen tells. The screen's own
// text is no part of it, since that can be the conversation's.
type reason struct {
	kind    turn.Kind
	meaning string
}

// explain names the dialog or the notice on the screen of a session that has not
// started and does not go on. It returns nil if there is none that is known.
func explain(screen string) *reason {
	if d := dialogOn(screen); d != nil {
		return &reason{d.kind, d.meaning}
	}
	for _, n := range notices {
		if strings.Contains(screen, n.words) {
			return &reason{turn.SessionFailed, n.meaning}
		}
	}
	return nil
}
