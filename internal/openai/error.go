package openai

import (
	"net/http"
	"strconv"
	"time"

	"ocp/internal/turn"
)

// Error is an error as this API shows it: a status and the fields of the envelope.
// Message is for the client; it may quote the client's own request.
type Error struct {
	Status     int
	Message    string
	Type       string
	Param      string        // the field at fault; sent as null if empty
	Code       string        // sent as null if empty
	RetryAfter time.Duration // zero if not known; for the Retry-After header
}

func (e *Error) Error() string {
	s := strconv.Itoa(e.Status) + " " + e.Type
	if e.Code != "" {
		s += " " + e.Code
	}
	if e.Param != "" {
		s += " (" + e.Param + ")"
	}
	return s + ": " + e.Message
}

// The error types in use. SDKs go by the status; the type is for people and logs.
const (
	TypeInvalidRequest = "invalid_request_error"
	TypeAuthentication = "authentication_error"
	TypePermission     = "permission_error"
	TypeRateLimit      = "rate_limit_error"
	TypeServer         = "server_error"
)

// statusClientGone is what logs call a client that did not wait; it never gets there.
const statusClientGone = 499

// failures says how each way a turn can fail looks in this API. There is no 529 in
// it, so an overload is a 503.
var failures = map[turn.Kind]Error{
	// The code tells the upstream's refusal from that of the client's own key.
	turn.Authentication: {Status: http.StatusUnauthorized, Type: TypeAuthentication, Code: "upstream_authentication"},
	turn.Permission:     {Status: http.StatusForbidden, Type: TypePermission, Code: "permission_denied"},
	turn.RateLimited:    {Status: http.StatusTooManyRequests, Type: TypeRateLimit, Code: "rate_limit_exceeded"},
	turn.Overloaded:     {Status: http.StatusServiceUnavailable, Type: TypeServer, Code: "overloaded"},
	turn.Upstream:       {Status: http.StatusBadGateway, Type: TypeServer, Code: "upstream_error"},
	turn.InvalidRequest: {Status: http.StatusBadRequest, Type: TypeInvalidRequest, Code: "upstream_invalid_request"},
	turn.ContextLength:  {Status: http.StatusBadRequest, Type: TypeInvalidRequest, Code: "context_length_exceeded", Param: "messages"},
	turn.TooLarge:       {Status: http.StatusRequestEntityTooLarge, Type: TypeInvalidRequest, Code: "request_too_large"},
	turn.ModelNotFound:  {Status: http.StatusNotFound, Type: TypeInvalidRequest, Code: "model_not_found", Param: "model"},
	turn.Timeout:        {Status: http.StatusGatewayTimeout, Type: TypeServer, Code: "timeout"},
	turn.SessionFailed:  {Status: http.StatusBadGateway, Type: TypeServer, Code: "session_failed"},
	turn.Diverged:       {Status: http.StatusBadGateway, Type: TypeServer, Code: "diverged"},
	turn.Unverified:     {Status: http.StatusBadGateway, Type: TypeServer, Code: "unverified"},
	turn.Shutdown:       {Status: http.StatusServiceUnavailable, Type: TypeServer, Code: "shutdown"},
	turn.Canceled:       {Status: statusClientGone, Type: TypeInvalidRequest, Code: "canceled"},
}

// FromTurn is the one place where a failed turn becomes an error of this API.
func FromTurn(failed *turn.Error) *Error {
	e, known := failures[failed.Kind]
	if !known {
		e = Error{Status: http.StatusBadGateway, Type: TypeServer, Code: string(failed.Kind)}
	}
	e.Message, e.RetryAfter = failed.Message, failed.RetryAfter
	if e.Message == "" {
		e.Message = "the turn failed: " + string(failed.Kind)
	}
	return &e
}

// AppendJSON appends the envelope.
func (e *Error) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"error":{"message":`...)
	dst = appendString(dst, e.Message)
	dst = append(dst, `,"type":`...)
	dst = appendString(dst, e.Type)
	dst = append(dst, `,"param":`...)
	dst = appendNullable(dst, e.Param)
	dst = append(dst, `,"code":`...)
	dst = appendNullable(dst, e.Code)
	return append(dst, `}}`...)
}

// AppendFrame appends the error as the last frame of a stream. No [DONE] may follow:
// the Go and JavaScript SDKs raise an error at this frame, but take a stream that
// just ends for a whole one.
func (e *Error) AppendFrame(dst []byte) []byte {
	dst = append(dst, "data: "...)
	dst = e.AppendJSON(dst)
	return append(dst, "\n\n"...)
}

func appendNullable(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return appendString(dst, s)
}

// badRequest is a 400 that names the field at fault.
func badRequest(param, message string) *Error {
	return &Error{Status: http.StatusBadRequest, Type: TypeInvalidRequest, Param: param, Message: message}
}

// unsupported is a 400 for what is valid in the API and not to be had here.
func unsupported(param, message string) *Error {
	e := badRequest(param, message)
	e.Code = "unsupported_parameter"
	return e
}
