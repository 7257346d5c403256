package bench

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// segment is a part of a turn's bar, up to the time it ends with.
type segment struct {
	name  string
	class string
	end   func(Turn) time.Time
	model bool // the time is the model's own
}

// segments are the parts of a turn, one after the other. A part whose end is not known
// falls to the next one.
func segments() []segment {
	return []segment{
		{"queued", "queued", func(t Turn) time.Time { return t.Admitted }, false},
		{"boot", "boot", func(t Turn) time.Time { return t.Taken }, false},
		{"submit", "submit", func(t Turn) time.Time { return t.Submitted }, false},
		{"model, to its first line", "model", func(t Turn) time.Time { return t.Line }, true},
		{"first line", "first", func(t Turn) time.Time { return t.First }, false},
		{"model, streaming", "model", func(t Turn) time.Time {
			if t.Last.IsZero() {
				return t.Stopped
			}
			return t.Last
		}, true},
		{"tail", "tail", func(t Turn) time.Time { return t.Done }, false},
	}
}

// lengths are the medians of the segments over turns, in ms. Without the model's own
// times the first line's segment holds the model's start too.
func lengths(turns []Turn) []float64 {
	list := make([]float64, len(segments()))
	samples := make([][]float64, len(list))
	for _, t := range turns {
		from := t.Request
		for i, s := range segments() {
			if ms, ok := between(from, s.end(t)); ok {
				samples[i] = append(samples[i], max(ms, 0))
				from = s.end(t)
			}
		}
	}
	for i := range list {
		list[i] = figureOf(samples[i]).Median
	}
	return list
}

// The measures of the picture, in pixels.
const (
	svgWidth  = 860
	svgMargin = 20
	svgLeft   = 110 // where bars begin
	svgTop    = 64
	svgBar    = 30
	svgRow    = 62
)

// svgStyle names each colour twice, without variables, which not every viewer knows.
const svgStyle = `<style>
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
.title { font-size: 16px; font-weight: 600; } .soft { fill: #59636e; font-size: 12px; }
.value { font-size: 12px; text-anchor: middle; fill: #ffffff; } .value.model { fill: #1f2328; }
.paper { fill: #ffffff; } .axis { stroke: #d1d9e0; }
.queued { fill: #59636e; } .boot { fill: #bc4c00; } .submit { fill: #7d4e00; } .first { fill: #8250df; } .tail { fill: #0969da; }
rect.model { fill: url(#own); } .own { fill: #dafbe1; } .hatch { stroke: #aceebb; stroke-width: 4; }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc; } .soft { fill: #9198a1; } .value { fill: #0d1117; } .value.model { fill: #f0f6fc; }
.paper { fill: #0d1117; } .axis { stroke: #3d444d; }
.queued { fill: #9198a1; } .boot { fill: #f0883e; } .submit { fill: #e3b341; } .first { fill: #bc8cff; } .tail { fill: #58a6ff; }
.own { fill: #12361f; } .hatch { stroke: #1a4d2b; }
}
</style>
<defs><pattern id="own" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect class="own" width="8" height="8"/><line class="hatch" x1="0" y1="0" x2="0" y2="8"/></pattern></defs>
`

// WriteSVG draws a bar a way: the medians of a turn's stages one after the other. The
// picture needs nothing from outside, and is for light and dark.
func (r *Report) WriteSVG(w io.Writer) error {
	ways := r.ways()
	bottom := svgTop + svgRow*len(ways)
	height := bottom + 92
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img"`, svgWidth, height)
	b.WriteString(` aria-label="Where the time of a turn goes">` + "\n")
	b.WriteString(svgStyle)
	fmt.Fprintf(&b, `<rect class="paper" width="%d" height="%d"/>`+"\n", svgWidth, height)
	fmt.Fprintf(&b, `<text class="title" x="%d" y="30">Where the time of a turn goes, in ms</text>`+"\n", svgMargin)
	fmt.Fprintf(&b, `<text class="soft" x="%d" y="50">Claude Code %s, %s model, medians of each stage, %d cores, load average %s → %s</text>`+"\n",
		svgMargin, r.CLI, r.Upstream, r.Cores, load(r.LoadStart), load(r.LoadEnd))
	longest := 1.0
	for _, way := range ways {
		longest = max(longest, sum(lengths(r.turns(way))))
	}
	for i, way := range ways {
		r.appendBar(&b, way, svgTop+svgRow*i, float64(svgWidth-svgLeft-svgMargin)/longest)
	}
	r.appendLegend(&b, bottom)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// appendBar draws one way; scale is in pixels a millisecond.
func (r *Report) appendBar(b *strings.Builder, way string, y int, scale float64) {
	turns := r.turns(way)
	parts := lengths(turns)
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text><text class="soft" x="%[1]d" y="%[4]d">n = %[5]d</text>`+"\n", svgMargin, y+14, way, y+30, len(turns))
	x, own := float64(svgLeft), 0.0
	for i, s := range segments() {
		width := parts[i] * scale
		if s.model {
			own += parts[i]
		}
		if width <= 0 {
			continue
		}
		fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d"><title>%s: %s ms</title></rect>`+"\n",
			s.class, x, y, width, svgBar, s.name, number(parts[i]))
		if width > 32 {
			class := "value"
			if s.model {
				class = "value model"
			}
			fmt.Fprintf(b, `<text class="%s" x="%.1f" y="%d">%s</text>`+"\n", class, x+width/2, y+20, whole(parts[i]))
		}
		x += width
	}
	note := fmt.Sprintf("%s ms in all", whole(sum(parts)))
	if !r.scripted() {
		note += "; the first line's part holds the model's start"
	} else {
		note += fmt.Sprintf(", the model's own %s, beyond it %s", whole(own), whole(sum(parts)-own))
	}
	fmt.Fprintf(b, `<text class="soft" x="%d" y="%d">%s</text>`+"\n", svgLeft, y+svgBar+15, note)
}

// appendLegend names the colours; the model's two parts have one.
func (r *Report) appendLegend(b *strings.Builder, y int) {
	fmt.Fprintf(b, `<line class="axis" x1="%d" y1="%d" x2="%d" y2="%[2]d"/>`+"\n", svgMargin, y+6, svgWidth-svgMargin)
	x := svgMargin
	for _, item := range []struct {
		class, text string
		width       int
	}{
		{"queued", "queued", 78},
		{"boot", "boot: until the CLI has the conversation", 270},
		{"submit", "submit: until it asks the model", 214},
		{"model", "the model's own time", 0},
		{"first", "first: from the model's first line to the client", 310},
		{"tail", "tail: from the last byte to the end, verified", 0},
	} {
		fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="12" height="12"/>`, item.class, x, y+20)
		fmt.Fprintf(b, `<text class="soft" x="%d" y="%d">%s</text>`+"\n", x+17, y+30, item.text)
		x += item.width
		if item.width == 0 {
			x, y = svgMargin, y+24
		}
	}
	note := "Medians of stages do not add up to the median of the whole."
	if len(r.Doubts()) > 0 {
		note += " Not all figures of this run are to be trusted: see its table."
	}
	fmt.Fprintf(b, `<text class="soft" x="%d" y="%d">%s</text>`+"\n", svgMargin, y+30, note)
}

// scripted reports whether the model's own times are known.
func (r *Report) scripted() bool {
	for _, t := range r.Turns {
		if !t.Line.IsZero() {
			return true
		}
	}
	return false
}

func whole(ms float64) string { return thousands(int64(ms + 0.5)) }

func sum(list []float64) float64 {
	total := 0.0
	for _, v := range list {
		total += v
	}
	return total
}
