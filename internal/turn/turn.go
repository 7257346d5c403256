// Package turn makes one answer out of one prompt: it puts the hook's deltas in
// order, holds back what is not certain, and checks all of it against the transcript
// before the answer may end. It is a pure state machine: it has no clock, starts
// nothing and reads nothing, so that every interleaving can be tested.
package turn

import (
	"fmt"
	"time"

	"ocp/internal/hook"
	"ocp/internal/transcript"
)

const (
	// QuietBound is how long the end of a turn is waited for after the last sign of
	// it. The assistant record is on disk 100 ms after Stop as a rule; 2.9 s was seen
	// on a loaded machine (facts, section 1).
	QuietBound = 2500 * time.Millisecond
	// quietTries is how often QuietBound may pass before the turn fails as Unverified.
	quietTries = 6
)

// Failure is what the CLI says of a turn that failed: the StopFailure hook and the
// error entry in the transcript. One of them may be missing.
type Failure struct {
	Error   string // the hook's word: rate_limit, server_error, …
	Details string
	Message string // the text the CLI shows
	Status  int    // the upstream's HTTP status, 0 if unknown

	Entry    string    // the text of the error entry itself
	ResetsAt time.Time // when a usage limit ends, if the entry has it as a time
}

// Options configure a Turn.
type Options struct {
	// Classify makes a typed error of the CLI's failure. Required.
	Classify func(Failure) *Error
	// AtLimit ends the turn at the first message that stops at the token limit, as one
	// whose client set the limit. Otherwise the CLI has such an answer continued, and
	// the turn is all of it.
	AtLimit bool
	// AtCalls ends the turn at the first message with tool calls: they are its client's.
	AtCalls bool
}

// Turn is the state of one turn. It is not safe for concurrent use.
type Turn struct {
	opts Options

	messages []*message // in the order first seen
	byID     map[string]*message
	current  int    // index of the message whose deltas are released
	joint    string // what stands before the current message's first text

	sent    []byte // what was released, to be checked against T
	checked int    // how much of sent agrees with T
	answer  answer

	started bool
	calling bool        // a tool is called: from here on text waits for its place
	stop    *hook.Event // Stop or StopFailure
	tries   int         // how often Quiet was called while settling
	over    bool
	stats   Stats
}

// New returns a turn that has seen nothing.
func New(opts Options) *Turn {
	return &Turn{opts: opts, byID: map[string]*message{}}
}

// Over reports whether the turn has ended, well or not.
func (t *Turn) Over() bool { return t.over }

// Settling reports whether the turn has shown a sign of its end. The owner then calls
// Quiet whenever QuietBound passes without a hook call or a record.
func (t *Turn) Settling() bool {
	return !t.over && (t.stop != nil || t.answer.banner != nil || t.answer.ended || t.answer.ends() || t.atLimit() || t.called())
}

// Hook takes a hook call. Events that do not belong to a turn are ignored. An error
// is a *Error and ends the turn, here and in the other methods.
func (t *Turn) Hook(e hook.Event) ([]Event, error) {
	if t.over {
		return nil, nil
	}
	var events []Event
	switch e.Name {
	case hook.SessionStart:
		if !t.started {
			t.started = true
			events = append(events, Started{})
		}
	case hook.MessageDisplay:
		t.delta(e)
		if d := t.release(); d.Text != "" {
			d.Received = e.Received
			events = append(events, d)
		}
		if err := t.check(); err != nil {
			return events, t.end(err)
		}
	case hook.PreToolUse:
		t.calling = t.opts.AtCalls
		return nil, nil
	case hook.Stop, hook.StopFailure:
		if t.stop == nil {
			stop := e // not e itself, which would then be allocated for every call
			t.stop = &stop
		}
	default:
		return nil, nil
	}
	return t.settle(events)
}

// Record takes the next transcript record of the turn.
func (t *Turn) Record(r transcript.Record) ([]Event, error) {
	if t.over {
		return nil, nil
	}
	switch {
	case t.called() && t.answer.leaves(r), !t.called() && t.atLimit() && !t.answer.continues(r):
		return t.finish(nil)
	}
	t.answer.add(r)
	if err := t.check(); err != nil {
		return nil, t.end(err)
	}
	var events []Event
	if d := t.release(); d.Text != "" {
		events = append(events, d)
	}
	return t.settle(events)
}

