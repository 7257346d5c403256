package claude

import (
	"slices"
	"strings"
	"unicode"

	"ocp/internal/prompt"
)

// marks begin texts that the CLI takes for records of its own where a conversation
// ends: it then runs no turn (both versions for the first, 2.1.332 for <bash-input>),
// or runs another one, with a text of its own added (2.1.332, the others).
var marks = []string{"[Request interrupted by user", "<bash-input>", "<bash-stdout>", "<bash-stderr>"}

// noContent is what the CLI writes for an answer without text; it drops an answer that
// says just that, whatever white space is around it, and joins the messages around the
// answer (both versions).
const noContent = "(no content)"

// inert returns the conversation in a form in which no text of it means anything to the
// CLI. A text that would is cut behind its first visible character into two blocks, which
// together are the same text.
func inert(c prompt.Conversation) prompt.Conversation {
	c.Messages = slices.Clone(c.Messages)
	for i, m := range c.Messages {
		n := len(m.Content) - 1
		if n < 0 || m.Content[n].Type != "text" {
			continue
		}
		text := m.Content[n].Text
		dropped := m.Role == prompt.Assistant && n == 0 && trim(text) == noContent
		if dropped || i == len(c.Messages)-1 && marked(text) {
			first := strings.Index(text, trim(text)) + 1
			c.Messages[i].Content = append(slices.Clone(m.Content[:n]), prompt.Text(text[:first]), prompt.Text(text[first:]))
		}
	}
	return c
}

// trim takes off what the CLI may take for white space: JavaScript's, and U+0085.
func trim(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' })
}

// forgotten reports whether the CLI leaves a text block of an answer out when it goes on
// with the conversation (both versions).
func forgotten(text string) bool { return trim(text) == "" || trim(text) == noContent }

func marked(text string) bool {
	return slices.ContainsFunc(marks, func(mark string) bool { return strings.HasPrefix(text, mark) })
}
