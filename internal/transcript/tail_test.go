package transcript

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func appendTo(path, data string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(data)
	return err
}

func appendFile(t rapid.TB, path, data string) {
	t.Helper()
	if err := appendTo(path, data); err != nil {
		t.Fatal(err)
	}
}

// drain returns the lines there are and the error that ended them.
func drain(tail *tail) (lines []string, err error) {
	for {
		line, _, err := tail.next()
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(line))
	}
}

func wantLines(t *testing.T, tail *tail, wantErr error, want ...string) {
	t.Helper()
	got, err := drain(tail)
	if strings.Join(got, "|") != strings.Join(want, "|") || len(got) != len(want) {
		t.Errorf("lines = %.80q, want %.80q", got, want)
	}
	if !errors.Is(err, wantErr) {
		t.Errorf("error = %v, want %v", err, wantErr)
	}
}

func startTail(t *testing.T, offset int64, maxLine int) (*tail, string) {
	path := filepath.Join(t.TempDir(), "t.jsonl")
	tail := newTail(path, offset, maxLine)
	t.Cleanup(tail.close)
	return tail, path
}

func TestTailHalfLines(t *testing.T) {
	tail, path := startTail(t, 0, 100)
	wantLines(t, tail, io.EOF)
	appendFile(t, path, "")
	wantLines(t, tail, io.EOF)
	appendFile(t, path, "one")
	wantLines(t, tail, io.EOF)
	appendFile(t, path, "\ntwo \xf0\x9f")
	wantLines(t, tail, io.EOF, "one")
	if tail.offset() != 4 {
		t.Errorf("offset = %d, want 4", tail.offset())
	}
	appendFile(t, path, "\x98\x80\n\nthree\n")
	wantLines(t, tail, io.EOF, "two 😀", "", "three")
	wantLines(t, tail, io.EOF)
}

func TestTailOffset(t *testing.T) {
	tail, path := startTail(t, 4, 100)
	appendFile(t, path, "one\ntwo\n")
	line, at, err := tail.next()
	if string(line) != "two" || at != 4 || err != nil {
		t.Errorf("next = %q, %d, %v, want two, 4", line, at, err)
	}
}

func TestTailShorterThanOffset(t *testing.T) {
	tail, path := startTail(t, 5, 100)
	appendFile(t, path, "one\n")
	wantLines(t, tail, ErrRewritten)
}

func TestTailLongLines(t *testing.T) {
	tail, path := startTail(t, 0, 2*keepBuffer)
	long := strings.Repeat("é", keepBuffer)
	appendFile(t, path, long+"\nshort\n"+long[:chunkSize])
	wantLines(t, tail, io.EOF, long, "short")
	if cap(tail.buf) > keepBuffer {
		t.Errorf("buffer of %d bytes was kept", cap(tail.buf))
	}
	appendFile(t, path, long[chunkSize:]+"\n")
	wantLines(t, tail, io.EOF, long)
}

func TestTailLineTooLong(t *testing.T) {
	for _, end := range []string{"", "\n", "\nx\n"} {
		tail, path := startTail(t, 0, 10)
		appendFile(t, path, "0123456789\n")
		wantLines(t, tail, io.EOF, "0123456789")
		appendFile(t, path, "01234567890"+end)
		wantLines(t, tail, ErrLineTooLong)
	}
}

func TestTailTruncated(t *testing.T) {
	tail, path := startTail(t, 0, 100)
	appendFile(t, path, "one\ntwo\n")
	wantLines(t, tail, io.EOF, "one", "two")
	if err := os.Truncate(path, 4); err != nil {
		t.Fatal(err)
	}
	wantLines(t, tail, ErrRewritten)
}

// TestTailRewritten takes a line out of the file and lets it grow past where the reader
// was before the reader looks again: neither size nor identity tells.
func TestTailRewritten(t *testing.T) {
	tail, path := startTail(t, 0, 100)
	appendFile(t, path, "one\ntwo\nthree\n")
	wantLines(t, tail, io.EOF, "one", "two", "three")
	if err := os.Truncate(path, 4); err != nil {
		t.Fatal(err)
	}
	appendFile(t, path, "three\nfour\nfive\nsix\n")
	wantLines(t, tail, ErrRewritten)
}

// TestTailRewrittenBeforeOffset: nothing has been read yet, but what stood before the
// offset is no longer what the caller wrote.
func TestTailRewrittenBeforeOffset(t *testing.T) {
	tail, path := startTail(t, 8, 100)
	appendFile(t, path, "one\ntwo\n")
	wantLines(t, tail, io.EOF)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	appendFile(t, path, "two\nthree\nfour\n")
	wantLines(t, tail, ErrRewritten)
}

func TestTailReplaced(t *testing.T) {
	tail, path := startTail(t, 0, 100)
	appendFile(t, path, "one\n")
	wantLines(t, tail, io.EOF, "one")
	appendFile(t, path, "two\n")
	appendFile(t, path+".new", "one\ntwo\nthree\n")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	wantLines(t, tail, ErrReplaced, "two")
}

func TestTailRemoved(t *testing.T) {
	tail, path := startTail(t, 0, 100)
	appendFile(t, path, "one\ntw")
	wantLines(t, tail, io.EOF, "one")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wantLines(t, tail, ErrReplaced)
}

// TestTailPieces: however a file grows, its lines are the same, each byte is read for
// them once, and every line is where it is said to be.
func TestTailPieces(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringMatching(`[a-zé😀 \\]{0,40}`)
		want := rapid.SliceOf(line).Draw(t, "lines")
		data := strings.Join(append(want, "rest"), "\n")
		path := filepath.Join(dir, "t.jsonl")
		os.Remove(path)
		tail := newTail(path, 0, 1000)
		defer tail.close()
		tail.chunk = make([]byte, markSize+rapid.IntRange(1, 50).Draw(t, "chunk"))
		var got []string
		for rest := data; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			appendFile(t, path, rest[:n])
			rest = rest[n:]
			for {
				line, at, err := tail.next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if !strings.HasPrefix(data[at:], string(line)+"\n") {
					t.Fatalf("line %q is not at %d", line, at)
				}
				got = append(got, string(line))
			}
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
			t.Fatalf("lines = %q, want %q", got, want)
		}
		if tail.pos != int64(len(data)) {
			t.Fatalf("pos = %d, want %d", tail.pos, len(data))
		}
	})
}
