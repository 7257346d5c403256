package terminal

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// newTestScreen returns a screen that answers queries to nobody.
func newTestScreen(rows, cols int) *screen {
	return newScreen(rows, cols, func(string) {})
}

func TestScreenText(t *testing.T) {
	tests := []struct{ name, output, want string }{
		{"empty", "", ""},
		{"line end and carriage return", "one\r\ntwo\rT", "one\nTwo"},
		{"leading lines and spaces stay", "\r\n\r\n  x  ", "\n\n  x"},
		{"cursor position", "\x1b[2;3Hb\x1b[1;1Ha", "a\n  b"},
		{"overwritten after moving left", "abcd\x1b[2DX", "abXd"},
		{"colours", "\x1b[1;38;2;255;0;0mred\x1b[0m \x1b[44mblue   \x1b[0m", "red blue"},
		{"erase line", "secret\x1b[2K\rok", "ok"},
		{"erase screen", "a\r\nb\x1b[2J\x1b[Hc", "c"},
		{"wrap", "1234567890abc", "1234567890\nabc"},
		{"scroll", "1\r\n2\r\n3\r\n4\r\n5\r\n6", "3\n4\n5\n6"},
		{"wide characters", "世界!", "世界!"},
		{"wide character overwritten", "世界\x1b[2Gx\x1b[1Ga\x1b[K", "a"},
		{"wide character at the edge", "123456789世", "123456789\n世"},
		{"insert and delete", "abcdef\x1b[3G\x1b[2@\x1b[1G\x1b[P", "b  cdef"},
		{"insert and delete lines", "1\r\n2\r\n3\x1b[2;1H\x1b[Lx\x1b[1;1H\x1b[M", "x\n2\n3"},
		{"scrolling region", "1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[3;1H\nx\x1b[2;1H\x1bMy", "1\ny\n3\n4"},
		{"scroll down", "1\r\n2\x1b[Tx", "\n1x\n2"},
		{"tabulators", "a\tb\x1b[Zc", "a       c"},
		{"repeated", "ab\x1b[3b", "abbbb"},
		{"combining mark", "e\u0301x", "e\u0301x"},
		{"link", "\x1b]8;;https://example.org\x1b\\here\x1b]8;;\x1b\\", "here"},
		{"title", "\x1b]0;title\x07text", "text"},
		{"alternate screen", "main\x1b[?1049h\x1b[Halt", "alt"},
		{"back from the alternate screen", "世 main\x1b[?1049h\x1b[2;1Halt\x1b[?1049l!", "世 main!"},
		{"alternate screen left twice", "ab\x1b[?1049l\x1b[?1049lc", "abc"},
		{"reset forgets the main screen", "main\x1b[?1049h\x1bcx\x1b[?1049ly", "xy"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newTestScreen(4, 10)
			s.draw([]byte(tt.output))
			if diff := cmp.Diff(tt.want, s.text()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScreenReplies(t *testing.T) {
	var replies strings.Builder
	s := newScreen(4, 10, func(answer string) { replies.WriteString(answer) })
	s.draw([]byte("ab\x1b[6n\x1b[5n\x1b[c\x1b]11;?\x07"))
	if got, want := replies.String(), "\x1b[1;3R\x1b[0n\x1b[?62;1;6;22c\x1b]11;rgb:0000/0000/0000\x07"; got != want {
		t.Errorf("replies = %q, want %q", got, want)
	}
	if got, want := s.text(), "ab"; got != want {
		t.Errorf("text = %q, want %q", got, want)
	}
}

func TestScreenResize(t *testing.T) {
	s := newTestScreen(4, 10)
	s.draw([]byte("main\x1b[?1049h\x1b[4;10Hx"))
	s.resize(2, 3)
	if got := s.text(); got != "" {
		t.Errorf("text after shrinking = %q, want none", got)
	}
	s.resize(5, 20)
	s.draw([]byte("\x1b[?1049l\x1b[5;18Hend"))
	if got, want := s.text(), "main\n\n\n\n"+strings.Repeat(" ", 17)+"end"; got != want {
		t.Errorf("text after growing = %q, want %q", got, want)
	}
}

// hostile are outputs that make a careless screen loop for hours, panic or keep
// gigabytes.
var hostile = []string{
	"x\x1b[2147483646b", "\x1b[2147483646I", "\x1b[2147483646Z", "\x1b[2147483646X",
	"\x1b[2147483646@", "\x1b[2147483646P", "\x1b[2147483646L", "\x1b[2147483646M",
	"\x1b[2147483646S", "\x1b[2147483646T", "\x1b[2147483646;2147483646H",
	"\x1b[1;9999r\x1b[9999;1H\n\x1b[L",                   // a margin below the screen
	"\x1b[?69h\x1b[1;9999s\x1b[1;9999H\x1bH\x1b[@\x1b[P", // a margin beside it
	"\x1b]10;" + strings.Repeat(";", 1<<20) + "\x07",
	"\x1b]" + strings.Repeat("9", 100) + "\x07",
	"\x1b[" + strings.Repeat("9", 100) + "m" + strings.Repeat(";1", 100) + "m",
	"\xff\xfe\xc3\x28\xf0\x9f", "\x1bP\x90\x9c\x1b_\x1b^\x1bX",
}

func TestScreenSurvivesHostileOutput(t *testing.T) {
	for _, output := range hostile {
		s := newTestScreen(4, 10)
		s.draw([]byte(output))
		s.draw([]byte("\x1b\\\x1bc" + "alive"))
		if got := s.text(); got != "alive" {
			t.Errorf("after %.40q: text %q", output, got)
		}
	}
}

// A session waits for hours with its screen, which must not take much meanwhile.
func TestScreenTakesLittleMemory(t *testing.T) {
	const n, most = 20, 128 << 10 // 16 bytes a cell
	var screens [n]*screen
	before := heapAlloc()
	for i := range screens {
		screens[i] = newTestScreen(defaultRows, defaultCols)
		screens[i].draw([]byte("\x1b]10;" + strings.Repeat("x", 1<<20) + "\x07text"))
	}
	if each := (heapAlloc() - before) / n; each > most {
		t.Errorf("a screen takes %d bytes, more than %d", each, most)
	}
	runtime.KeepAlive(screens)
}

// What is drawn must not depend on how the output was cut into reads.
func TestScreenCutsDoNotMatter(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"a", "word ", "\r\n", "世", "é", "\x1b[A", "\x1b[3C", "\x1b[31m", "\x1b[2K",
		"\x1b[?1049h", "\x1b[?1049l", "\x1b[H", "\x1b]0;t\x07", "\x1b[2;4r", "\x1b[c",
	})
	rapid.Check(t, func(rt *rapid.T) {
		output := strings.Join(rapid.SliceOf(piece).Draw(rt, "output"), "")
		whole := newTestScreen(5, 12)
		whole.draw([]byte(output))
		cut := newTestScreen(5, 12)
		for rest := output; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "cut")
			cut.draw([]byte(rest[:n]))
			rest = rest[n:]
		}
		if diff := cmp.Diff(whole.text(), cut.text()); diff != "" {
			rt.Errorf("text of %q (-whole +cut):\n%s", output, diff)
		}
	})
}

