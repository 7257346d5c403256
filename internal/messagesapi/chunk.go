package messagesapi

import "strings"

// Split cuts the text of a part into the chunks that become its deltas. The chunks
// joined must be the text, and each must be valid UTF-8 by itself.
type Split func(text string) []string

// Whole is the text in one chunk; none if it is empty.
func Whole(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// ByLine cuts behind every line feed.
func ByLine(text string) []string {
	chunks := strings.SplitAfter(text, "\n")
	if last := len(chunks) - 1; chunks[last] == "" {
		chunks = chunks[:last]
	}
	return chunks
}

// ByCodePoint makes every code point a chunk of its own, so that joined emoji come
// apart.
func ByCodePoint(text string) []string { return ByRunes(1)(text) }

// ByRunes cuts behind every n code points. An n below 1 counts as 1.
func ByRunes(n int) Split {
	n = max(n, 1)
	return func(text string) []string {
		var chunks []string
		start, count := 0, 0
		for i := range text {
			if count == n {
				chunks = append(chunks, text[start:i])
				start, count = i, 0
			}
			count++
		}
		return append(chunks, Whole(text[start:])...)
	}
}
