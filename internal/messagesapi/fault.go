package messagesapi

import (
	"errors"
	"fmt"
	"net/http"
)

// errFaulted ends an answer whose scripted fault has happened.
var errFaulted = errors.New("messagesapi: scripted fault")

// APIError is an error in Anthropic's shape.
type APIError struct {
	// Status is the HTTP status, 400 to 599. It is ignored in an SSE error event.
	Status int
	// Type is that which the API uses for the status if empty: see ErrorType.
	Type string
	// Message is what the API says.
	Message string
	// Header is added to the response's, e.g. Retry-After.
	Header http.Header
}

// ErrorAnswer is an answer with an HTTP error status and the API's error body.
// headers are pairs of name and value; a name without a value is ignored.
func ErrorAnswer(status int, message string, headers ...string) Answer {
	e := &APIError{Status: status, Message: message, Header: http.Header{}}
	for i := 0; i+1 < len(headers); i += 2 {
		e.Header.Add(headers[i], headers[i+1])
	}
	return Answer{Error: e}
}

// ErrorType is the error type that the API uses with an HTTP status.
func ErrorType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	case statusOverloaded:
		return "overloaded_error"
	}
	if status >= 400 && status < 500 {
		return "invalid_request_error"
	}
	return "api_error"
}

// statusOverloaded is Anthropic's own status for an overloaded service.
const statusOverloaded = 529

// Point is a place in a streamed answer at which a fault can happen.
type Point struct {
	stage  stage
	block  int // in inBlock and afterBlock
	chunks int // in inBlock: deltas sent
}

type stage int

const (
	nowhere stage = iota
	beforeHeader
	beforeStart
	afterStart
	inBlock
	afterBlock
	beforeStop
)

// BeforeHeader is before anything is sent.
func BeforeHeader() Point { return Point{stage: beforeHeader} }

// BeforeStart is after the HTTP header and before message_start.
func BeforeStart() Point { return Point{stage: beforeStart} }

// AfterStart is after message_start and before any block.
func AfterStart() Point { return Point{stage: afterStart} }

// InBlock is inside the given block (from 0), after that many of its deltas; a
// thinking block's signature counts as its last one.
func InBlock(block, deltas int) Point { return Point{stage: inBlock, block: block, chunks: deltas} }

// AfterBlock is after the content_block_stop of the given block (from 0).
func AfterBlock(block int) Point { return Point{stage: afterBlock, block: block} }

// BeforeStop is after message_delta and before message_stop.
func BeforeStop() Point { return Point{stage: beforeStop} }

func (p Point) String() string {
	switch p.stage {
	case beforeHeader:
		return "before the header"
	case beforeStart:
		return "before message_start"
	case afterStart:
		return "after message_start"
	case inBlock:
		return fmt.Sprintf("in block %d after %d deltas", p.block, p.chunks)
	case afterBlock:
		return fmt.Sprintf("after block %d", p.block)
	case beforeStop:
		return "before message_stop"
	default:
		return "nowhere"
	}
}

// Fault ends an answer at a point. In an answer that is not streamed the points
// after the header all mean the middle of the body, and an error event is an HTTP
// error.
type Fault struct {
	kind faultKind
	at   Point
	err  APIError // of faultEvent
}

type faultKind int

const (
	faultNone faultKind = iota
	faultFIN
	faultRST
	faultEnd
	faultHang
	faultEvent
	faultMalformed
)

// CutFIN closes the connection in the middle of the HTTP body.
func CutFIN(at Point) Fault { return Fault{kind: faultFIN, at: at} }

// CutRST resets the connection.
func CutRST(at Point) Fault { return Fault{kind: faultRST, at: at} }

// EndEarly ends the HTTP body properly, though events are missing.
func EndEarly(at Point) Fault { return Fault{kind: faultEnd, at: at} }

// Hang sends nothing more until the client disconnects or the server is closed.
func Hang(at Point) Fault { return Fault{kind: faultHang, at: at} }

// ErrorEvent sends an SSE error event and ends the body properly.
func ErrorEvent(at Point, e APIError) Fault { return Fault{kind: faultEvent, at: at, err: e} }

// Malformed sends an event whose data is not JSON and ends the body properly.
func Malformed(at Point) Fault { return Fault{kind: faultMalformed, at: at} }

// Overloaded is the error that the API sends most often in the middle of a stream.
func Overloaded() APIError {
	return APIError{Status: statusOverloaded, Message: "Overloaded"}
}

// validate says why the fault cannot happen in the answer.
func (f Fault) validate(a Answer) error {
	if f.kind == faultNone {
		return nil
	}
	switch f.at.stage {
	case nowhere:
		return errors.New("the fault has no point")
	case inBlock, afterBlock:
		if f.at.block < 0 || f.at.block >= len(a.Parts) {
			return fmt.Errorf("a fault %v, of %d blocks", f.at, len(a.Parts))
		}
		if deltas := len(a.Parts[f.at.block].deltas(a.Split)); f.at.chunks < 0 || f.at.chunks > deltas {
			return fmt.Errorf("a fault %v, of %d", f.at, deltas)
		}
	}
	return nil
}
