package server

import (
	"context"
	"errors"
	"time"

	"ocp/internal/admission"
	"ocp/internal/openai"
	"ocp/internal/turn"
)

// chat answers POST /v1/chat/completions.
func (s *Server) chat(x *exchange) error {
	req, err := readRequest(s, x, openai.DecodeChat)
	if err != nil {
		return err
	}
	words := openai.NewAnswer(req, time.Now())
	return s.answer(x, answer{
		prompt:  req.Prompt,
		stop:    req.Stop,
		stream:  req.Stream,
		ignored: req.Ignored,
		events:  openai.NewStream(words),
		whole:   words.AppendCompletion,
	})
}

// acquire waits for a slot, for as long as a turn may take.
func (s *Server) acquire(ctx context.Context) (release func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.options.TurnTimeout, &turn.Error{
		Kind:    turn.Timeout,
		Message: "no slot became free within " + s.options.TurnTimeout.String(),
	})
	defer cancel()
	release, err = s.options.Admission.Acquire(ctx)
	if err == nil {
		return release, nil
	}
	if _, refused := errors.AsType[*admission.Refused](err); refused {
		return nil, err
	}
	if errors.Is(err, admission.ErrClosed) {
		return nil, shuttingDown()
	}
	return nil, asTurnError(ctx, err)
}

// turnContext returns the context of a turn. It ends with the client's connection,
// with Shutdown, or by cancel, whichever is first; its cause says which.
func (s *Server) turnContext(client context.Context) (context.Context, context.CancelCauseFunc) {
	return endsWith(client, s.stopping)
}

// endsWith returns ctx, which also ends with another, or by cancel.
func endsWith(ctx, other context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	ignore := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func(cause error) {
		ignore()
		cancel(cause)
	}
}

// lease is a slot and the session in it, which is nil until it has started.
type lease struct {
	release func()
	session Session
}

// giveBack closes the session and only then frees its slot. Closing takes a while, so
// the client does not wait for it; Shutdown does.
func (s *Server) giveBack(x *exchange, held *lease) {
	if held.session == nil {
		held.release()
		return
	}
	s.turns.Go(func() {
		defer held.release()
		if err := held.session.Close(); err != nil {
			s.options.Logger.Error("session did not close well", "id", x.id, "err", err)
		}
	})
}
