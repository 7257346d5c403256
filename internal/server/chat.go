package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"ocp/internal/admission"
	"ocp/internal/openai"
	"ocp/internal/turn"
)

// chat answers POST /v1/chat/completions.
func (s *Server) chat(x *exchange) error {
	body, err := s.readJSON(x)
	if err != nil {
		return err
	}
	req, err := openai.DecodeChat(body)
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
	if err := checkContent(x.r.Header); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, s.options.MaxBody))
	if err != nil {
		return nil, bodyError(x.r.Context(), err)
	}
	return bytes.TrimPrefix(body, []byte("\ufeff")), nil // a byte order mark is no JSON
}

// checkContent refuses a body that says it is anything but plain JSON in UTF-8.
func checkContent(h http.Header) error {
	for _, encoding := range h.Values("Content-Encoding") {
		if encoding != "" && !strings.EqualFold(encoding, "identity") {
			return unsupportedEncoding()
		}
	}
	given := h.Get("Content-Type")
	if given == "" {
		return nil
	}
	media, params, err := mime.ParseMediaType(given)
	charset := strings.ToLower(cmp.Or(params["charset"], "utf-8"))
	if err != nil || media != "application/json" || charset != "utf-8" && charset != "utf8" {
		return unsupportedMediaType()
	}
	return nil
}
