package anthropic

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ocp/internal/turn"
	"ocp/internal/wire"
)

// Error is an error as this API shows it. Message is for the client; it may quote the
// client's own request.
type Error struct {
	Status     int
	Type       string
	Message    string        // without the field
	Field      string        // the field at fault, such as messages.2.content.0.type; may be empty
	RequestID  string        // sent as null if empty
	RetryAfter time.Duration // zero if not known; for the Retry-After header
	Details    string        // JSON for programs; may be empty
}

func (e *Error) Error() string { return strconv.Itoa(e.Status) + " " + e.Type + ": " + e.text() }

// text is the message as it is sent: the API has no field for the field.
func (e *Error) text() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}

// The error types in use.
const (
	TypeInvalidRequest = "invalid_request_error"
	TypeAuthentication = "authentication_error"
	TypePermission     = "permission_error"
	TypeNotFound       = "not_found_error"
	TypeTooLarge       = "request_too_large"
	TypeRateLimit      = "rate_limit_error"
	TypeAPI            = "api_error"
	TypeTimeout        = "timeout_error"
	TypeOverloaded     = "overloaded_error"
)

// The statuses that net/http has no names for.
const (
	statusOverloaded = 529 // this API's own
	statusClientGone = 499 // for logs: it never gets there
)

// failures says how each way a turn can fail looks in this API.
var failures = map[turn.Kind]Error{
	turn.Authentication: {Status: http.StatusUnauthorized, Type: TypeAuthentication},
	turn.Permission:     {Status: http.StatusForbidden, Type: TypePermission},
	turn.RateLimited:    {Status: http.StatusTooManyRequests, Type: TypeRateLimit},
	turn.Overloaded:     {Status: statusOverloaded, Type: TypeOverloaded},
	turn.Upstream:       {Status: http.StatusBadGateway, Type: TypeAPI},
	turn.InvalidRequest: {Status: http.StatusBadRequest, Type: TypeInvalidRequest},
	turn.ContextLength:  {Status: http.StatusBadRequest, Type: TypeInvalidRequest},
	turn.TooLarge:       {Status: http.StatusRequestEntityTooLarge, Type: TypeTooLarge},
	turn.ModelNotFound:  {Status: http.StatusNotFound, Type: TypeNotFound, Field: "model"},
	turn.Timeout:        {Status: http.StatusGatewayTimeout, Type: TypeTimeout},
	turn.SessionFailed:  {Status: http.StatusBadGateway, Type: TypeAPI},
	turn.Diverged:       {Status: http.StatusBadGateway, Type: TypeAPI},
	turn.Unverified:     {Status: http.StatusBadGateway, Type: TypeAPI},
	turn.Shutdown:       {Status: http.StatusServiceUnavailable, Type: TypeAPI},
	turn.Canceled:       {Status: statusClientGone, Type: TypeInvalidRequest},
}

// tooLong is what clients look for before they compact a conversation.
const tooLong = "prompt is too long"

// FromTurn is the one place where a failed turn becomes an error of this API.
func FromTurn(failed *turn.Error) *Error {
	e, known := failures[failed.Kind]
	if !known {
		e = Error{Status: http.StatusBadGateway, Type: TypeAPI}
	}
	e.Message, e.RetryAfter = failed.Message, failed.RetryAfter
	if e.Message == "" {
		e.Message = "the turn failed: " + string(failed.Kind)
	}
	if failed.Kind == turn.ContextLength && !strings.HasPrefix(e.Message, tooLong) {
		e.Message = tooLong + ": " + e.Message
	}
	return &e
}

// FromStatus makes an error of a status of HTTP's own.
func FromStatus(status int, message string) *Error {
	e := &Error{Status: status, Type: TypeInvalidRequest, Message: message}
	switch status {
	case http.StatusUnauthorized:
		e.Type = TypeAuthentication
	case http.StatusForbidden:
		e.Type = TypePermission
	case http.StatusNotFound:
		e.Type = TypeNotFound
	case http.StatusRequestTimeout:
		e.Type = TypeTimeout
	case http.StatusRequestEntityTooLarge:
		e.Type = TypeTooLarge
	case http.StatusTooManyRequests:
		e.Type = TypeRateLimit
	case http.StatusInternalServerError:
		e.Type = TypeAPI
	}
	return e
}

// AppendJSON appends the envelope.
func (e *Error) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"type":"error","error":{"type":`...)
	dst = wire.AppendString(dst, e.Type)
	dst = append(dst, `,"message":`...)
	dst = wire.AppendString(dst, e.text())
	if e.Details != "" {
		dst = append(dst, `,"details":`...)
		dst = append(dst, e.Details...)
	}
	dst = append(dst, `},"request_id":`...)
	if e.RequestID == "" {
		dst = append(dst, "null"...)
	} else {
		dst = wire.AppendString(dst, e.RequestID)
	}
	return append(dst, '}')
}

// AppendFrame appends the error as the last event of a stream. No message_stop may
// follow.
func (e *Error) AppendFrame(dst []byte) []byte {
	dst = append(dst, "event: error\ndata: "...)
	dst = e.AppendJSON(dst)
	return append(dst, "\n\n"...)
}

// bad is a 400 that names the field at fault.
func bad(field, message string) *Error {
	return &Error{Status: http.StatusBadRequest, Type: TypeInvalidRequest, Field: field, Message: message}
}

// fromWire makes an error of this API of one about JSON.
func fromWire(err error) error {
	e, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return err
	}
	if e.Path == "" {
		return bad("", e.Error())
	}
	return bad(e.Path, e.Message)
}
