package terminal

import "slices"

// maxCell is how much a cell can hold, in bytes. Combining marks can be without number.
const maxCell = 32

// grid is the cells of a screen and the cursor on them.
type grid struct {
	rows, cols  int
	cells       [][]string // by row; " " where nothing is, "" behind a wide character
	cursor      cursor
	top, bottom int // the rows that scroll are from top to before bottom
}

type cursor struct {
	x, y  int
	wraps bool // it is behind the last column
}

func newGrid(rows, cols int) grid {
	return grid{rows: rows, cols: cols, cells: blankRows(rows, cols), bottom: rows}
}

func blankRows(rows, cols int) [][]string {
	cells := make([][]string, rows)
	for y := range cells {
		cells[y] = slices.Repeat([]string{" "}, cols)
	}
	return cells
}

// fit returns as much of the cells as a grid of another size can hold.
func fit(cells [][]string, rows, cols int) [][]string {
	fitted := blankRows(rows, cols)
	for y := range min(rows, len(cells)) {
		if copy(fitted[y], cells[y]) < len(cells[y]) && cells[y][cols] == "" {
			fitted[y][cols-1] = " " // half a character
		}
	}
	return fitted
}

func (g *grid) resize(rows, cols int) {
	g.cells = fit(g.cells, rows, cols)
	g.rows, g.cols, g.top, g.bottom = rows, cols, 0, rows
	g.moveTo(g.cursor.x, g.cursor.y)
}

// moveTo moves the cursor, within the grid.
func (g *grid) moveTo(x, y int) {
	g.cursor = cursor{x: min(max(x, 0), g.cols-1), y: min(max(y, 0), g.rows-1)}
}

func (g *grid) move(x, y int) { g.moveTo(g.cursor.x+x, g.cursor.y+y) }

// tab moves the cursor by n tabulators, which are at every eighth column.
func (g *grid) tab(n int) {
	x := g.cursor.x
	if n < 0 {
		x += 7
	}
	g.moveTo((x/8+n)*8, g.cursor.y)
}

// put writes a character at the cursor and moves the cursor behind it. One that is wider
// than the grid is left out.
func (g *grid) put(text string, width int) {
	if width > g.cols {
		return
	}
	if g.cursor.wraps || g.cursor.x+width > g.cols {
		g.cursor.x = 0
		g.lineFeed()
	}
	x, y := g.cursor.x, g.cursor.y
	g.erase(y, x, x+width)
	row := g.cells[y][x : x+width]
	clear(row)
	row[0] = text
	g.moveTo(x+width, y)
	g.cursor.wraps = x+width == g.cols
}

// combine adds a mark to the character before the cursor.
func (g *grid) combine(mark string) {
	row, x := g.cells[g.cursor.y], g.cursor.x
	if !g.cursor.wraps {
		x--
	}
	for x > 0 && row[x] == "" {
		x--
	}
	if x >= 0 && len(row[x])+len(mark) <= maxCell {
		row[x] += mark
	}
}

// split makes room for a change that begins or ends before column x: the character that
// it goes through is gone.
func (g *grid) split(y, x int) {
	if row := g.cells[y]; x > 0 && x < g.cols && row[x] == "" {
		row[x-1], row[x] = " ", " "
	}
}

// erase blanks the cells of a row from one column to before another.
func (g *grid) erase(y, from, to int) {
	to = min(to, g.cols)
	g.cursor.wraps = false // as in xterm; the same in insert and remove
	g.split(y, from)
	g.split(y, to)
	for x := from; x < to; x++ {
		g.cells[y][x] = " "
	}
}

// eraseLine erases what is behind the cursor (0), before it (1), or all (2).
func (g *grid) eraseLine(y, kind int) {
	switch kind {
	case 0:
		g.erase(y, g.cursor.x, g.cols)
	case 1:
		g.erase(y, 0, g.cursor.x+1)
	case 2:
		g.erase(y, 0, g.cols)
	}
}

// eraseScreen erases what is behind the cursor (0), before it (1), or all (2, 3).
func (g *grid) eraseScreen(kind int) {
	for y := range g.rows {
		switch {
		case kind < 2 && y == g.cursor.y:
			g.eraseLine(y, kind)
		case kind == 0 && y > g.cursor.y, kind == 1 && y < g.cursor.y, kind == 2, kind == 3:
			g.erase(y, 0, g.cols)
		}
	}
}

// insert makes room for n cells at the cursor.
func (g *grid) insert(n int) {
	x, y := g.cursor.x, g.cursor.y
	g.cursor.wraps = false
	n = min(n, g.cols-x)
	g.split(y, x)
	g.split(y, g.cols-n)
	row := g.cells[y]
	copy(row[x+n:], row[x:])
	g.fill(row[x : x+n])
}

// remove takes n cells out at the cursor.
func (g *grid) remove(n int) {
	x, y := g.cursor.x, g.cursor.y
	g.cursor.wraps = false
	n = min(n, g.cols-x)
	g.split(y, x)
	g.split(y, x+n)
	row := g.cells[y]
	copy(row[x:], row[x+n:])
	g.fill(row[g.cols-n:])
}

func (g *grid) fill(cells []string) {
	for x := range cells {
		cells[x] = " "
	}
}

func (g *grid) lineFeed() {
	if g.cursor.y == g.bottom-1 {
		g.scroll(g.top, 1)
		g.cursor.wraps = false
		return
	}
	g.move(0, 1)
}

func (g *grid) reverseLineFeed() {
	if g.cursor.y == g.top {
		g.scroll(g.top, -1)
		return
	}
	g.move(0, -1)
}

// shiftLines takes n lines out at the cursor, or puts -n in.
func (g *grid) shiftLines(n int) {
	if g.cursor.y >= g.top && g.cursor.y < g.bottom {
		g.scroll(g.cursor.y, n)
		g.moveTo(0, g.cursor.y)
	}
}

// scroll moves the lines from top to the end of the region up by n, or down by -n.
func (g *grid) scroll(top, n int) {
	lines := g.cells[top:g.bottom]
	n = min(max(n, -len(lines)), len(lines))
	leaving := lines[:max(n, 0)]
	if n < 0 {
		leaving = lines[len(lines)+n:]
	}
	for _, row := range leaving {
		g.fill(row)
	}
	// The blank ones go round to the other end.
	turned := (n + len(lines)) % len(lines)
	slices.Reverse(lines[:turned])
	slices.Reverse(lines[turned:])
	slices.Reverse(lines)
}

// setRegion says which rows scroll, from top to before bottom.
func (g *grid) setRegion(top, bottom int) {
	if bottom < 1 || bottom > g.rows {
		bottom = g.rows
	}
	if top < bottom-1 {
		g.top, g.bottom = top, bottom
		g.moveTo(0, 0)
	}
}
