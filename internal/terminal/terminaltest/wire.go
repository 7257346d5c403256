package terminaltest

import (
	"bufio"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Wire is a FIFO through which a script tells the test what it does. It ends when
// the last process that has it open is dead, which is how tests learn of deaths.
type Wire struct {
	Path  string // of the FIFO
	lines chan string
}

// NewWire makes a wire that is gone when the test ends.
func NewWire(t *testing.T) *Wire {
	t.Helper()
	w := &Wire{Path: filepath.Join(t.TempDir(), "wire"), lines: make(chan string)}
	if err := syscall.Mkfifo(w.Path, 0o600); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(w.lines)
		f, err := os.Open(w.Path) // returns when a writer comes
		if err != nil {
			return
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			w.lines <- s.Text()
		}
	})
	t.Cleanup(func() {
		// Releases the reader if no script ever opened the wire.
		if f, err := os.OpenFile(w.Path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			f.Close()
		}
		for range w.lines {
		}
		reading.Wait()
	})
	return w
}

// Line returns the next line, and false at the end.
func (w *Wire) Line(t *testing.T) (string, bool) {
	t.Helper()
	select {
	case line, ok := <-w.lines:
		return line, ok
	case <-time.After(Patience):
		t.Fatal("nothing came over the wire")
		return "", false
	}
}

// Expect wants a next line, and that one.
func (w *Wire) Expect(t *testing.T, want string) {
	t.Helper()
	if line, ok := w.Line(t); !ok || line != want {
		t.Fatalf("wire: got %q, %v; want %q", line, ok, want)
	}
}

// ExpectEnd wants the end.
func (w *Wire) ExpectEnd(t *testing.T) {
	t.Helper()
	if line, ok := w.Line(t); ok {
		t.Fatalf("wire: got %q, want the end", line)
	}
}
