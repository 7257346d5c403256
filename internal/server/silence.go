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
	firstByte time.Duration // until the first delta, from the turn's start; 0 for no bound
	idle      time.Duration // until a next delta, or the end; 0 for no bound

	since   time.Time // when the silence began
	spoken  bool      // there was a delta
	waiting bool      // since is the beginning of this silence
}

// newSilence is for a session that has just been started.
func (s *Server) newSilence(session Session) *silence {
	return &silence{
		session: session, firstByte: s.options.FirstByteTimeout, idle: s.options.IdleTimeout,
		since: time.Now(), waiting: true,
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
	limit, message := w.firstByte, "no text of the answer came within "+w.firstByte.String()+" (--first-byte-timeout)"
	if w.spoken {
		limit, message = w.idle, "no more of the answer came within "+w.idle.String()+" (--idle-timeout)"
	}
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, w.since.Add(limit), &turn.Error{Kind: turn.Timeout, Message: message})
}
