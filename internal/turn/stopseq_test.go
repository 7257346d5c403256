package turn

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// cut is the definition of what a Stopper does, by trying every end.
func cut(text string, sequences []string) (string, string, bool) {
	for end := 1; end <= len(text); end++ {
		longest := ""
		for _, sequence := range sequences {
			if strings.HasSuffix(text[:end], sequence) && len(sequence) > len(longest) {
				longest = sequence
			}
		}
		if longest != "" {
			return text[:end-len(longest)], longest, true
		}
	}
	return text, "", false
}

// pushAll pushes deltas until a match and returns all text and the match.
func pushAll(s *Stopper, deltas []string) (sent []string, matched string, done bool) {
	for _, delta := range deltas {
		text, matched, done := s.Push(delta)
		sent = append(sent, text)
		if done {
			return sent, matched, true
		}
	}
	return append(sent, s.Flush()), "", false
}

func TestStopper(t *testing.T) {
	for _, test := range []struct {
		name      string
		sequences []string
		deltas    []string
		want      []string // what each Push, and Flush, gives
		matched   string
	}{
		{"none", nil, []string{"a", "b"}, []string{"a", "b", ""}, ""},
		{"empty sequence", []string{""}, []string{"a"}, []string{"a", ""}, ""},
		{"in one delta", []string{"END"}, []string{"one END two"}, []string{"one "}, "END"},
		{"across deltas", []string{"END"}, []string{"one E", "N", "D two"}, []string{"one ", "", ""}, "END"},
		{"false start", []string{"END"}, []string{"one E", "N", "X"}, []string{"one ", "", "ENX", ""}, ""},
		{"held at the end", []string{"END"}, []string{"EN"}, []string{"", "EN"}, ""},
		{"restart inside", []string{"aab"}, []string{"aa", "ab"}, []string{"", "a"}, "aab"},
		{"first complete wins", []string{"abcd", "bc"}, []string{"abcd"}, []string{"a"}, "bc"},
		{"longest of one end", []string{"b", "ab"}, []string{"xab"}, []string{"x"}, "ab"},
		{"at the start", []string{"\n\n"}, []string{"\n", "\n"}, []string{"", ""}, "\n\n"},
		{"whole runes", []string{"é!"}, []string{"aé", "b"}, []string{"a", "éb", ""}, ""},
	} {
		sent, matched, _ := pushAll(NewStopper(test.sequences), test.deltas)
		if strings.Join(sent, "|") != strings.Join(test.want, "|") || matched != test.matched {
			t.Errorf("%s: got %q and %q, want %q and %q", test.name, sent, matched, test.want, test.matched)
		}
	}
}

// TestStopperProperty pins that the borders of deltas make no difference, and that no
// more is held back than could start a sequence.
func TestStopperProperty(t *testing.T) {
	letters := rapid.StringOfN(rapid.SampledFrom([]rune("abé")), 0, 30, -1)
	rapid.Check(t, func(t *rapid.T) {
		sequences := rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune("abé")), 0, 5, -1), 0, 4).Draw(t, "sequences")
		deltas := rapid.SliceOf(letters).Draw(t, "deltas")
		want, wantMatched, wantDone := cut(strings.Join(deltas, ""), sequences)
		sent, matched, done := pushAll(NewStopper(sequences), deltas)
		if got := strings.Join(sent, ""); got != want || matched != wantMatched || done != wantDone {
			t.Fatalf("got %q, %q, %v, want %q, %q, %v", got, matched, done, want, wantMatched, wantDone)
		}
		in := ""
		out := ""
		for i, text := range sent {
			if !utf8.ValidString(text) {
				t.Fatalf("half a rune was sent: %q", text)
			}
			if i == len(deltas) || done && i == len(sent)-1 {
				break
			}
			in, out = in+deltas[i], out+text
			if held := in[len(out):]; held != "" && !starts(sequences, held) {
				t.Fatalf("%q is held and starts none of %q", held, sequences)
			}
		}
	})
}

func starts(sequences []string, s string) bool {
	for _, sequence := range sequences {
		if strings.HasPrefix(sequence, s) {
			return true
		}
	}
	return false
}
