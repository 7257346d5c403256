package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/charmbracelet/x/vt"
)

const (
	// drawSize is how much output is drawn at once, in bytes. It bounds how long the
	// screen is locked and, because the emulator ends a character at the end of each
	// write, how long a pile of combining marks one cell can hold.
	drawSize = 4 << 10

	// maxMode is above every terminal mode in use; the emulator remembers each one
	// it is told, whether it knows it or not.
	maxMode = 9999

	// maxColorData is above the length of every colour specification, in bytes.
	maxColorData = 128
)

// screen is what the program has drawn. The emulator (x/vt 0.1.0) trusts its input:
// some sequences make it loop for ever, panic, or keep what it is given without
// bound. guard.go disarms those that are known, and a panic that happens
// nevertheless costs the screen and nothing else.
type screen struct {
	// input is the emulator's reply pipe, safe for concurrent use. The emulator's
	// own Close is not: it races with its Read.
	input io.Closer
	reply io.Reader

	mu         sync.Mutex
	emu        *vt.Emulator // guarded by mu, all but its Read
	rows, cols int          // guarded by mu
	hidden     *snapshot    // guarded by mu: the main screen while the alternate one is shown
	err        error        // guarded by mu: why the screen is unavailable
}

func newScreen(rows, cols int) *screen {
	emu := vt.NewEmulator(cols, rows)
	s := &screen{
		input: emu.InputPipe().(io.Closer),
		reply: emu,
		emu:   emu,
		rows:  rows,
		cols:  cols,
	}
	s.guard()
	return s
}

// draw shows output on the screen; p should have at most drawSize bytes. A query in it
// blocks until its answer is taken by readReply.
func (s *screen) draw(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	defer s.contain()
	_, _ = s.emu.Write(p) // fails only after the emulator's Close, which is not used
}

// contain, when deferred with mu held, turns a panic of the emulator into s.err.
func (s *screen) contain() {
	if r := recover(); r != nil {
		s.err = fmt.Errorf("%w: emulator panic: %v", ErrScreen, r)
		s.emu, s.hidden = nil, nil
	}
}

// readReply waits for an answer to a query. It returns io.EOF after endReplies.
func (s *screen) readReply(p []byte) (int, error) {
	return s.reply.Read(p)
}

// endReplies ends readReply; queries drawn later get no answer.
func (s *screen) endReplies() {
	_ = s.input.Close()
}

func (s *screen) resize(rows, cols int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	defer s.contain()
	s.rows, s.cols = rows, cols
	s.emu.Resize(cols, rows)
}

func (s *screen) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// text returns the visible text as Terminal.Screen describes it.
func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return ""
	}
	defer s.contain()
	var all, line strings.Builder
	blank := 0 // empty lines not yet written
	for y := range s.rows {
		line.Reset()
		for x := range s.cols {
			// The cells that a wide character covers have no content.
			line.WriteString(s.emu.CellAt(x, y).Content)
		}
		text := strings.TrimRight(line.String(), " ")
		if text != "" {
			all.WriteString(strings.Repeat("\n", blank))
			all.WriteString(text)
			blank = 0
		}
		blank++
	}
	return all.String()
}
