package terminal

import (
	"bufio"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// wire is a FIFO through which a script tells the test what it does. It ends when
// the last process that has it open is dead, which is how tests learn of deaths.
type wire struct {
	path  string
	lines chan string
}

func newWire(t *testing.T) *wire {
	t.Helper()
	w := &wire{path: filepath.Join(t.TempDir(), "wire"), lines: make(chan string)}
	if err := syscall.Mkfifo(w.path, 0o600); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(w.lines)
		f, err := os.Open(w.path) // returns when a writer comes
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
		if f, err := os.OpenFile(w.path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			f.Close()
		}
		for range w.lines {
		}
		reading.Wait()
	})
	return w
}

// line returns the next line, and false at the end.
func (w *wire) line(t *testing.T) (string, bool) {
	t.Helper()
	select {
	case line, ok := <-w.lines:
		return line, ok
	case <-time.After(patience):
		t.Fatal("nothing came over the wire")
		return "", false
	}
}

func (w *wire) expect(t *testing.T, want string) {
	t.Helper()
	if line, ok := w.line(t); !ok || line != want {
		t.Fatalf("wire: got %q, %v; want %q", line, ok, want)
	}
}

func (w *wire) expectEnd(t *testing.T) {
	t.Helper()
	if line, ok := w.line(t); ok {
		t.Fatalf("wire: got %q, want the end", line)
	}
}
