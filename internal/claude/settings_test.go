package claude

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzSettings checks that whatever the hook command and the URL are, the settings are
// JSON that says them: the command as a line that a shell splits back into its words.
func FuzzSettings(f *testing.F) {
	f.Add("/opt/it's here/ocp", "hook", "", "http://127.0.0.1:1/hook")
	f.Add(`\'"`, "$HOME `id` *", "\n#\t;&|", "")
	f.Add("\xff", "a\x00b", "\u2028<>", "\xed\xa0\x80")
	f.Fuzz(func(t *testing.T, program, first, second, url string) {
		words := []string{program, first, second}
		data, err := settings(HTTP, url, words)
		if sayable := !slices.ContainsFunc(append(words, url), func(s string) bool {
			return !utf8.ValidString(s) || strings.ContainsRune(s, 0)
		}); sayable != (err == nil) {
			t.Fatalf("words %q, URL %q: error %v", words, url, err)
		}
		if err != nil {
			return
		}
		var got struct {
			Hooks map[string][]hookGroup
		}
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		for event, groups := range got.Hooks {
			h := groups[0].Hooks[0]
			if h.Type == "http" {
				if h.URL != url {
					t.Fatalf("%s: URL %q became %q", event, url, h.URL)
				}
				continue
			}
			if split, err := shellSplit(h.Command); err != nil || !slices.Equal(split, words) {
				t.Fatalf("%s: words %q became %q (%v), by the line %s", event, words, split, err, h.Command)
			}
		}
	})
}

// shellSplit splits a line as a POSIX shell does, and refuses what a shell would expand
// or act on.
func shellSplit(line string) (words []string, err error) {
	var word strings.Builder
	begun, quoted, escaped := false, false, false
	for _, c := range []byte(line) {
		switch {
		case quoted && c == '\'':
			quoted = false
		case quoted:
			word.WriteByte(c)
		case escaped && c == '\n':
			return nil, errors.New("a joined line")
		case escaped:
			word.WriteByte(c)
			escaped = false
		case c == '\\':
			begun, escaped = true, true
		case c == '\'':
			begun, quoted = true, true
		case c == ' ':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			return nil, errors.New("a byte that is not quoted")
		}
	}
	if quoted || escaped {
		return nil, errors.New("the line breaks off")
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}
