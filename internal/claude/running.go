package claude

import (
	"time"

	"ocp/internal/prompt"
	"ocp/internal/turn"
)

// running is a turn in its session. It is owned by the session's loop, but for what is
// said to be another's.
type running struct {
	conversation prompt.Conversation
	turn         *turn.Turn
	input        *inputCheck
	ended        bool         // the turn is over and finish was called
	out          []turn.Event // not yet taken by Next
	stages       turn.Stages
	recorded     bool   // the CLI has written a record of the turn
	cli          string // the CLI's version, as its records name it

	taken  chan error      // gets one value: nil when the conversation is given, or why not
	told   bool            // taken has got it
	events chan turn.Event // to Next; closed after the last event
	err    error           // for Next; set before events is closed
}

func (s *Session) newRunning(c prompt.Conversation, way turn.Way) *running {
	c = inert(blockResults(c))
	return &running{
		conversation: c,
		turn:         turn.New(turn.Options{Classify: classify, AtLimit: s.key.MaxTokens > 0}),
		input:        newInputCheck(c),
		stages:       turn.Stages{Way: way, Spawned: s.spawned, Given: time.Now()},
		taken:        make(chan error, 1),
		events:       make(chan turn.Event),
	}
}

// started reports whether SessionStart has come.
func (r *running) started() bool { return !r.stages.Ready.IsZero() }

// working reports whether the session has shown that its turn runs: a delta, its end,
// or a record of it.
func (r *running) working() bool {
	return !r.stages.First.IsZero() || !r.stages.Stopped.IsZero() || r.recorded
}

// tell says whether the conversation was taken, the first time it is called.
func (r *running) tell(err error) {
	if !r.told {
		r.told = true
		r.taken <- err
	}
}

// queue adds an event for Next. Deltas that were not taken yet are joined, so that a
// slow client costs no more memory than the answer's length.
func (r *running) queue(e turn.Event) {
	d, isDelta := e.(turn.Delta)
	if n := len(r.out) - 1; isDelta && n >= 0 {
		if last, ok := r.out[n].(turn.Delta); ok {
			r.out[n] = turn.Delta{Text: last.Text + d.Text, Received: last.Received}
			return
		}
	}
	r.out = append(r.out, e)
}
