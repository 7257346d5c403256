package claude

import (
	"slices"
	"time"

	"ocp/internal/hook"
	"ocp/internal/prompt"
	"ocp/internal/transcript"
	"ocp/internal/turn"
)

// running is a turn in its session. It is owned by the session's loop, but for what is
// said to be another's.
type running struct {
	conversation prompt.Conversation
	turn         *turn.Turn
	input        *inputCheck
	tools        *toolCheck   // nil if the client has none
	ended        bool         // the turn is over and finish was called
	out          []turn.Event // not yet taken by Next
	stages       turn.Stages
	recorded     bool   // the CLI has written a record of the turn
	written      bool   // and its last one
	cli          string // the CLI's version, as its records name it

	// The answer as it was recorded: its blocks, and the ids of its messages.
	answer   []prompt.Block
	messages []string
	partial  bool // the CLI will not go on with all of it

	// Of a turn that was typed into a session that had answered.
	typed     bool
	prompted  bool       // its UserPromptSubmit has come
	promptID  string     // as that named it
	submitted chan error // gets one value then: nil, or why the prompt was blocked
	begun     bool       // its user entry was recorded

	taken  chan error      // gets one value: nil when the conversation is given, or why not
	told   bool            // taken has got it
	events chan turn.Event // to Next; closed after the last event
	closed bool            // events is closed
	err    error           // for Next; set before events is closed

	lasting bool          // the session need not end with the turn; set before Finished is queued
	rests   chan struct{} // closed when the session can be asked again
}

func (s *Session) newRunning(c prompt.Conversation, way turn.Way) *running {
	var tools *toolCheck
	if len(c.Tools) > 0 {
		tools = &toolCheck{naming: newNaming(c.Tools), tools: c.Tools}
		c = tools.naming.rename(c)
	}
	c = inert(blockResults(c))
	return &running{
		tools:        tools,
		conversation: c,
		turn:         turn.New(turn.Options{Classify: classify, AtLimit: s.key.MaxTokens > 0, AtCalls: tools != nil}),
		input:        newInputCheck(c),
		stages:       turn.Stages{Way: way, Spawned: s.spawned, Given: time.Now()},
		typed:        way == turn.Continued,
		submitted:    make(chan error, 1),
		taken:        make(chan error, 1),
		events:       make(chan turn.Event),
		rests:        make(chan struct{}),
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

// held reports whether nothing may be told yet: the model may have been asked without the
// client's tools.
func (r *running) held() bool { return r.tools != nil && !r.tools.seen }

// close tells Next that there is nothing more.
func (r *running) close() {
	r.closed = true
	close(r.events)
}

// others reports whether a hook call is of an earlier turn of the session. The first
// turn's have no prompt id.
func (r *running) others(e hook.Event) bool {
	switch e.Name {
	case hook.MessageDisplay, hook.Stop, hook.StopFailure:
		return r.typed && (r.promptID == "" || e.PromptID != r.promptID)
	}
	return false
}

// note keeps of a record what the turn itself does not.
func (r *running) note(rec transcript.Record) {
	r.recorded = r.recorded || ofTurn(rec)
	r.input.record(rec)
	switch {
	case rec.Type == "system" && rec.Subtype == "turn_duration":
		r.written = true
		r.stages.CLI = time.Duration(rec.DurationMS) * time.Millisecond
	case rec.Type == "assistant" && rec.Message != nil && !rec.IsSidechain:
		if !slices.Contains(r.messages, rec.Message.ID) {
			r.messages = append(r.messages, rec.Message.ID)
		}
		for _, b := range rec.Message.Content {
			r.partial = r.partial || b.Type == "text" && forgotten(b.Text)
			r.answer = append(r.answer, prompt.Block{Type: b.Type, Raw: b.Raw})
		}
	}
}
