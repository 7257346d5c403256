package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"ocp/internal/admission"
	"ocp/internal/openai"
	"ocp/internal/turn"
)

// writeError answers a request that failed before its response was begun.
func (s *Server) writeError(x *exchange, err error) {
	e := s.toOpenAI(x, err)
	if e.RetryAfter > 0 {
		seconds := (e.RetryAfter + time.Second - 1) / time.Second
		x.w.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	_ = s.writeJSON(x, e.Status, e.AppendJSON(nil)) // the failure at hand is the one to log
}

// toOpenAI is the one adapter from errors to the OpenAI dialect's.
func (s *Server) toOpenAI(x *exchange, err error) *openai.Error {
	if e, ok := errors.AsType[*openai.Error](err); ok {
		return e
	}
	if failed, ok := errors.AsType[*turn.Error](err); ok {
		return openai.FromTurn(failed)
	}
	if refused, ok := errors.AsType[*admission.Refused](err); ok {
		return &openai.Error{
			Status:     http.StatusTooManyRequests,
			Type:       openai.TypeRateLimit,
			Code:       "queue_full",
			Message:    "all slots are taken and the queue is full: try again later",
			RetryAfter: refused.RetryAfter,
		}
	}
	return &openai.Error{
		Status:  http.StatusInternalServerError,
		Type:    openai.TypeServer,
		Code:    "internal_error",
		Message: "internal error: the server's log has it under " + x.id,
	}
}

// asTurnError makes whatever ended a turn a *turn.Error. If ctx has ended, that is
// why, whatever the backend made of it; its own error goes along for the log.
func asTurnError(ctx context.Context, err error) *turn.Error {
	failed, typed := errors.AsType[*turn.Error](err)
	switch cause := context.Cause(ctx); {
	case cause == nil && typed:
		return failed
	case cause == nil:
		return &turn.Error{Kind: turn.SessionFailed, Message: "the session failed", Err: err}
	default:
		ended, ok := errors.AsType[*turn.Error](cause)
		if !ok {
			ended = clientGone(cause)
		}
		if typed && failed.Kind == ended.Kind {
			return failed
		}
		if errors.Is(err, cause) {
			return ended
		}
		return &turn.Error{Kind: ended.Kind, Message: ended.Message, RetryAfter: ended.RetryAfter, Err: err}
	}
}

func clientGone(err error) *turn.Error {
	return &turn.Error{Kind: turn.Canceled, Message: "the client has gone", Err: err}
}

func methodNotAllowed(method string, allowed []string) *openai.Error {
	return &openai.Error{
		Status:  http.StatusMethodNotAllowed,
		Type:    openai.TypeInvalidRequest,
		Code:    "method_not_allowed",
		Message: fmt.Sprintf("%s is not possible here: use %s", method, strings.Join(allowed, " or ")),
	}
}

func unsupportedMediaType() *openai.Error {
	return &openai.Error{
		Status:  http.StatusUnsupportedMediaType,
		Type:    openai.TypeInvalidRequest,
		Code:    "unsupported_media_type",
		Message: "the Content-Type must be application/json in UTF-8",
	}
}

// bodyError says why a body could not be read.
func bodyError(err error) error {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &openai.Error{
			Status:  http.StatusRequestEntityTooLarge,
			Type:    openai.TypeInvalidRequest,
			Code:    "request_too_large",
			Message: fmt.Sprintf("the request body is larger than %d bytes", tooLarge.Limit),
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &openai.Error{
			Status:  http.StatusRequestTimeout,
			Type:    openai.TypeInvalidRequest,
			Code:    "request_timeout",
			Message: "the request body did not come in time",
		}
	}
	return clientGone(err)
}
