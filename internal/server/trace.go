package server

import (
	"time"

	"ocp/internal/turn"
)

// Trace is how the time of one turn went. It holds no text of a conversation. Times are
// zero if the turn did not get that far.
type Trace struct {
	ID       string // of the request, as its client and the log have it
	Dialect  string
	Model    string // as requested
	Streamed bool
	Outcome  string // ok, or the kind of its error

	Begun    time.Time // the request's header was read
	Admitted time.Time // it had a slot; until then it was queued
	Answered time.Time // the answer was written, or its error
	Stages   turn.Stages
	Deltas   []DeltaTrace // in order; recorded only for Options.Observe
}

// DeltaTrace is how one delta went from its hook call to the client.
type DeltaTrace struct {
	Bytes    int       // of text
	Received time.Time // the hook call that completed it was received; zero if the transcript did
	Written  time.Time // it was written and flushed to the client; zero if the answer was not streamed
}

// turnRecord is what is noted of a turn while it runs, for its log line, the tally and
// Options.Observe. It never holds text. It is written by the goroutine of the handler.
type turnRecord struct {
	Trace
	eachDelta bool      // Deltas are wanted
	started   time.Time // when its session was up
	first     time.Time // when its first text came
	deltas    int
	bytes     int // of text
	finished  turn.Finished
}

// observe notes an event before it is passed on.
func (t *turnRecord) observe(event turn.Event) {
	switch event := event.(type) {
	case turn.Started:
		t.started = time.Now()
	case turn.Delta:
		if t.deltas == 0 {
			t.first = time.Now()
		}
		t.deltas++
		t.bytes += len(event.Text)
	case turn.Finished:
		t.finished, t.Stages = event, event.Stages
	}
}

// passed notes that an event has been passed on.
func (t *turnRecord) passed(event turn.Event) {
	delta, ok := event.(turn.Delta)
	if !ok || !t.eachDelta {
		return
	}
	d := DeltaTrace{Bytes: len(delta.Text), Received: delta.Received}
	if t.Streamed {
		d.Written = time.Now()
	}
	t.Deltas = append(t.Deltas, d)
}

// observed hands a turn's trace on once its answer is written.
func (s *Server) observed(t *turnRecord, err error) {
	if s.options.Observe == nil {
		return
	}
	t.Answered, t.Outcome = time.Now(), outcome(err)
	s.options.Observe(t.Trace)
}