// Quiet tells a settling turn that QuietBound has passed in silence.
func (t *Turn) Quiet() ([]Event, error) {
	if !t.Settling() {
		return nil, nil
	}
	t.tries++
	if t.called() {
		return t.finish(nil)
	}
	if t.failed() {
		return t.fail(nil)
	}
	if t.complete() || t.atLimit() || t.plausible() {
		return t.finish(nil)
	}
	if t.tries < quietTries {
		return nil, nil
	}
	return nil, t.end(&Error{
		Kind: Unverified, Message: "the session's transcript did not show the answer in time",
		Err: fmt.Errorf("%d bytes sent, %d in the transcript", len(t.sent), t.answer.text.Len()),
	})
}

// Exited tells the turn that its session has ended and that all it wrote has been
// taken in.
func (t *Turn) Exited(cause error) ([]Event, error) {
	switch {
	case t.over:
		return nil, nil
	case t.called():
		return t.finish(nil)
	case t.failed():
		return t.fail(nil)
	case t.complete(), t.atLimit():
		return t.finish(nil)
	}
	return nil, t.end(&Error{Kind: SessionFailed, Message: "the Claude Code session ended before its answer was whole", Err: cause})
}

// Abort ends the turn for a reason of its owner's.
func (t *Turn) Abort() { t.over = true }

// Stats returns the figures so far.
func (t *Turn) Stats() Stats {
	s := t.stats
	s.TextBytes = len(t.sent)
	return s
}

// delta sorts a fire into its message.
func (t *Turn) delta(e hook.Event) {
	m := t.byID[e.MessageID]
	if m == nil {
		m = &message{waiting: map[int]fire{}}
		t.byID[e.MessageID] = m
		t.messages = append(t.messages, m)
	}
	t.stats.Deltas++
	switch m.add(e) {
	case duplicate:
		t.stats.Duplicates++
	case early:
		t.stats.Reordered++
	}
}

// release gives out the deltas that are next in order. The first message's go out as
// they come. A later message's wait until the transcript shows that all before it
// stands: it may be a replacement of what was broken off.
func (t *Turn) release() Delta {
	released := ""
	for t.current < len(t.messages) && !t.calling {
		m := t.messages[t.current]
		if !m.opened && !t.fits(m) {
			break // it overtook a message that the transcript already shows
		}
		text := m.take()
		if text != "" && !m.opened {
			m.opened = true
			text = t.joint + text
		}
		t.sent = append(t.sent, text...)
		released += text
		next := t.current + 1
		if !m.ended || next >= len(t.messages) || !t.agrees() || t.answer.id == "" || t.atLimit() || t.callsTools() {
			break
		}
		t.current, t.joint = next, t.answer.separator()
	}
	return Delta{Text: released}
}

// fits reports whether a message that is to be opened can be the next one: what the
// transcript already says of the text behind what was sent must begin as it does.
func (t *Turn) fits(m *message) bool {
	text := t.joint + m.peek()
	rest := t.answer.text.String()[min(len(t.sent), t.answer.text.Len()):]
	n := min(len(text), len(rest))
	return text[:n] == rest[:n]
}

// check compares what was sent with T as far as both go.
func (t *Turn) check() *Error {
	text := t.answer.text.String()
	n := min(len(t.sent), len(text))
	for i := t.checked; i < n; i++ {
		if t.sent[i] != text[i] {
			return t.diverged(i)
		}
	}
	t.checked = max(t.checked, n)
	return nil
}

func (t *Turn) diverged(at int) *Error {
	return &Error{
		Kind: Diverged, Message: "the streamed text is not what the session's transcript says; the answer was broken off",
		Err: fmt.Errorf("%d bytes sent, %d in the transcript, first difference at %d", len(t.sent), t.answer.text.Len(), at),
	}
}

// settle ends the turn if all that makes an end is there.
func (t *Turn) settle(events []Event) ([]Event, error) {
	switch {
	case t.failed() && t.answer.banner != nil:
		return t.fail(events)
	case t.atLimit() && !t.opts.AtCalls && t.messageDisplayed():
		return t.finish(events)
	case !t.failed() && t.complete():
		return t.finish(events)
	}
	return events, nil
}

// failed reports whether the CLI says that the turn failed.
func (t *Turn) failed() bool {
	return t.answer.banner != nil || t.stop != nil && t.stop.Name == hook.StopFailure
}

// complete reports whether T is known to be whole: the CLI has written its end
// record, or the hook's deltas and the transcript agree on the whole text and on its
// last block.
func (t *Turn) complete() bool {
	if t.answer.ended {
		return true
	}
	return t.stop != nil && t.stop.Name == hook.Stop && t.answer.ends() && t.allDisplayed() &&
		t.answer.agreesWithStop(t.stop.LastAssistantMessage)
}

