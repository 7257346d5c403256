package terminal

import (
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// guard puts limits on what a program can do to the emulator. x/vt calls the handlers
// registered last first, and goes on to its own one if they return false; changes to
// the parameters reach it. The handlers run inside draw, with mu held.
func (s *screen) guard() {
	// A size of 0 turns history off, but x/vt's setters take 0 for the default of
	// 10,000 lines.
	*s.emu.Scrollback() = vt.Scrollback{}

	// Counts and positions: x/vt repeats some operations as often as it is told, up
	// to 2^31 times, and does not check margins against the screen.
	for _, final := range "@ABCDEFGHILMPSTXZ`adef" {
		s.limit(int(final), func() int { return max(s.rows, s.cols) })
	}
	s.limit('r', func() int { return s.rows })
	s.limit('s', func() int { return s.cols })
	s.limit('b', func() int { return s.cols })
	for _, final := range "hl" {
		s.limit(int(final), func() int { return maxMode })
		s.limit(ansi.Command('?', 0, byte(final)), func() int { return maxMode })
	}

	// The alternate screen has a history of its own, which cannot be turned off. So
	// x/vt is never told to switch; see showAlternate.
	s.emu.RegisterCsiHandler(ansi.Command('?', 0, 'h'), func(params ansi.Params) bool {
		s.switchScreens(params, true)
		return false
	})
	s.emu.RegisterCsiHandler(ansi.Command('?', 0, 'l'), func(params ansi.Params) bool {
		s.switchScreens(params, false)
		return false
	})
	s.emu.RegisterEscHandler('c', func() bool { // full reset
		s.hidden = nil
		return false
	})

	// Titles, the working directory and links, up to 4 MB each, are kept (links once
	// per cell) and of no use here.
	for _, cmd := range []int{0, 1, 2, 7, 8} {
		s.emu.RegisterOscHandler(cmd, func([]byte) bool { return true })
	}
	for _, cmd := range []int{10, 11, 12, 110, 111, 112} {
		s.emu.RegisterOscHandler(cmd, func(data []byte) bool { return len(data) > maxColorData })
	}
}

// limit lowers every parameter of a control sequence to at most top.
func (s *screen) limit(cmd int, top func() int) {
	s.emu.RegisterCsiHandler(cmd, func(params ansi.Params) bool {
		most := top()
		for i, p := range params {
			// -1 stands for a parameter that was left out; it stays so.
			if p.Param(-1) > most {
				params[i] = ansi.Param(most)
			}
		}
		return false
	})
}

// snapshot is the content of a screen.
type snapshot struct {
	rows, cols int
	cells      []uv.Cell // row by row
}

// switchScreens replaces switches to and from the alternate screen among the modes
// being set (on) or reset.
func (s *screen) switchScreens(params ansi.Params, on bool) {
	const unknownMode = maxMode
	for i, p := range params {
		switch p.Param(0) {
		case 47, 1047, 1049:
			params[i] = unknownMode
			if on != (s.hidden != nil) {
				s.showAlternate(on)
				// x/vt then saves or restores the cursor. It cannot be homed from
				// here, but programs that use the alternate screen place it first.
				params[i] = ansi.Param(ansi.ModeSaveCursor.Mode())
			}
		}
	}
}

// showAlternate clears the screen and remembers what was on it, or brings that back.
func (s *screen) showAlternate(on bool) {
	if !on {
		s.restore(s.hidden)
		s.hidden = nil
		return
	}
	s.hidden = &snapshot{rows: s.rows, cols: s.cols, cells: make([]uv.Cell, 0, s.rows*s.cols)}
	for y := range s.rows {
		for x := range s.cols {
			s.hidden.cells = append(s.hidden.cells, *s.emu.CellAt(x, y))
			s.emu.SetCell(x, y, nil)
		}
	}
}

// restore draws a snapshot. The screen may have been resized since.
func (s *screen) restore(from *snapshot) {
	for y := range s.rows {
		for x := range s.cols {
			s.emu.SetCell(x, y, nil)
		}
	}
	for y := range min(s.rows, from.rows) {
		for x := 0; x < min(s.cols, from.cols); {
			cell := &from.cells[y*from.cols+x]
			s.emu.SetCell(x, y, cell)
			// Setting a cell that a wide character covers would erase the character.
			x += max(cell.Width, 1)
		}
	}
}
