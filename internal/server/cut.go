package server

import (
	"context"
	"time"

	"ocp/internal/prompt"
	"ocp/internal/turn"
)

// cut is the events of a turn, ended at the first of the client's stop sequences. The
// turn's own end is then not waited for, so that the usage is an estimate, and nobody
// says which model it was.
type cut struct {
	session *silence
	stopper *turn.Stopper
	input   int          // estimate of the tokens that the model was sent
	answer  prompt.Tally // of the text let through
	next    turn.Event   // to be given before any other
}

func newCut(session *silence, a answer) *cut {
	c := &cut{session: session, stopper: turn.NewStopper(a.stop)}
	if len(a.stop) > 0 {
		c.input = a.prompt.EstimateTokens()
	}
	return c
}

// Next is as Session's.
func (c *cut) Next(ctx context.Context) (turn.Event, error) {
	for {
		if event := c.next; event != nil {
			c.next = nil
			return event, nil
		}
		event, err := c.session.Next(ctx)
		if err != nil {
			return nil, err
		}
		var text string
		var received time.Time
		switch delta := event.(type) {
		case turn.Delta:
			var matched string
			var done bool
			text, matched, done = c.stopper.Push(delta.Text)
			received = delta.Received
			c.answer.Add(text)
			if done {
				c.next = c.finished(matched)
			} else if text != "" && text == delta.Text {
				return event, nil // as it came, which is the rule: nothing to allocate
			}
		case turn.ToolCall, turn.Finished:
			text = c.stopper.Flush()
			c.next = event
		default:
			return event, nil
		}
		if text != "" {
			return turn.Delta{Text: text, Received: received}, nil
		}
	}
}

// finished is the end of a turn that was stopped at a sequence.
func (c *cut) finished(matched string) turn.Finished {
	return turn.Finished{
		StopReason:   turn.StopSequence,
		StopSequence: matched,
		Usage:        turn.Usage{Input: c.input, Output: c.answer.Tokens(), Estimated: true},
	}
}
