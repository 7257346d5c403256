package claudetest

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
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
	if strings.HasSuffix(text, `\`) {
		text = strings.TrimSuffix(text, `\`)
	}
	text = strings.TrimRightFunc(text, blank)
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
