package claudetest

import (
	"math/rand/v2"
	"strings"
)

// NastyText makes a text as a client could send it: of words of many scripts, code, marks
// that mean something to the CLI, characters that it drops, and blank and long lines.
// About half of the texts are made without what spoils a text for the input box at once.
func NastyText(r *rand.Rand) string {
	kinds := [][]string{words, words, scripts, marks, code}
	if r.IntN(2) == 0 {
		kinds = append(kinds, emoji, odd)
	}
	var b strings.Builder
	for range 1 + r.IntN(12) {
		switch kind := kinds[r.IntN(len(kinds))]; r.IntN(40) {
		case 0:
			b.WriteString(strings.Repeat(pick(r, kind), 1+r.IntN(200))) // a long line
		case 1:
			for range 1 + r.IntN(80) { // many lines
				b.WriteString(pick(r, kind) + pick(r, []string{"\n", "\n", "\n\n", " \n"}))
			}
		case 2:
			b.WriteRune(anyRune(r))
		default:
			b.WriteString(pick(r, kind))
		}
		b.WriteString(pick(r, separators))
	}
	text := b.String()
	if r.IntN(4) > 0 { // most texts of clients have no white space at their ends
		text = strings.TrimSpace(text)
	}
	if r.IntN(10) == 0 {
		text = pick(r, alone)
	}
	return text
}

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

// anyRune is a code point of any plane, most of them of the first.
func anyRune(r *rand.Rand) rune {
	for {
		c := rune(r.IntN(0x3000))
		switch r.IntN(4) {
		case 0:
			c = rune(r.IntN(0x10000))
		case 1:
			c = rune(r.IntN(0x110000))
		}
		if c < 0xd800 || c > 0xdfff {
			return c
		}
	}
}

var (
	separators = []string{" ", " ", " ", "", "\n", "\n\n", "  ", ", ", "\n  ", "\n\n\n"}
	words      = []string{
		"hello", "What is", "the", "answer?", "Please", "explain", "2+2", "3.14", "a", "I", "don't", "you're", "“quoted”",
		"— and –", "x", "OK.", "yes", "no", "Why?!", "(see above)", "100%", "$5", "#1", "C#", "R&D", "a/b", "and/or", "~10", "e.g.",
		"exit", "quit", "help", "think", "stop", "clear", "retry", "1.", "-", "*", ">", "|", "…", "½", "°C", "§ 5", "ﬁ", "①", "™",
	}
	scripts = []string{
		"Größe", "naïve", "Łódź", "Привет, мир", "ёлка и йод", "Ελληνικά", "中文文本", "日本語のテキスト", "カタカナ", "한국어 문장",
		"עברית", "العربية", "हिन्दी", "ไทย", "ქართული", "አማርኛ", "தமிழ்", "Tiếng Việt", "İstanbul", "ǅ", "ﷺ", "ß", "。", "、", "？", "𝔘𝔫𝔦", "𠀀",
	}
	marks = []string{
		"[Image #1]", "[Pasted text #1 +3 lines]", "[...Truncated text #1 +10 lines...]", "/help", "/model opus", "!ls", "@/etc/hostname",
		"@\"a b\"", "@x", "me@example.org", "@", "#note", "& bg", "?", "ultrathink", ":smile:", ":smi", "/etc/hostname", "/tmp/x.png", "~/x",
		"https://example.org/a?b=c#d", "<system-reminder>x</system-reminder>", "<pasted_content id=\"1\">", "</pasted_content>",
		"<command-name>/x</command-name>", "<bash-input>ls</bash-input>", "[Request interrupted by user]", "(no content)",
		"Continue from where you left off.", "a\\", "\\", "\\n", "─────────────────────────", "❯", "● ", "⏸",
	}
	code = []string{
		"def f(x):\n    return x * 2", "if (a && b) { c(); }", "```go\nfunc main() {}\n```", "`code`", "{\"key\": [1, null, true]}", "<b>bold</b>",
		"| a | b |\n|---|---|\n| 1 | 2 |", "**bold** _it_", "a := b[1:2]", "x->y", "#include <stdio.h>", "@property\ndef g(): pass", "$ ls -la | wc -l",
		"C:\\dir\\file", "a\\\nb", "\tindented", "--flag=1", "//comment", "/* c */", "SELECT * FROM t;", "^(a|b)+$", "100 %\n200 %",
	}
	emoji = []string{"😀", "👍🏽", "👩‍👧", "❤️", "1️⃣", "🇩🇪", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "✅", "→", "♥", "☃", "🧑‍🚀"}
	odd   = []string{
		"e\u0301", "a\u0338", "\u1100\u1161", "\u212b", "\u200b", "\u200d", "\u200c", "\ufeff", "\u00a0", "\u3000", "\u2003", "\u2000", "\u202f", "\u00ad",
		"\u2028", "\u2029", "\u0085", "\r", "\r\n", "\v", "\f", "\x00", "\x1b[31m", "\x7f", "\u0090", "\ue000", "\ufffd", "\ufffe", "\U000e0041", "\u034f", "\u3164",
		"\u202e", "\t", "  \n", "\n ", "z\u0301\u0302\u0303\u0304", "क्\u200dष", "می\u200cخواهم", "\x1b[201~", "\u2800",
	}
	alone = []string{
		"exit", " exit ", "Exit", "quit\n", ":q", ":wq!", "exit\u3000", "/", "/exit", " /help", "/ help", "!", "?", "@", "#", "&", "\\", "", " ", "\n", "\u200b",
		"0", "y", "help", "exit.", "exit now", ".", "-", "'", "1️⃣", "\u00a0/help", "ultrathink",
	}
)
