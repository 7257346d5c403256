package server

import (
	"time"

	"ocp/internal/turn"
)

// Stage is a part of a turn's way.
type Stage string

// The stages, in their order. In which of them a turn has failed, its last span says.
const (
	Queued    Stage = "queued"    // it waited for a slot
	Boot      Stage = "boot"      // until the CLI had the conversation
	Submit    Stage = "submit"    // until the CLI had loaded it; not in a session that goes on
	First     Stage = "first"     // until the first text came, the model's own start included
	Streaming Stage = "streaming" // until the CLI called the answer over
	Verifying Stage = "verifying" // until it was checked, and its end written
)

// StageList is all of them.
var StageList = []Stage{Queued, Boot, Submit, First, Streaming, Verifying}

// Span is a stage that a turn has passed or is in.
type Span struct {
	Stage    Stage
	From, To time.Time
}

// Spans are the stages of a turn, without gaps. While it runs the last one ends now, and
// what is known only at its end, Submit, is part of Boot.
func (t Trace) Spans(now time.Time) []Span {
	taken := t.Finished.Stages.Taken
	if t.Finished.Stages.Way == turn.Continued {
		taken = time.Time{} // Started is the same moment
	}
	ends := []time.Time{t.Admitted, taken, t.Started, t.First, t.Stopped}
	spans := make([]Span, 0, len(StageList))
	from, stage := t.Begun, 0
	for i, end := range ends {
		if end.IsZero() {
			continue
		}
		if end.Before(from) { // a clock of another goroutine's
			end = from
		}
		spans = append(spans, Span{StageList[stage], from, end})
		from, stage = end, i+1
	}
	last := t.Answered
	if last.IsZero() {
		last = now
	}
	if last.Before(from) {
		last = from
	}
	return append(spans, Span{StageList[stage], from, last})
}
