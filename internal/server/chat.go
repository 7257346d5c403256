package server

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"ocp/internal/admission"
	"ocp/internal/openai"
	"ocp/internal/prompt"
	"ocp/internal/turn"
)

// chat answers POST /v1/chat/completions. It returns a *turn.Error or an
// *admission.Refused once the request was found good.
func (s *Server) chat(x *exchange) error {
	body, err := s.readJSON(x)
	if err != nil {
		return err
	}
	req, err := openai.DecodeChat(body)
	if err != nil {
		return err
	}
	if len(req.Ignored) > 0 {
		x.w.Header().Set("Ocp-Ignored-Params", strings.Join(req.Ignored, ", "))
	}
	x.turn = &turnRecord{dialect: "openai", model: req.Prompt.Model, streaming: req.Stream}

	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := s.turnContext(x.r.Context())
	defer cancel(nil)

	if req.Stream {
		return s.streamChat(ctx, cancel, x, req)
	}
	return s.completeChat(ctx, x, req)
}

// completeChat answers with the whole text, once it was verified.
func (s *Server) completeChat(ctx context.Context, x *exchange, req openai.ChatRequest) error {
	answer := openai.NewAnswer(req, time.Now())
	var text strings.Builder
	fin, err := s.runTurn(ctx, x, req.Prompt, func(event turn.Event) error {
		if delta, ok := event.(turn.Delta); ok {
			text.WriteString(delta.Text)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.writeJSON(x, http.StatusOK, answer.AppendCompletion(nil, text.String(), fin))
}

// streamChat passes the text on as it comes. A failure after the first byte ends the
// stream with an error frame.
func (s *Server) streamChat(ctx context.Context, cancel context.CancelCauseFunc, x *exchange, req openai.ChatRequest) error {
	encoder := openai.NewStream(openai.NewAnswer(req, time.Now()))
	st := s.newStream(x, func(err error) { cancel(clientGone(err)) })
	defer st.close()

	var frames []byte // reused from event to event
	_, err := s.runTurn(ctx, x, req.Prompt, func(event turn.Event) error {
		frames = encoder.Append(frames[:0], event)
		if len(frames) == 0 {
			return nil
		}
		if err := st.send(frames); err != nil {
			return clientGone(err)
		}
		return nil
	})
	if err != nil {
		st.abort(s.toOpenAI(x, err).AppendFrame(nil))
	}
	return err
}

// runTurn takes a slot and a session, and gives every event of the turn to emit. It
// returns when the turn has finished, which the backend says only of an answer it has
// verified, or when the turn or emit has failed. The slot is free once the session is
// closed, which the client does not wait for.
func (s *Server) runTurn(ctx context.Context, x *exchange, req prompt.Request, emit func(turn.Event) error) (turn.Finished, error) {
	release, err := s.acquire(ctx)
	if err != nil {
		return turn.Finished{}, err
	}
	x.turn.admitted = time.Now()
	held := &lease{release: release}
	defer s.giveBack(x, held)

	ctx, cancel := context.WithTimeoutCause(ctx, s.options.TurnTimeout, &turn.Error{
		Kind:    turn.Timeout,
		Message: "the turn took longer than " + s.options.TurnTimeout.String(),
	})
	defer cancel()
	session, err := s.options.Backend.Start(ctx, req)
	if err != nil {
		return turn.Finished{}, asTurnError(ctx, err)
	}
	held.session = session
	for {
		event, err := session.Next(ctx)
		if err != nil {
			return turn.Finished{}, asTurnError(ctx, err)
		}
		x.turn.observe(event)
		if err := emit(event); err != nil {
			return turn.Finished{}, err
		}
		if fin, ok := event.(turn.Finished); ok {
			return fin, nil
		}
	}
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
	ctx, cancel := context.WithCancelCause(client)
	ignore := context.AfterFunc(s.stopping, func() { cancel(context.Cause(s.stopping)) })
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

// readJSON reads the body of a request that must be JSON. Other content types are
// refused: a browser sends those to foreign servers without asking them first.
func (s *Server) readJSON(x *exchange) ([]byte, error) {
	// net/http lifts this deadline when it has read the whole body, and a write's
	// deadline when the response is done (Go 1.26).
	_ = x.control.SetReadDeadline(time.Now().Add(s.options.ReadTimeout))
	if given := x.r.Header.Get("Content-Type"); given != "" {
		media, params, err := mime.ParseMediaType(given)
		charset, named := params["charset"]
		if err != nil || media != "application/json" || named && !strings.EqualFold(charset, "utf-8") {
			return nil, unsupportedMediaType()
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, s.options.MaxBody))
	if err != nil {
		return nil, bodyError(err)
	}
	return body, nil
}
