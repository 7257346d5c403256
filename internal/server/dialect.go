package server

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"ocp/internal/admission"
	"ocp/internal/openai"
	"ocp/internal/quota"
	"ocp/internal/turn"
)

// dialect is what is different from API to API around an answer.
type dialect struct {
	name      string
	idHeaders []string // the headers that carry the request's id
	keepAlive string   // the frame that ends the silence of a stream
	// standing sets the headers that say how much a key has left.
	standing func(h http.Header, s quota.Standing, now time.Time)
	// failure is the one adapter from errors to the dialect's.
	failure func(x *exchange, err error) failure
}

// failure is an error as a dialect shows it.
type failure struct {
	status     int
	retryAfter time.Duration // zero if not known
	envelope   interface {
		AppendJSON(dst []byte) []byte  // the body of a response
		AppendFrame(dst []byte) []byte // the last frame of a stream
	}
}

// fault is an error of the server's own, from before or around a turn.
type fault struct {
	status     int
	code       string // a word for logs and for dialects that have one
	message    string
	param      string // the field of the request at fault, for dialects that have one
	retryAfter time.Duration
}

// Error leaves the message out, since that may quote the client.
func (f *fault) Error() string { return strconv.Itoa(f.status) + " " + f.code }

// asFault makes a fault of any error that is none of a dialect's own and none of a
// turn's.
func asFault(x *exchange, err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if refused, ok := errors.AsType[*admission.Refused](err); ok {
		return &fault{
			status:     http.StatusTooManyRequests,
			code:       "queue_full",
			message:    "all slots are taken and the queue is full: try again later",
			retryAfter: refused.RetryAfter,
		}
	}
	if refused, ok := errors.AsType[*quota.Refused](err); ok {
		return &fault{
			status:     http.StatusTooManyRequests,
			code:       "key_limit",
			message:    refused.Error(),
			retryAfter: refused.RetryAfter,
		}
	}
	return &fault{
		status:  http.StatusInternalServerError,
		code:    "internal_error",
		message: "internal error: the server's log has it under " + x.id,
	}
}

// openaiDialect is that of /v1/chat/completions, and of all routes without one of
// their own.
var openaiDialect = &dialect{
	name:      "openai",
	idHeaders: []string{"X-Request-Id"},
	keepAlive: ": keep-alive\n\n", // a comment: clients skip it, what stands between sees traffic
	standing:  openaiStanding,
	failure: func(x *exchange, err error) failure {
		e := toOpenAI(x, err)
		return failure{status: e.Status, retryAfter: e.RetryAfter, envelope: e}
	},
}

func toOpenAI(x *exchange, err error) *openai.Error {
	if e, ok := errors.AsType[*openai.Error](err); ok {
		return e
	}
	if failed, ok := errors.AsType[*turn.Error](err); ok {
		return openai.FromTurn(failed)
	}
	f := asFault(x, err)
	kind := openai.TypeInvalidRequest
	switch f.status {
	case http.StatusUnauthorized:
		kind = openai.TypeAuthentication
	case http.StatusForbidden:
		kind = openai.TypePermission
	case http.StatusTooManyRequests:
		kind = openai.TypeRateLimit
	case http.StatusInternalServerError:
		kind = openai.TypeServer
	}
	return &openai.Error{Status: f.status, Type: kind, Param: f.param, Code: f.code, Message: f.message, RetryAfter: f.retryAfter}
}
