package bench

import (
	"encoding/json"
	"io"
	"math"
	"time"
)

// turnLine is one turn as a line of JSON. Times are milliseconds since the request; what
// is not known is left out. What was before the request is negative.
type turnLine struct {
	Run    int    `json:"run"`
	Way    string `json:"way"`
	Wanted string `json:"wanted"`

	Spawned   *float64 `json:"spawned_ms,omitempty"`
	Admitted  *float64 `json:"admitted_ms,omitempty"`
	Given     *float64 `json:"given_ms,omitempty"`
	Taken     *float64 `json:"taken_ms,omitempty"`
	Ready     *float64 `json:"ready_ms,omitempty"`
	Submitted *float64 `json:"submitted_ms,omitempty"`
	Line      *float64 `json:"line_ms,omitempty"`
	First     *float64 `json:"first_ms,omitempty"`
	Last      *float64 `json:"last_ms,omitempty"`
	Stopped   *float64 `json:"stopped_ms,omitempty"`
	Ended     *float64 `json:"ended_ms,omitempty"`
	Done      *float64 `json:"done_ms,omitempty"`

	Deltas       []deltaLine `json:"deltas"`
	CLI          float64     `json:"turn_duration_ms,omitempty"`
	RequestBytes int         `json:"request_bytes,omitempty"`
	SessionRSS   int64       `json:"session_rss_bytes,omitempty"`
	OwnRSS       int64       `json:"ocp_rss_bytes,omitempty"`
}

type deltaLine struct {
	Line     *float64 `json:"line_ms,omitempty"`
	Received *float64 `json:"received_ms,omitempty"`
	Written  *float64 `json:"written_ms,omitempty"`
	Client   *float64 `json:"client_ms,omitempty"`
}

// WriteJSON writes a line of JSON for each turn and one for the figures of all.
func (r *Report) WriteJSON(w io.Writer) error {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	for _, t := range r.Turns {
		if err := lines.Encode(t.line()); err != nil {
			return err
		}
	}
	return lines.Encode(r.summary())
}

func (t Turn) line() turnLine {
	since := func(at time.Time) *float64 {
		ms, ok := between(t.Request, at)
		if !ok {
			return nil
		}
		ms = rounded(ms)
		return &ms
	}
	line := turnLine{
		Run: t.Run, Way: t.Way, Wanted: t.Wanted,
		Spawned: since(t.Spawned), Admitted: since(t.Admitted), Given: since(t.Given), Taken: since(t.Taken),
		Ready: since(t.Ready), Submitted: since(t.Submitted), Line: since(t.Line), First: since(t.First),
		Last: since(t.Last), Stopped: since(t.Stopped), Ended: since(t.Ended), Done: since(t.Done),
		Deltas: []deltaLine{}, CLI: rounded(millis(t.CLI)), RequestBytes: t.RequestBytes, SessionRSS: t.SessionRSS, OwnRSS: t.OwnRSS,
	}
	for _, d := range t.Deltas {
		line.Deltas = append(line.Deltas, deltaLine{since(d.Line), since(d.Received), since(d.Written), since(d.Client)})
	}
	return line
}

// summaryLine is the last line of JSON. The figures are by way, then by quantity, in the
// unit that the quantity's name ends in.
type summaryLine struct {
	Summary   bool                         `json:"summary"`
	CLI       string                       `json:"cli_version"`
	Upstream  string                       `json:"upstream"`
	Cores     int                          `json:"cores"`
	LoadStart *float64                     `json:"load_start,omitempty"`
	LoadEnd   *float64                     `json:"load_end,omitempty"`
	Figures   map[string]map[string]Figure `json:"figures"`
	Doubts    []string                     `json:"doubts"`
}

func (r *Report) summary() summaryLine {
	line := summaryLine{
		Summary: true, CLI: r.CLI, Upstream: r.Upstream, Cores: r.Cores,
		LoadStart: known(r.LoadStart), LoadEnd: known(r.LoadEnd),
		Figures: map[string]map[string]Figure{}, Doubts: append([]string{}, r.Doubts()...), // never null
	}
	for _, way := range r.ways() {
		figures := map[string]Figure{}
		for _, g := range groups() {
			for _, q := range g.quantities {
				f := figureOf(q.samples(r.turns(way)))
				if f.N == 0 {
					continue
				}
				f.Median, f.P95, f.P99, f.IQR = rounded(f.Median), rounded(f.P95), rounded(f.P99), rounded(f.IQR)
				figures[q.key] = f
			}
		}
		line.Figures[way] = figures
	}
	return line
}

func known(load float64) *float64 {
	if load < 0 {
		return nil
	}
	return &load
}

// rounded leaves microseconds.
func rounded(ms float64) float64 { return math.Round(ms*1000) / 1000 }
