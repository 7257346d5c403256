package prompt

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Hazard is what about a text the input box of the Claude Code CLI would not leave
// alone; empty if the box provably does.
type Hazard string

// The hazards. Each is measured on 2.1.207 and 2.1.332, by the external-editor way.
const (
	UnknownVersion Hazard = "the box of this CLI version has not been measured"
	Blank          Hazard = "is blank"
	TooLong        Hazard = "is longer than what was measured"
	NotUnicode     Hazard = "is not valid UTF-8"
	OddCharacter   Hazard = "has a character that the box may drop or change"
	NotComposed    Hazard = "is not in Unicode's composed form (NFC)"
	OddBeginning   Hazard = "begins with a character that may mean a command or a mode"
	ExitWord       Hazard = "is a word that ends the CLI"
	TrailingSpace  Hazard = "ends in white space, which the box cuts off"
	TrailingSlash  Hazard = "ends in a backslash, which the box takes with Enter for a new line"
	Completion     Hazard = "ends in a word that the box may complete when Enter is pressed"
	Mention        Hazard = "has a mention that is not a plain word"
	Escaped        Hazard = "has a tag that the box escapes"
	Keyword        Hazard = "has a word that may change how the CLI asks the model"
)

// boxes are the CLI versions whose input box was measured. They differ (2.1.207 leaves
// TAB, CR and invisible characters alone, 2.1.332 the decomposed e + U+0301), but not by
// enough for rules of their own.
var boxes = []string{"2.1.207", "2.1.332"}

// maxBoxed is how long a text may be, in bytes: 105 KB in 3,000 lines were measured.
const maxBoxed = 100 << 10

// BoxKnown reports whether the input box of a CLI version was measured.
func BoxKnown(version string) bool { return slices.Contains(boxes, version) }

// BoxHazard returns the first reason not to put a text into the input box of that CLI
// version. It allows what was measured and nothing else: a refusal costs a second, a
// changed text is wrong.
func BoxHazard(version, text string) Hazard {
	switch {
	case !BoxKnown(version):
		return UnknownVersion
	case len(text) > maxBoxed:
		return TooLong
	case !utf8.ValidString(text):
		return NotUnicode
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return !boxed(r) }); i >= 0 {
		return OddCharacter
	}
	bare := strings.TrimFunc(text, unicode.IsSpace)
	switch {
	case bare == "":
		return Blank
	case !norm.NFC.IsNormalString(text):
		return NotComposed
	case slices.Contains(exitWords, strings.ToLower(bare)):
		return ExitWord
	case !beginsPlainly(bare):
		return OddBeginning
	case !strings.HasSuffix(text, bare):
		return TrailingSpace
	case strings.HasSuffix(text, `\`):
		return TrailingSlash
	case strings.ContainsAny(lastWord(bare), completing):
		return Completion
	case mention.MatchString(text):
		return Mention
	case escaped.MatchString(text):
		return Escaped
	case keyword.MatchString(text):
		return Keyword
	}
	return ""
}

// boxed reports whether the box leaves a character alone wherever it stands: line feed,
// the usual spaces, and what is assigned and visible. Joiners and variation selectors are
// not in it, although 2.1.332 keeps them where they mean something (in 👩‍👧 and ❤️) and
// drops them elsewhere. Nor are private use and the unassigned.
func boxed(r rune) bool {
	switch r {
	case '\n', ' ', '\u00a0', '\u202f', '\u3000':
		return true
	case '\u2800': // a blank among the symbols
		return false
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S) &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// exitWords end the CLI, whatever white space is around them. 2.1.332 also ignores
// invisible characters there, which are never let through.
var exitWords = []string{"exit", "quit", ":q", ":q!", ":wq", ":wq!"}

// beginsPlainly reports whether a text begins with a letter, a digit or a mark that means
// nothing to the box. What does: / ! (command, shell; both versions), # & @ ? (in some
// version, some mode), < and [ (records of the CLI's own begin so).
func beginsPlainly(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.IsLetter(r) || unicode.IsNumber(r) || strings.ContainsRune("\"'(*-.`{>¿¡«", r) ||
		r > unicode.MaxLatin1 && !unicode.IsMark(r)
}

// completing are the characters that call a list of completions up where a text ends in
// a word with them; Enter then takes the list's first entry. Measured: @/etc/hostn becomes
// @/etc/hostname (both), :smi an emoji (2.1.332). The others have such lists in some
// configuration.
const completing = `@:/#~$\`

func lastWord(text string) string {
	words := strings.Fields(text)
	return words[len(words)-1]
}

var (
	// mention finds @"a quoted path" and @[a name](of a kind of link): both can go over
	// spaces. A plain @word sends nothing, with CLAUDE_CODE_DISABLE_ATTACHMENTS.
	mention = regexp.MustCompile(`@[^\pL\pN_]|@$`)
	// escaped finds the tags that 2.1.332 puts around pastes, and a backslash into if a
	// text has them already.
	escaped = regexp.MustCompile(`(?i)pasted_content`)
	// keyword finds the words that 2.1.332 looks for, to raise the effort among others.
	keyword = regexp.MustCompile(`(?i)ultra(code|plan|review|think)`)
)
