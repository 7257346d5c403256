package bench

import "time"

// quantity is something measured of turns. Its key is that of the JSON lines.
type quantity struct {
	key, label string
	of         func(Turn) (float64, bool)
	ofDelta    func(Delta) (float64, bool) // instead, if each delta has a sample
}

// group is what stands together in a table.
type group struct {
	title      string
	quantities []quantity
}

// groups are all quantities, in the order of a table.
func groups() []group {
	return []group{
		{"To the first chunk, ms", []quantity{
			span("queued_ms", "request → slot", func(t Turn) (a, b time.Time) { return t.Request, t.Admitted }),
			span("boot_ms", "slot → CLI has the conversation", func(t Turn) (a, b time.Time) { return t.Admitted, t.Taken }),
			span("submit_ms", "CLI has it → model is asked", func(t Turn) (a, b time.Time) { return t.Taken, t.Submitted }),
			span("model_ms", "  the model's own, to its first line", func(t Turn) (a, b time.Time) { return t.Submitted, t.Line }),
			span("first_ms", "first line → client's first chunk", func(t Turn) (a, b time.Time) { return t.Line, t.First }),
			{key: "answer_ms", label: "CLI has it → first chunk, with the model", of: answer},
			span("first_chunk_ms", "request → client's first chunk", func(t Turn) (a, b time.Time) { return t.Request, t.First }),
			{key: "overhead_ms", label: "  without the model's own", of: overhead},
			{key: "cli_ms", label: "  the CLI alone, until it asks the model", of: alone},
			{key: "ocp_ms", label: "  ocp's own part", of: ours},
			span("ready_ms", "  CLI's work begins → SessionStart", func(t Turn) (a, b time.Time) { return t.start(), t.Ready }),
		}},
		{"Each delta, ms", []quantity{
			hop("line_ms", "model's line → hook call received", func(d Delta) (a, b time.Time) { return d.Line, d.Received }),
			hop("write_ms", "hook call received → chunk written", func(d Delta) (a, b time.Time) { return d.Received, d.Written }),
			hop("client_ms", "chunk written → client has it", func(d Delta) (a, b time.Time) { return d.Written, d.Client }),
		}},
		{"The end, ms", []quantity{
			span("tail_ms", "model's last byte → end of stream", func(t Turn) (a, b time.Time) { return t.Last, t.Done }),
			span("stop_ms", "  model's last byte → Stop", func(t Turn) (a, b time.Time) { return t.Last, t.Stopped }),
			span("verify_ms", "  Stop → verified", func(t Turn) (a, b time.Time) { return t.Stopped, t.Ended }),
		}},
		{"The whole turn, ms", []quantity{
			span("total_ms", "request → end of stream", func(t Turn) (a, b time.Time) { return t.Request, t.Done }),
			span("upstream_ms", "the model: asked → last byte", func(t Turn) (a, b time.Time) { return t.Submitted, t.Last }),
			{key: "turn_duration_ms", label: "the CLI's own turn_duration", of: turnDuration},
			{key: "beyond_model_ms", label: "beyond the model", of: beyondModel},
			{key: "beyond_cli_ms", label: "beyond the CLI's turn_duration", of: beyondCLI},
		}},
		{"Size", []quantity{
			{key: "request_bytes", label: "request body, bytes", of: func(t Turn) (float64, bool) { return float64(t.RequestBytes), t.RequestBytes > 0 }},
			{key: "session_rss_mb", label: "memory of the session (RSS), MB", of: func(t Turn) (float64, bool) { return megabytes(t.SessionRSS) }},
			{key: "ocp_rss_mb", label: "memory of ocp and this bench (RSS), MB", of: func(t Turn) (float64, bool) { return megabytes(t.OwnRSS) }},
		}},
	}
}

func span(key, label string, ends func(Turn) (from, to time.Time)) quantity {
	return quantity{key: key, label: label, of: func(t Turn) (float64, bool) { return between(ends(t)) }}
}

func hop(key, label string, ends func(Delta) (from, to time.Time)) quantity {
	return quantity{key: key, label: label, ofDelta: func(d Delta) (float64, bool) { return between(ends(d)) }}
}

// samples are the quantity's of all turns given.
func (q quantity) samples(turns []Turn) []float64 {
	var list []float64
	for _, t := range turns {
		if q.ofDelta == nil {
			if v, ok := q.of(t); ok {
				list = append(list, v)
			}
			continue
		}
		for _, d := range t.Deltas {
			if v, ok := q.ofDelta(d); ok {
				list = append(list, v)
			}
		}
	}
	return list
}

// partial reports whether a figure is of some of the turns only.
func (q quantity) partial(f Figure, turns []Turn) bool {
	return q.ofDelta == nil && f.N > 0 && f.N < len(turns)
}

// answer is how long the CLI and a model whose own times are not known took together.
func answer(t Turn) (float64, bool) {
	ms, ok := between(t.Taken, t.First)
	return ms, ok && t.Line.IsZero()
}

// overhead is what the first chunk took beside the model's own time.
func overhead(t Turn) (float64, bool) {
	first, ok1 := between(t.Request, t.First)
	model, ok2 := between(t.Submitted, t.Line)
	return first - model, ok1 && ok2
}

// alone is what no proxy can take away of one way: from the CLI's start, or from when
// it was given the request, until it asks the model.
func alone(t Turn) (float64, bool) { return between(t.start(), t.Submitted) }

// ours is what the first chunk took while neither the CLI nor the model had it.
func ours(t Turn) (float64, bool) {
	if len(t.Deltas) == 0 {
		return 0, false
	}
	before, ok1 := between(t.Request, t.start())
	after, ok2 := between(t.Deltas[0].Received, t.First)
	return before + after, ok1 && ok2
}

func turnDuration(t Turn) (float64, bool) { return millis(t.CLI), t.CLI > 0 }

func beyondModel(t Turn) (float64, bool) {
	total, ok1 := between(t.Request, t.Done)
	model, ok2 := between(t.Submitted, t.Last)
	return total - model, ok1 && ok2
}

func beyondCLI(t Turn) (float64, bool) {
	total, ok := between(t.Request, t.Done)
	return total - millis(t.CLI), ok && t.CLI > 0
}

func megabytes(bytes int64) (float64, bool) { return float64(bytes) / (1 << 20), bytes > 0 }
