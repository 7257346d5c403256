package server

import (
	"time"

	"ocp/internal/prompt"
	"ocp/internal/quota"
	"ocp/internal/turn"
)

// Trace is what is known of one turn, while it runs and when it is over. It holds no
// text of a conversation. Times are zero, and figures too, if the turn did not get that
// far.
type Trace struct {
	ID       string // of the request, as its client and the log have it
	Dialect  string
	Model    string // as requested
	Key      string // the name of the client's key; empty if it has none
	Streamed bool

	// Outcome is ok, or the kind of the turn's error; empty while it runs.
	Outcome string
	Message string // the error's, if it cannot quote a conversation

	Begun    time.Time // the request's header was read
	Admitted time.Time // it had a slot; until then it was queued
	Started  time.Time // its session was up
	First    time.Time // its first text came
	Stopped  time.Time // the CLI called the answer over; what remained was to check it
	Answered time.Time // the answer was written, or its error

	DeltaCount int // pieces of text that were passed on
	Bytes      int // of text
	// Usage is the upstream's, or an estimate where the turn broke off and may have cost
	// something. It is known when the turn is over.
	Usage    turn.Usage
	Finished turn.Finished
	Deltas   []DeltaTrace // in order; recorded only with Options.TraceDeltas
}

// DeltaTrace is how one delta went from its hook call to the client.
type DeltaTrace struct {
	Bytes    int       // of text
	Received time.Time // the hook call that completed it was received; zero if the transcript did
	Written  time.Time // it was written and flushed to the client; zero if the answer was not streamed
}

// turnRecord is a turn's trace while the goroutine of its handler writes it.
type turnRecord struct {
	Trace
	eachDelta bool         // Deltas are wanted
	use       *quota.Use   // of the key; nil if it was refused
	input     func() int   // estimates the tokens of the request
	answer    prompt.Tally // of the text that was passed on
}

// observe notes an event before it is passed on.
func (s *Server) observe(t *turnRecord, event turn.Event) {
	switch event := event.(type) {
	case turn.Started:
		t.Started = time.Now()
		s.tell(t)
	case turn.Delta:
		t.DeltaCount++
		t.Bytes += len(event.Text)
		t.answer.Add(event.Text)
		if t.DeltaCount == 1 {
			t.First = time.Now()
			s.tell(t)
		}
	case turn.Verifying:
		t.Stopped = time.Now()
		s.tell(t)
	case turn.Finished:
		t.Finished = event
		t.spend(event.Usage)
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

// over notes that a turn's answer is written, whole or broken off.
func (s *Server) over(t *turnRecord, err error) {
	t.Answered, t.Outcome = time.Now(), outcome(err)
	if err != nil {
		t.Message = failureText(err)
	}
	if t.Finished.StopReason == "" {
		t.spend(t.brokenOff(t.Outcome))
	}
	s.tell(t)
}

// tell gives the state of a turn to all who want to know.
func (s *Server) tell(t *turnRecord) {
	for _, observe := range s.options.Observers {
		observe(t.Trace)
	}
}