func FuzzScreen(f *testing.F) {
	for _, output := range hostile {
		f.Add([]byte(output), uint8(4), uint8(10))
	}
	f.Add([]byte("plain\r\n\x1b[1;31mred\x1b[0m\x1b[?1049h\x1b[c"), uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, output []byte, rows, cols uint8) {
		s := newTestScreen(24, 80)
		half := len(output) / 2
		s.draw(output[:half])
		s.resize(max(1, int(rows)), max(1, int(cols)))
		s.draw(output[half:])
		checkGrid(t, s)
	})
}

func BenchmarkScreen(b *testing.B) {
	var frame bytes.Buffer // a TUI's repaint
	for y := 1; y <= 40; y++ {
		fmt.Fprintf(&frame, "\x1b[%d;1H\x1b[2K\x1b[38;5;%dm│ \x1b[1mrow %d\x1b[22m %s\x1b[0m", y, y, y,
			strings.Repeat("text ", 18))
	}
	for _, bm := range []struct {
		name   string
		output []byte
	}{
		{"yes", bytes.Repeat([]byte("y\r\n"), 1<<14)},
		{"lines", bytes.Repeat([]byte(strings.Repeat("lorem ipsum ", 9)+"\r\n"), 1<<9)},
		{"unicode", bytes.Repeat([]byte(strings.Repeat("世界é ", 20)+"\r\n"), 1<<8)},
		{"repaint", bytes.Repeat(frame.Bytes(), 8)},
	} {
		b.Run(bm.name, func(b *testing.B) {
			s := newTestScreen(defaultRows, defaultCols)
			b.SetBytes(int64(len(bm.output)))
			b.ReportAllocs()
			for b.Loop() {
				s.draw(bm.output)
			}
		})
	}
	b.Run("text", func(b *testing.B) {
		s := newTestScreen(defaultRows, defaultCols)
		s.draw(frame.Bytes())
		for b.Loop() {
			_ = s.text()
		}
	})
}

