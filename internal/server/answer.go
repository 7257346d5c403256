package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"ocp/internal/prompt"
	"ocp/internal/turn"
)

// answer is how one request for a turn is to be answered, in its dialect's words.
type answer struct {
	prompt  prompt.Request
	stop    []string // sequences that end the answer, before them
	stream  bool
	ignored []string // the parameters given that have no effect

	// events encodes a streamed answer: it appends the frames of each event.
	events interface {
		Append(dst []byte, event turn.Event) []byte
	}
	// whole appends the body of an answer that is not streamed.
	whole func(dst []byte, text string, fin turn.Finished, calls ...turn.ToolCall) []byte
}

// answer is the story of a request for a turn, from where its dialect has decoded it.
// It returns a *turn.Error, an *admission.Refused, a *quota.Refused, or a *fault for a
// parameter without effect or a model that the key may not use.
func (s *Server) answer(x *exchange, a answer) error {
	if len(a.ignored) > 0 && s.options.StrictParams {
		return withoutEffect(a.ignored[0])
	}
	if len(a.ignored) > 0 {
		x.w.Header().Set("Ocp-Ignored-Params", strings.Join(a.ignored, ", "))
	}
	if err := checkModel(x, a.prompt.Model); err != nil {
		return err
	}
	a.prompt.Caller = x.caller
	x.turn = &turnRecord{
		Trace:     Trace{ID: x.id, Dialect: x.dialect.name, Model: a.prompt.Model, Key: x.key, Streamed: a.stream, Begun: x.begun},
		eachDelta: s.options.TraceDeltas,
		input:     a.prompt.EstimateTokens,
	}
	s.tell(x.turn)
	if s.options.LogContent {
		x.content = &content{prompt: a.prompt.Conversation}
	}
	if err := s.count(x); err != nil {
		return err
	}

	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := s.turnContext(x.r.Context())
	defer cancel(nil)

	if a.stream {
		return s.streamAnswer(ctx, cancel, x, a)
	}
	return s.wholeAnswer(ctx, x, a)
}

// wholeAnswer answers with the whole text, once it was verified.
func (s *Server) wholeAnswer(ctx context.Context, x *exchange, a answer) error {
	var text strings.Builder
	var calls []turn.ToolCall
	fin, err := s.runTurn(ctx, x, a, func(event turn.Event) error {
		switch event := event.(type) {
		case turn.Delta:
			text.WriteString(event.Text)
		case turn.ToolCall:
			calls = append(calls, event)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.writeJSON(x, http.StatusOK, a.whole(nil, text.String(), fin, calls...))
}

// streamAnswer passes the text on as it comes. A failure after the first byte ends the
// stream with an error frame.
func (s *Server) streamAnswer(ctx context.Context, cancel context.CancelCauseFunc, x *exchange, a answer) error {
	st := s.newStream(x, func(err error) { cancel(clientGone(err)) })
	defer st.close()

	var frames []byte // reused from event to event
	_, err := s.runTurn(ctx, x, a, func(event turn.Event) error {
		frames = a.events.Append(frames[:0], event)
		if len(frames) == 0 {
			return nil
		}
		if err := st.send(frames); err != nil {
			return clientGone(err)
		}
		return nil
	})
	if err != nil {
		st.abort(x.dialect.failure(x, err).envelope.AppendFrame(nil))
	}
	return err
}

// runTurn takes a slot and a session, and gives every event of the turn to emit. It
// returns when the turn has finished, which the backend says only of an answer it has
// verified, or at a stop sequence, or when the turn or emit has failed. The slot is
// free once the session is closed, which the client does not wait for.
func (s *Server) runTurn(ctx context.Context, x *exchange, a answer, emit func(turn.Event) error) (turn.Finished, error) {
	defer x.turn.use.Done() // before the client can know of the end
	release, err := s.acquire(ctx)
	if err != nil {
		return turn.Finished{}, err
	}
	x.turn.Admitted = time.Now()
	s.tell(x.turn)
	held := &lease{release: release}
	defer s.giveBack(x, held)

	ctx, cancel := context.WithTimeoutCause(ctx, s.options.TurnTimeout, &turn.Error{
		Kind:    turn.Timeout,
		Message: "the turn took longer than " + s.options.TurnTimeout.String(),
	})
	defer cancel()
	session, err := s.options.Backend.Start(ctx, a.prompt)
	if err != nil {
		return turn.Finished{}, asTurnError(ctx, err)
	}
	held.session = session
	events := newCut(s.newSilence(session), a)
	for calls := 0; ; {
		event, err := events.Next(ctx)
		if err != nil {
			return turn.Finished{}, asTurnError(ctx, err)
		}
		if _, ok := event.(turn.ToolCall); ok {
			if calls++; calls > 1 && a.prompt.OneCall {
				continue
			}
		}
		s.observe(x.turn, event)
		x.content.add(event)
		if err := emit(event); err != nil {
			return turn.Finished{}, err
		}
		x.turn.passed(event)
		if fin, ok := event.(turn.Finished); ok {
			return fin, nil
		}
	}
}