// allDisplayed reports whether every message seen was displayed to its end and
// amounts to T.
func (t *Turn) allDisplayed() bool {
	return t.current == len(t.messages)-1 && t.messageDisplayed()
}

// messageDisplayed reports whether the current message was displayed to its end and
// amounts, with all before it, to T as far as it is known.
func (t *Turn) messageDisplayed() bool {
	return t.current < len(t.messages) && t.messages[t.current].ended && t.agrees()
}

// agrees reports whether what was sent is T as far as it is known.
func (t *Turn) agrees() bool {
	return len(t.sent) == t.answer.text.Len() && t.checked == len(t.sent)
}

// atLimit reports whether the turn ends with the last message seen, since that one
// stopped at the client's token limit. More of its records may be to come.
func (t *Turn) atLimit() bool { return t.opts.AtLimit && t.answer.stop == MaxTokens }

// called reports whether the turn ends with the last message seen, since that one calls
// the client's tools. More of its records may be to come, until its end record or one of
// another message: the CLI goes on by itself only if it has refused all of the calls.
func (t *Turn) called() bool { return t.opts.AtCalls && len(t.answer.calls) > 0 }

// callsTools is the same as soon as one record of that message is there.
func (t *Turn) callsTools() bool { return t.called() || t.opts.AtCalls && t.answer.stop == ToolUse }

// plausible reports whether T may be taken for whole after a silence: nothing
// contradicts it, but a sign is missing (a lost delta and no end record, no Stop).
func (t *Turn) plausible() bool {
	switch {
	case len(t.sent) > t.answer.text.Len() || t.answer.stop == "":
		return false
	case t.stop == nil:
		return t.answer.ends()
	}
	last := t.stop.LastAssistantMessage
	return last == nil || t.answer.agreesWithStop(last)
}

// finish sends what of T was not sent and ends the turn.
func (t *Turn) finish(events []Event) ([]Event, error) {
	text := t.answer.text.String()
	if len(t.sent) > len(text) {
		return events, t.end(t.diverged(len(text)))
	}
	reason := t.answer.stop
	if t.called() {
		var err *Error
		if events, err = t.callAll(events); err != nil {
			return events, t.end(err)
		}
	}
	events = t.topUp(events, len(text))
	if t.nothingSaid() {
		reason = EndTurn
	}
	if reason == "" {
		return events, t.end(&Error{Kind: Upstream, Message: "the model's answer broke off before its end"})
	}
	t.over = true
	return append(events, Finished{
		Model:        t.answer.model,
		StopReason:   reason,
		StopSequence: t.answer.seq,
		Usage:        t.answer.total(),
		Session:      t.answer.session,
		Stats:        t.Stats(),
	}), nil
}

// nothingSaid reports whether the turn ended well and without a message at all: the
// CLI writes none for an answer without blocks.
func (t *Turn) nothingSaid() bool {
	return t.answer.id == "" && t.stop != nil && t.stop.Name == hook.Stop && t.stop.LastAssistantMessage == nil
}

// fail ends a turn that the CLI says has failed. Two such ends are answers all the
// same: the token limit, and a refusal; both have their text in the transcript.
func (t *Turn) fail(events []Event) ([]Event, error) {
	switch t.answer.stop {
	case MaxTokens, ContextWindow, Refusal:
		if t.answer.banner != nil {
			return t.finish(events)
		}
	}
	return events, t.end(t.opts.Classify(t.failure()))
}

func (t *Turn) failure() Failure {
	var f Failure
	if t.stop != nil {
		f.Error, f.Details = t.stop.Error, t.stop.ErrorDetails
		if t.stop.LastAssistantMessage != nil {
			f.Message = *t.stop.LastAssistantMessage
		}
	}
	if b := t.answer.banner; b != nil {
		f.Status, f.Entry = b.APIErrorStatus, b.Message.Text()
		if b.ResetsAt > 0 {
			f.ResetsAt = time.Unix(int64(b.ResetsAt), 0)
		}
		if f.Error == "" {
			f.Error = b.Error
		}
		if f.Details == "" {
			f.Details = b.ErrorDetails
		}
		if f.Message == "" {
			f.Message = f.Entry
		}
	}
	return f
}

func (t *Turn) end(err *Error) error {
	t.over = true
	return err
}