// No mix of control sequences and sizes may cost the screen.
func TestScreenSurvivesSequences(t *testing.T) {
	number := rapid.SampledFrom([]string{"", "0", "1", "2", "3", "5", "7", "40", "69", "1049", "9999", "4294967295"})
	sequence := rapid.Custom(func(rt *rapid.T) string {
		params := strings.Join(rapid.SliceOfN(number, 0, 3).Draw(rt, "params"), ";")
		prefix := rapid.SampledFrom([]string{"\x1b[", "\x1b[", "\x1b[?", "\x1b[>", "\x9b"}).Draw(rt, "prefix")
		return prefix + params + string(rune(rapid.IntRange('@', '~').Draw(rt, "final")))
	})
	escape := rapid.Custom(func(rt *rapid.T) string {
		return "\x1b" + string(rune(rapid.IntRange(' ', '~').Draw(rt, "escape")))
	})
	text := rapid.SampledFrom([]string{"a", "世", "e\u0301", "\r", "\n", "\t", "\b", "\x0e", "\x84", "\x88", "\x8d"})
	rapid.Check(t, func(rt *rapid.T) {
		s := newTestScreen(4, 10)
		for range rapid.IntRange(1, 4).Draw(rt, "sizes") {
			output := rapid.SliceOf(rapid.OneOf(sequence, escape, text)).Draw(rt, "output")
			s.draw([]byte(strings.Join(output, "")))
			rows, cols := rapid.IntRange(1, 12).Draw(rt, "rows"), rapid.IntRange(1, 30).Draw(rt, "cols")
			checkGrid(rt, s)
			s.resize(rows, cols)
			checkGrid(rt, s)
		}
	})
}

// checkGrid checks what must hold after any output.
func checkGrid(t rapid.TB, s *screen) {
	t.Helper()
	if c := s.cursor; c.x < 0 || c.x >= s.cols || c.y < 0 || c.y >= s.rows || s.top < 0 || s.top >= s.bottom || s.bottom > s.rows {
		t.Fatalf("cursor %+v and rows %d to %d on %dx%d", c, s.top, s.bottom, s.rows, s.cols)
	}
	if len(s.cells) != s.rows {
		t.Fatalf("%d rows, want %d", len(s.cells), s.rows)
	}
	for y, row := range s.cells {
		if len(row) != s.cols {
			t.Fatalf("%d cells in row %d, want %d", len(row), y, s.cols)
		}
		for x, cell := range row {
			wide := ansi.StringWidthWc(cell) == 2
			if before := x > 0 && ansi.StringWidthWc(row[x-1]) == 2; (cell == "") != before || wide && x == s.cols-1 || len(cell) > maxCell {
				t.Fatalf("row %d has half a character, or too many, at %d: %q", y, x, row)
			}
		}
	}
}

func TestResumeAfterGap(t *testing.T) {
	for _, tt := range []struct{ output, want string }{
		{"0mtail", ""},
		{"0m tail\r\nnext", "next"},
		{"5Hx\x1b[2;1Hy", "y"},
	} {
		s := newTestScreen(4, 20)
		s.draw([]byte("\x1b]0;an unfinished title"))
		s.draw(resume([]byte(tt.output)))
		if got := strings.TrimSpace(s.text()); got != tt.want {
			t.Errorf("resuming at %q draws %q, want %q", tt.output, got, tt.want)
		}
	}
}
