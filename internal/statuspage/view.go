package statuspage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ocp/internal/server"
)

// view is what the templates show.
type view struct {
	server.Status
	Since time.Time

	Rows  []row
	More  int           // running turns that are not shown
	Scale time.Duration // of the rows' bars: their whole width

	Stages []server.Stage // in their order, for the legend
	Chart  chart

	Outcomes []outcome
	Last     *lastFailure

	Total totals
	Users []userRow
}

// row is a turn.
type row struct {
	server.Trace
	Running bool
	Label   string // the stage that it is in, or its outcome
	Total   time.Duration
	ToFirst time.Duration // 0 without text
	Bars    []bar
	Words   string // the bars for who does not see them
	Cut     bool   // the bars are longer than the scale
}

// bar is a stage of a turn on the scale, of which all is width.
type bar struct {
	Stage    server.Stage
	From, To int
	Took     time.Duration
	Failed   bool
}

// Width is a bar's own, never nothing.
func (b bar) Width() int { return max(b.To-b.From, 2) }

// width is that of all drawings, in units of their own.
const width = 1000

// chart is the mean latency of each minute, as stacked bars.
type chart struct {
	From, To time.Time
	Most     time.Duration // the height
	Bars     []column
	Turns    int
}

// column is a part of a minute's bar.
type column struct {
	Stage  server.Stage
	X, Y   int
	Height int
	Words  string
}

const (
	chartHeight = 200
	columnWidth = 16 // of a chart of minutes times that
)

type outcome struct {
	Kind  string
	Count int64
	explanation
}

type lastFailure struct {
	server.Failure
	explanation
}

type userRow struct {
	Key, Model string
	Turns      int
	Failed     int
	Input      int
	Cached     int
	Output     int
	Estimated  bool
}

func (h *history) view(now time.Time, status server.Status) view {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := view{Status: status, Since: now.Add(-time.Duration(status.UptimeSeconds) * time.Second), Stages: server.StageList, Total: h.total}
	v.addRows(now, h.running, h.over)
	v.Chart = h.chart(now)
	for kind, n := range status.Turns {
		if kind != "ok" {
			v.Outcomes = append(v.Outcomes, outcome{kind, n, explanations[kind]})
		}
	}
	slices.SortFunc(v.Outcomes, func(a, b outcome) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind))
	})
	if last := status.LastFailure; last != nil {
		v.Last = &lastFailure{*last, explanations[last.Kind]}
	}
	for who, u := range h.usage {
		v.Users = append(v.Users, userRow{cmp.Or(who.key, "no name"), who.model, u.turns, u.failed, u.input, u.cached, u.output, u.estimated})
	}
	slices.SortFunc(v.Users, func(a, b userRow) int {
		return cmp.Or(cmp.Compare(b.Turns, a.Turns), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Model, b.Model))
	})
	return v
}

// addRows makes rows of turns, the newest first and those that run before all others.
func (v *view) addRows(now time.Time, running map[string]server.Trace, over []server.Trace) {
	traces := slices.SortedFunc(maps.Values(running), func(a, b server.Trace) int {
		return cmp.Or(b.Begun.Compare(a.Begun), cmp.Compare(a.ID, b.ID))
	})
	if v.More = len(traces) - mostTurns; v.More > 0 { // those that wait longest are the ones to see
		traces = traces[v.More:]
	}
	for _, t := range slices.Backward(over) {
		traces = append(traces, t)
	}
	for _, t := range traces {
		v.Rows = append(v.Rows, newRow(now, t))
	}
	v.Scale = scale(v.Rows)
	for i := range v.Rows {
		v.Rows[i].draw(now, v.Scale)
	}
}

func newRow(now time.Time, t server.Trace) row {
	r := row{Trace: t, Running: t.Outcome == "", Label: t.Outcome}
	end := t.Answered
	if r.Running {
		end = now
	}
	r.Total = end.Sub(t.Begun)
	if !t.First.IsZero() {
		r.ToFirst = t.First.Sub(t.Begun)
	}
	return r
}

// draw puts the row's stages onto the scale.
func (r *row) draw(now time.Time, scale time.Duration) {
	spans := r.Spans(now)
	var words []string
	for i, s := range spans {
		at := func(t time.Time) int { return min(int(int64(width)*int64(t.Sub(r.Begun))/int64(scale)), width) }
		last := i == len(spans)-1
		b := bar{Stage: s.Stage, From: at(s.From), To: at(s.To), Took: s.To.Sub(s.From), Failed: last && !r.Running && r.Outcome != "ok"}
		if b.From < width {
			r.Bars = append(r.Bars, b)
		}
		words = append(words, fmt.Sprintf("%s %s", s.Stage, took(b.Took)))
		if last && r.Running {
			r.Label = string(s.Stage)
		}
	}
	r.Words, r.Cut = strings.Join(words, ", "), r.Total > scale
}

// scale is the time that nine of ten rows fit into: one slow turn must not make all
// others invisible.
func scale(rows []row) time.Duration {
	all := make([]time.Duration, 0, len(rows))
	for _, r := range rows {
		all = append(all, r.Total)
	}
	slices.Sort(all)
	longest := time.Second
	if n := len(all); n > 0 {
		longest = max(longest, all[(n-1)*9/10])
	}
	return roundUp(longest)
}

// roundUp returns the next of 1, 2 or 5 times a power of ten.
func roundUp(d time.Duration) time.Duration {
	for step := 100 * time.Millisecond; ; step *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if d <= n*step {
				return n * step
			}
		}
	}
}

// chart draws the last hour. Streaming is left out: that is the answer's own length.
func (h *history) chart(now time.Time) chart {
	last := now.Unix() / 60
	first := last - minutes + 1
	c := chart{From: time.Unix(first*60, 0), To: time.Unix(last*60, 0)}
	var recent []minute
	for _, m := range h.latency {
		if m.number < first || m.number > last || m.turns == 0 {
			continue
		}
		recent = append(recent, m)
		c.Turns += m.turns
		var sum time.Duration
		for stage, spent := range m.spent {
			if stage != server.Streaming {
				sum += spent
			}
		}
		c.Most = max(c.Most, sum/time.Duration(m.turns))
	}
	c.Most = roundUp(c.Most)
	for _, m := range recent {
		y := chartHeight
		for _, stage := range server.StageList {
			mean := m.spent[stage] / time.Duration(m.turns)
			height := int(int64(chartHeight) * int64(mean) / int64(c.Most))
			if stage == server.Streaming || height == 0 {
				continue
			}
			y -= height
			c.Bars = append(c.Bars, column{
				Stage: stage, X: int(m.number-first) * columnWidth, Y: y, Height: height,
				Words: fmt.Sprintf("%s: %s %s, the mean of %s", clock(time.Unix(m.number*60, 0))[:5], stage, took(mean), plural(m.turns, "turn")),
			})
		}
	}
	return c
}

// took is a duration for people.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}

// clock is a time of the day in the server's zone.
func clock(t time.Time) string { return t.Local().Format("15:04:05") }

// number groups digits by three.
func number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return digits
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return number(int64(n)) + " " + noun + "s"
}

// anyNumber is number for templates, which do not convert.
func anyNumber(n any) string {
	if i, ok := n.(int); ok {
		return number(int64(i))
	}
	return number(n.(int64))
}
