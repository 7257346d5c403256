package server

import (
	"time"

	"ocp/internal/openai"
)

// responsesDialect is that of /v1/responses. Until a stream has begun its errors are
// those of all of OpenAI's API.
var responsesDialect = &dialect{
	name:      "responses",
	idHeaders: openaiDialect.idHeaders,
	keepAlive: openaiDialect.keepAlive,
	standing:  openaiStanding,
	failure:   openaiDialect.failure,
}

// responses answers POST /v1/responses.
func (s *Server) responses(x *exchange) error {
	req, err := readRequest(s, x, openai.DecodeResponses)
	if err != nil {
		return err
	}
	words := openai.NewResponse(req, time.Now())
	events := openai.NewResponseStream(words)
	x.dialect = responsesDialect.failingIn(events)
	return s.answer(x, answer{
		prompt:  req.Prompt,
		stream:  req.Stream,
		ignored: req.Ignored,
		events:  events,
		whole:   words.Append,
	})
}

// failingIn is the dialect in one stream, whose events are numbered to the last.
func (d dialect) failingIn(events *openai.ResponseStream) *dialect {
	d.failure = func(x *exchange, err error) failure {
		e := toOpenAI(x, err)
		return failure{status: e.Status, retryAfter: e.RetryAfter, envelope: responseFailure{e, events}}
	}
	return &d
}

// responseFailure is an error whose frame belongs to a stream.
type responseFailure struct {
	*openai.Error
	events *openai.ResponseStream
}

func (f responseFailure) AppendFrame(dst []byte) []byte { return f.events.AppendFailure(dst, f.Error) }
