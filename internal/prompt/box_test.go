package prompt

import (
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ocp/internal/claude/claudetest"
)

func TestBoxHazard(t *testing.T) {
	for text, want := range map[string]Hazard{
		"hello":                "",
		"Größe, 中文, עברית 😀 ½": "",
		"one\n\n  two\nthree":  "",
		"  indented":           "",
		"\nlater":              "",
		"line one\\\nline two": "",
		"see [Image #1] and [Pasted text #1 +3 lines] here": "",
		"look at /etc/hostname please":                      "",
		"class A:\n    @property\n    def b(self): pass":    "",
		"mail me@example.org now":                           "",
		"a !ls b":                                           "",
		"exit now":                                          "",
		"exit.":                                             "",
		"👍🏽 🇩🇪":                                             "",
		"-- dash":                                           "",
		"no break\u00a0space":                               "",
		"a\ufffdb":                                          "",
		strings.Repeat("a line of text\n", 3000) + "end": "",

		"":                              Blank,
		" \n\u3000":                     Blank,
		"\xff":                          NotUnicode,
		strings.Repeat("x", maxBoxed+1): TooLong,

		"a\tb": OddCharacter, "a\r\nb": OddCharacter, "a\vb": OddCharacter, "a\x00b": OddCharacter, "a\x1b[201~b": OddCharacter,
		"a\u0085b": OddCharacter, "a\u2028b": OddCharacter, "a\u200bb": OddCharacter, "a\u00adb": OddCharacter, "\ufeffa": OddCharacter,
		"a\u2060b": OddCharacter, "a\ue000b": OddCharacter, "a\ufffeb": OddCharacter, "a\u3164b": OddCharacter, "a\u034fb": OddCharacter,
		"a\u2800b": OddCharacter, "a\u2003b": OddCharacter, "a\U000e0041b": OddCharacter, "a\u0378b": OddCharacter,
		// Kept by 2.1.332, but only in such places.
		"👩\u200d👧": OddCharacter, "❤\ufe0f": OddCharacter, "می\u200cخواهم": OddCharacter,

		"e\u0301a": NotComposed, "\u212b": NotComposed, "\u1100\u1161": NotComposed,

		"/help": OddBeginning, "/etc/hostname is a file": OddBeginning, " /help": OddBeginning, "\n!ls": OddBeginning, "!ls": OddBeginning,
		"#note": OddBeginning, "& bg": OddBeginning, "@x y": OddBeginning, "?": OddBeginning, "<bash-input>ls</bash-input>": OddBeginning,
		"[Request interrupted by user]": OddBeginning, "\\": OddBeginning, "~": OddBeginning, "$HOME": OddBeginning, ":x": OddBeginning,
		"\u0301a": OddBeginning,

		"exit": ExitWord, " quit\n": ExitWord, ":wq!": ExitWord, "\u3000EXIT\u00a0": ExitWord,

		"a ": TrailingSpace, "a\n": TrailingSpace, "a\u3000": TrailingSpace,
		`a\`: TrailingSlash, `a\\`: TrailingSlash,

		"see @/etc/hostn": Completion, "see @": Completion, "x :smi": Completion, "a\n:tada": Completion, "is it 12:30": Completion,
		"see https://example.org/a": Completion, "I like C#": Completion, "in ~/x": Completion,

		`see @"a b" c`: Mention, "see @[a b](x) c": Mention, "x @ y": Mention,
		"a <pasted_content id=\"1\">b": Escaped, "the PASTED_CONTENT tag": Escaped,
		"please ultrathink now": Keyword, "UltraCode it": Keyword,
	} {
		for _, version := range boxes {
			if got := BoxHazard(version, text); got != want {
				t.Errorf("%s: %.40q: got %q, want %q", version, text, got, want)
			}
		}
		for _, version := range []string{"", "2.1.208", "2.1.332 ", "3.0.0"} {
			if got := BoxHazard(version, text); got != UnknownVersion {
				t.Errorf("%q: %.40q: got %q", version, text, got)
			}
		}
	}
}

// Whatever the rule lets through comes out of the stand-in's input box as it went in. The
// box changes many of the texts that are refused, so that the test could fail.
func TestBoxLeavesTextsAlone(t *testing.T) {
	const texts = 10_000
	random := rand.New(rand.NewPCG(5, 20260207))
	for _, version := range boxes {
		through, spoiled := 0, 0
		for range texts {
			text := claudetest.NastyText(random)
			submitted, fate := claudetest.InputBox(version, text)
			same := fate == claudetest.Submitted && submitted == text
			switch hazard := BoxHazard(version, text); {
			case hazard == "" && !same:
				t.Fatalf("%s: %q is let through, and the box makes of it %q (%s)", version, text, submitted, fate)
			case hazard == "":
				through++
			case !same:
				spoiled++
			}
		}
		t.Logf("%s: of %d texts %d are let through; %d would not have come out as they were", version, texts, through, spoiled)
		if through < texts/10 || spoiled < texts/10 {
			t.Errorf("%s: the texts prove little", version)
		}
	}
}

// The same for any text at all, and for texts next to those of the table's.
func TestBoxLeavesAnyTextAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.String(),
			rapid.StringOf(rapid.RuneFrom([]rune("ab :@/!\\\n\t \u00a0\u0301e\u200b?#exit"))),
			rapid.SampledFrom([]string{"exit", "/help", "!ls", "see @a", ":q!", "x\\"}),
		).Draw(t, "text")
		version := rapid.SampledFrom(boxes).Draw(t, "version")
		if hazard := BoxHazard(version, text); hazard != "" {
			return
		}
		if submitted, fate := claudetest.InputBox(version, text); fate != claudetest.Submitted || submitted != text {
			t.Fatalf("%q is let through, and the box makes of it %q (%s)", text, submitted, fate)
		}
	})
}
