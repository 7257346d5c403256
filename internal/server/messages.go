package server

import (
	"errors"
	"net/http"
	"slices"

	"ocp/internal/anthropic"
	"ocp/internal/turn"
)

// handleMessages adds the routes of the Messages API.
func (s *Server) handleMessages(mux *http.ServeMux) {
	mux.Handle("/v1/messages", s.route(anthropicDialect, s.messages, http.MethodPost))
	mux.Handle("/v1/messages/count_tokens", s.route(anthropicDialect, s.countTokens, http.MethodPost))
	mux.Handle("/v1/messages/", s.route(anthropicDialect, s.notFound))
}

// byClient serves the clients of each API what they expect at a path that both APIs
// have. Only those of the Anthropic API say which version of it they mean.
func byClient(openai, anthropic http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Anthropic-Version") != "" {
			anthropic.ServeHTTP(w, r)
			return
		}
		openai.ServeHTTP(w, r)
	})
}

// messages answers POST /v1/messages.
func (s *Server) messages(x *exchange) error {
	req, err := readRequest(s, x, anthropic.DecodeMessages)
	if err != nil {
		return err
	}
	words := anthropic.NewAnswer(req)
	return s.answer(x, answer{
		prompt:  req.Prompt,
		stop:    req.Stop,
		stream:  req.Stream,
		ignored: req.Ignored,
		events:  anthropic.NewStream(words),
		whole:   words.AppendMessage,
	})
}

// countTokens answers POST /v1/messages/count_tokens with an estimate: it takes no slot
// and starts no session.
func (s *Server) countTokens(x *exchange) error {
	tokens, err := readRequest(s, x, anthropic.DecodeCount)
	if err != nil {
		return err
	}
	x.w.Header().Set("Ocp-Estimate", "true")
	return s.writeJSON(x, http.StatusOK, anthropic.AppendCount(nil, tokens))
}

// anthropicModels answers GET /v1/models, all of it on one page.
func (s *Server) anthropicModels(x *exchange) error {
	return s.writeJSON(x, http.StatusOK, anthropic.AppendModels(nil, s.models(x), s.started))
}

// anthropicModel answers GET /v1/models/{id}.
func (s *Server) anthropicModel(x *exchange) error {
	id := x.r.PathValue("id")
	if !slices.Contains(s.models(x), id) {
		return anthropic.NoSuchModel(id)
	}
	return s.writeJSON(x, http.StatusOK, anthropic.AppendModel(nil, id, s.started))
}

// anthropicDialect is that of /v1/messages and all below it.
var anthropicDialect = &dialect{
	name:      "anthropic",
	idHeaders: []string{"Request-Id", "X-Request-Id"},
	keepAlive: anthropic.Ping,
	standing:  anthropicStanding,
	failure: func(x *exchange, err error) failure {
		e := toAnthropic(x, err)
		return failure{status: e.Status, retryAfter: e.RetryAfter, envelope: e}
	},
}

func toAnthropic(x *exchange, err error) *anthropic.Error {
	var e anthropic.Error
	if own, ok := errors.AsType[*anthropic.Error](err); ok {
		e = *own
	} else if failed, ok := errors.AsType[*turn.Error](err); ok {
		e = *anthropic.FromTurn(failed)
	} else {
		f := asFault(x, err)
		e = *anthropic.FromStatus(f.status, f.message)
		e.RetryAfter = f.retryAfter
	}
	e.RequestID = x.id
	return &e
}
