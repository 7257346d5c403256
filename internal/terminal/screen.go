package terminal

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

const (
	// drawSize is how much output is drawn at once, in bytes. It bounds how long the
	// screen is locked.
	drawSize = 4 << 10

	// maxString is the most that is kept of a string in a sequence (a title, a link, a
	// query of a colour), in bytes. None but a query matters here.
	maxString = 64
)

// screen is what the program has drawn, as text alone: colours, styles, titles and links
// leave no trace. It takes anything: no sequence costs more than the size of the screen.
type screen struct {
	reply func(string) // gets the answers to queries, and must not wait

	mu     sync.Mutex
	parser *ansi.Parser // guarded by mu, as are all below
	grid
	hidden  [][]string // the rows of the main screen while the alternate one is shown
	saved   cursor
	printed string // the last character, which can be told to be repeated
}

// newScreen makes an empty screen.
func newScreen(rows, cols int, reply func(string)) *screen {
	s := &screen{reply: reply, parser: ansi.NewParser(), grid: newGrid(rows, cols)}
	s.parser.SetDataSize(maxString)
	s.parser.SetHandler(ansi.Handler{
		Print: s.print, Execute: s.execute, HandleEsc: s.escape, HandleCsi: s.control, HandleOsc: s.command,
	})
	return s
}

// draw shows output on the screen; p should have at most drawSize bytes.
func (s *screen) draw(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range p {
		s.parser.Advance(b)
	}
}

func (s *screen) resize(rows, cols int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grid.resize(rows, cols)
}

// text returns the visible text as Terminal.Screen describes it.
func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all strings.Builder
	blank := 0 // empty lines not yet written
	for _, row := range s.cells {
		if text := strings.TrimRight(strings.Join(row, ""), " "); text != "" {
			all.WriteString(strings.Repeat("\n", blank))
			all.WriteString(text)
			blank = 0
		}
		blank++
	}
	return all.String()
}

func (s *screen) print(r rune) {
	if r < utf8.RuneSelf {
		s.printed = string([]byte{byte(r)}) // unlike string(r), without an allocation
		s.put(s.printed, 1)
		return
	}
	text := string(r)
	width := ansi.StringWidthWc(text)
	if width == 0 {
		s.combine(text)
		return
	}
	s.printed = text
	s.put(text, width)
}

func (s *screen) execute(b byte) {
	switch b {
	case '\b':
		s.move(-1, 0)
	case '\t':
		s.tab(1)
	case '\n', '\v', '\f', 0x84: // IND
		s.lineFeed()
	case '\r':
		s.cursor.x, s.cursor.wraps = 0, false
	case 0x85: // NEL
		s.execute('\r')
		s.lineFeed()
	case 0x8d: // RI
		s.reverseLineFeed()
	}
}

func (s *screen) escape(cmd ansi.Cmd) {
	switch cmd {
	case 'D', 'E', 'M':
		s.execute(byte(cmd) + 0x40) // the same as one byte
	case '7':
		s.saved = s.cursor
	case '8':
		s.moveTo(s.saved.x, s.saved.y)
	case 'c':
		s.grid = newGrid(s.rows, s.cols)
		s.hidden, s.saved = nil, cursor{}
	}
}

// control takes a CSI sequence: those that move the cursor here, the others in edit and
// report.
func (s *screen) control(cmd ansi.Cmd, params ansi.Params) {
	// Where a number counts or is a position, 0 is 1, and nothing is larger than the screen.
	n := func(i int) int {
		p, _, _ := params.Param(i, 1)
		return min(max(p, 1), max(s.rows, s.cols))
	}
	switch cmd {
	case 'A':
		s.move(0, -n(0))
	case 'B', 'e':
		s.move(0, n(0))
	case 'C', 'a':
		s.move(n(0), 0)
	case 'D':
		s.move(-n(0), 0)
	case 'E':
		s.moveTo(0, s.cursor.y+n(0))
	case 'F':
		s.moveTo(0, s.cursor.y-n(0))
	case 'G', '`':
		s.moveTo(n(0)-1, s.cursor.y)
	case 'd':
		s.moveTo(s.cursor.x, n(0)-1)
	case 'H', 'f':
		s.moveTo(n(1)-1, n(0)-1)
	case 'I':
		s.tab(n(0))
	case 'Z':
		s.tab(-n(0))
	case 's':
		s.saved = s.cursor
	case 'u':
		s.moveTo(s.saved.x, s.saved.y)
	default:
		first, _, _ := params.Param(0, 0)
		s.edit(cmd, n(0), first)
		s.report(cmd, first)
		for _, p := range params {
			s.setMode(cmd, p.Param(0))
		}
		if last, _, _ := params.Param(1, s.rows); cmd == 'r' {
			s.setRegion(n(0)-1, last)
		}
	}
}

// edit changes cells: n of them, or those that a kind says.
func (s *screen) edit(cmd ansi.Cmd, n, kind int) {
	x, y := s.cursor.x, s.cursor.y
	switch cmd {
	case '@':
		s.insert(n)
	case 'P':
		s.remove(n)
	case 'X':
		s.erase(y, x, x+n)
	case 'K':
		s.eraseLine(y, kind)
	case 'J':
		s.eraseScreen(kind)
	case 'L':
		s.shiftLines(-n)
	case 'M':
		s.shiftLines(n)
	case 'S':
		s.scroll(s.top, n)
	case 'T':
		s.scroll(s.top, -n)
	case 'b':
		for range n {
			if s.printed != "" {
				s.put(s.printed, ansi.StringWidthWc(s.printed))
			}
		}
	}
}

// report answers a query.
func (s *screen) report(cmd ansi.Cmd, kind int) {
	switch {
	case cmd == 'c' && kind == 0:
		s.reply(ansi.PrimaryDeviceAttributes(62, 1, 6, 22)) // a VT220 in colour
	case cmd == 'n' && kind == 5:
		s.reply("\x1b[0n") // ready
	case cmd == 'n' && kind == 6:
		s.reply(ansi.CursorPositionReport(s.cursor.y+1, s.cursor.x+1))
	}
}

// command takes an OSC sequence. A program may ask for the background's colour to choose
// its own.
func (s *screen) command(_ int, data []byte) {
	if string(data) == "11;?" {
		s.reply(ansi.SetBackgroundColor("rgb:0000/0000/0000"))
	}
}

// setMode switches between the main and the alternate screen; no other mode matters.
func (s *screen) setMode(cmd ansi.Cmd, mode int) {
	on := cmd == ansi.Cmd(ansi.Command('?', 0, 'h'))
	if !on && cmd != ansi.Cmd(ansi.Command('?', 0, 'l')) || mode != 47 && mode != 1047 && mode != 1049 || on == (s.hidden != nil) {
		return
	}
	if on {
		s.saved, s.hidden = s.cursor, s.cells
		s.cells = blankRows(s.rows, s.cols)
		return
	}
	s.cells, s.hidden = fit(s.hidden, s.rows, s.cols), nil // it may have another size
	s.moveTo(s.saved.x, s.saved.y)
}
