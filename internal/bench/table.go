package bench

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const labelWidth = 42 // of a table's first column

// WriteTable writes the report for people, at most 100 columns wide.
func (r *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Claude Code %s, %s model, %d cores, load average %s → %s.\n\n", r.CLI, r.Upstream, r.Cores, load(r.LoadStart), load(r.LoadEnd))
	b.WriteString(pad("", labelWidth))
	for _, way := range r.ways() {
		fmt.Fprintf(&b, "%19s", fmt.Sprintf("%s, n = %d", way, len(r.turns(way))))
	}
	for _, g := range groups() {
		r.appendGroup(&b, g)
	}
	b.WriteByte('\n')
	if doubts := r.Doubts(); len(doubts) > 0 {
		b.WriteString("\nNot to be trusted:\n")
		for _, doubt := range doubts {
			b.WriteString("  " + doubt + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// appendGroup appends the rows that have figures.
func (r *Report) appendGroup(b *strings.Builder, g group) {
	titled := false
	for _, q := range g.quantities {
		row, any := pad("  "+q.label, labelWidth), false
		for _, way := range r.ways() {
			turns := r.turns(way)
			f := figureOf(q.samples(turns))
			any = any || f.N > 0
			row += cell(f, q.partial(f, turns))
		}
		if !any {
			continue
		}
		if !titled {
			titled = true
			b.WriteString("\n\n" + pad(g.title, labelWidth))
			for range r.ways() {
				fmt.Fprintf(b, "%10s%9s", "median", "p95")
			}
		}
		b.WriteString("\n" + strings.TrimRight(row, " "))
	}
}

func cell(f Figure, partial bool) string {
	if f.N == 0 {
		return fmt.Sprintf("%10s%9s", "–", "–")
	}
	mark := ""
	if f.Wide {
		mark = "~"
	}
	if partial {
		mark += "*"
	}
	return fmt.Sprintf("%10s%9s", mark+number(f.Median), number(f.P95))
}

// number is a figure with as many digits as say something.
func number(v float64) string {
	switch {
	case v < 10 && v > -10:
		return fmt.Sprintf("%.2f", v)
	case v < 100 && v > -100:
		return fmt.Sprintf("%.1f", v)
	}
	return thousands(int64(v + 0.5))
}

// thousands writes a number that is not negative with a comma before each three digits.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func load(average float64) string {
	if average < 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.2f", average)
}

// pad fills s up with spaces to a width in characters.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(width-utf8.RuneCountInString(s), 0))
}
