package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"
)

// readRequest reads and decodes the body of a request, which must be JSON. Other content
// types are refused: a browser sends those to foreign servers without asking them first.
// All bodies that are in work share
// a budget of memory; a request that finds it used up waits, for as long as a body may
// take to come in.
func readRequest[T any](s *Server, x *exchange, decode func(body []byte) (T, error)) (decoded T, err error) {
	if err := checkContent(x.r.Header); err != nil {
		return decoded, err
	}
	if x.r.ContentLength > s.options.MaxBody && x.r.Header.Get("Expect") != "" {
		return decoded, tooLarge(s.options.MaxBody) // it waits to be asked for a body that would be refused
	}
	weight := x.r.ContentLength
	if weight < 0 || weight > s.options.MaxBody { // unknown, or soon refused
		weight = s.options.MaxBody
	}
	if err := s.reserve(x.r.Context(), weight); err != nil {
		return decoded, err
	}
	defer s.bodies.Release(weight)
	s.limitReading(x)
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, s.options.MaxBody))
	if err != nil {
		return decoded, bodyError(x.r.Context(), err)
	}
	return decode(bytes.TrimPrefix(body, []byte("\ufeff"))) // a byte order mark is no JSON
}

// limitReading gives the body of a request its time. net/http lifts this deadline when it
// has read the whole body, and a write's deadline when the response is done (Go 1.26).
func (s *Server) limitReading(x *exchange) {
	_ = x.control.SetReadDeadline(time.Now().Add(s.options.ReadTimeout))
}

// reserve takes a part of the memory for bodies.
func (s *Server) reserve(client context.Context, weight int64) error {
	if s.bodies.TryAcquire(weight) {
		return nil
	}
	ctx, cancel := s.turnContext(client)
	defer cancel(nil)
	ctx, stop := context.WithTimeoutCause(ctx, s.options.ReadTimeout, &fault{
		status:     http.StatusTooManyRequests,
		code:       "busy",
		message:    "too many large requests at once: try again later",
		retryAfter: s.options.ReadTimeout,
	})
	defer stop()
	if s.bodies.Acquire(ctx, weight) == nil {
		return nil
	}
	if busy, ok := errors.AsType[*fault](context.Cause(ctx)); ok {
		return busy
	}
	return asTurnError(ctx, context.Cause(ctx))
}

// checkContent refuses a body that says it is anything but plain JSON in UTF-8.
func checkContent(h http.Header) error {
	for _, encoding := range h.Values("Content-Encoding") {
		if encoding != "" && !strings.EqualFold(encoding, "identity") {
			return unsupportedEncoding()
		}
	}
	given := h.Get("Content-Type")
	if len(h.Values("Content-Type")) > 1 { // not all of them may be JSON
		return unsupportedMediaType()
	}
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

// bodyError says why the body of a request could not be read. client is the context of
// its connection.
func bodyError(client context.Context, err error) error {
	if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(over.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &fault{
			status:  http.StatusRequestTimeout,
			code:    "request_timeout",
			message: "the request body did not come in time",
		}
	}
	if client.Err() == nil {
		return &fault{status: http.StatusBadRequest, message: "the request body could not be read"}
	}
	return clientGone(err)
}

func tooLarge(limit int64) *fault {
	return &fault{
		status:  http.StatusRequestEntityTooLarge,
		code:    "request_too_large",
		message: fmt.Sprintf("the request body is larger than %d bytes", limit),
	}
}
