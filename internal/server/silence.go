package server

import (
	"context"
	"time"

	"ocp/internal/turn"
)

// silence is the events of a turn, ended when none of its text has come for too long.
// What a client hears meanwhile, keep-alives, is no text.
type silence struct {
	session   Session
	firstByte limit // until the first delta, from the turn's start
	idle      limit // until a next delta, or the end

	since   time.Time // when the silence began
	spoken  bool      // there was a delta
	waiting bool      // since is the beginning of this silence
}

// limit is a bound and the error of what exceeds it, made once, since there is a wait for
// each delta. An after of 0 is no bound.
type limit struct {
	after    time.Duration
	exceeded *turn.Error
}

// newSilence is for a session that has just been started.
func (s *Server) newSilence(session Session) *silence {
	first, idle := s.options.FirstByteTimeout, s.options.IdleTimeout
	return &silence{
		session: session, since: time.Now(), waiting: true,
		firstByte: limit{first, &turn.Error{
			Kind: turn.Timeout, Message: "no text of the answer came within " + first.String() + " (--first-byte-timeout)",
		}},
		idle: limit{idle, &turn.Error{
			Kind: turn.Timeout, Message: "no more of the answer came within " + idle.String() + " (--idle-timeout)",
		}},
	}
}

// Next is as Session's.
func (w *silence) Next(ctx context.Context) (turn.Event, error) {
	if !w.waiting {
		// A client that is slow to take a delta is not the session's silence.
		w.since, w.waiting = time.Now(), true
	}
	ctx, cancel := w.bound(ctx)
	defer cancel()
	event, err := w.session.Next(ctx)
	if err != nil {
		return nil, asTurnError(ctx, err)
	}
	if _, ok := event.(turn.Delta); ok {
		w.spoken, w.waiting = true, false
	}
	return event, nil
}

func (w *silence) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	bound := w.firstByte
	if w.spoken {
		bound = w.idle
	}
	if bound.after <= 0 {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, w.since.Add(bound.after), bound.exceeded)
}
