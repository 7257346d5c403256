package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ocp/internal/turn"
)

// writeError answers a request that failed before its response was begun.
func (s *Server) writeError(x *exchange, err error) {
	f := x.dialect.failure(x, err)
	if f.retryAfter > 0 {
		seconds := (f.retryAfter + time.Second - 1) / time.Second
		x.w.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	_ = s.writeJSON(x, f.status, f.envelope.AppendJSON(nil)) // the failure at hand is the one to log
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

// withoutEffect refuses a parameter.
func withoutEffect(param string) *fault {
	return &fault{
		status:  http.StatusBadRequest,
		code:    "unsupported_parameter",
		param:   param,
		message: param + " has no effect here, and this server refuses such parameters (--strict-params): leave it out",
	}
}

func clientGone(err error) *turn.Error {
	return &turn.Error{Kind: turn.Canceled, Message: "the client has gone", Err: err}
}

func methodNotAllowed(method string, allowed []string) *fault {
	return &fault{
		status:  http.StatusMethodNotAllowed,
		code:    "method_not_allowed",
		message: fmt.Sprintf("%s is not possible here: use %s", method, strings.Join(allowed, " or ")),
	}
}

func unsupportedMediaType() *fault {
	return &fault{
		status:  http.StatusUnsupportedMediaType,
		code:    "unsupported_media_type",
		message: "the Content-Type must be application/json in UTF-8 (curl: -H 'Content-Type: application/json')",
	}
}

func unsupportedEncoding() *fault {
	return &fault{
		status:  http.StatusUnsupportedMediaType,
		code:    "unsupported_media_type",
		message: "no Content-Encoding is possible here: send the body as it is",
	}
}
