// Package messagesapi is a scripted Anthropic Messages API on loopback. It is the
// model behind `ocp demo` and the upstream of every test that runs the Claude Code
// CLI (through ANTHROPIC_BASE_URL): it answers what a [Script] says, at the pace it
// says, with the faults it says, and records every request byte for byte.
//
// It is not a proxy and knows nothing of OCP: what it speaks is the wire format of
// the API alone.
package messagesapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed is returned by waits on a server that has been closed.
var ErrClosed = errors.New("messagesapi: server closed")

// defaultMaxBody bounds a request body; the API itself refuses more than 32 MB.
const defaultMaxBody = 64 << 20

// Options say how a server is started. The zero value is useful: a free port on
// 127.0.0.1 and a short fixed answer.
type Options struct {
	// Addr is the address to listen on; "127.0.0.1:0" if empty.
	Addr string
	// Script decides the answers; the scenario "hello" if nil.
	Script Script
	// MaxBody is the longest request body accepted, in bytes; 64 MiB if zero.
	// A longer one is answered with 413.
	MaxBody int64
}

// Server is a running scripted API. Its methods may be called concurrently.
type Server struct {
	url     string
	maxBody int64
	script  atomic.Pointer[Script]
	journal *journal
	http    *http.Server

	// base is the parent of every request's context; stop ends it with ErrClosed.
	base context.Context
	stop context.CancelCauseFunc

	accepting sync.WaitGroup // the goroutine in http.Server.Serve
	conns     sync.WaitGroup // connections, until closed or hijacked
	handlers  sync.WaitGroup // requests being answered; Add only while their connection is in conns
}

// Start listens and serves until Close. The error is that of listening.
func Start(o Options) (*Server, error) {
	addr := o.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("messagesapi: listen: %w", err)
	}
	s := &Server{
		url:     "http://" + listener.Addr().String(),
		maxBody: o.MaxBody,
		journal: newJournal(),
	}
	if s.maxBody == 0 {
		s.maxBody = defaultMaxBody
	}
	script := o.Script
	if script == nil {
		script = Always(TextAnswer(helloText))
	}
	s.SetScript(script)
	s.base, s.stop = context.WithCancelCause(context.Background())
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return s.base },
		ConnState:         s.trackConn,
	}
	s.accepting.Go(func() { _ = s.http.Serve(listener) })
	return s, nil
}

// URL is the base URL without a trailing slash, fit for ANTHROPIC_BASE_URL.
func (s *Server) URL() string { return s.url }

// SetScript replaces the script. Requests that have already been given an answer
// keep it.
func (s *Server) SetScript(script Script) { s.script.Store(&script) }

// Close stops listening, breaks off every answer in progress (hanging and gated
// ones too) and waits until all of the server's goroutines have ended. Closing
// twice is harmless.
func (s *Server) Close() {
	s.stop(ErrClosed)
	_ = s.http.Close()
	s.accepting.Wait()
	_ = s.http.Close() // a connection accepted during the first one
	s.conns.Wait()
	s.handlers.Wait()
}

// trackConn counts a connection in conns from its start to its end. A hijacked
// connection is closed by the handler that took it.
func (s *Server) trackConn(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.conns.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.conns.Done()
	}
}

// serve records a request and answers it.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.handlers.Add(1)
	defer s.handlers.Done()

	rec := newRecorded(r, http.MaxBytesReader(w, r.Body, s.maxBody))
	outcome := Faulted // a panic of the script leaves it so
	defer func() { rec.finish(outcome) }()
	s.journal.add(rec)

	wire := newWire(w, rec)
	err := s.answer(r.Context(), wire, rec)
	outcome = outcomeOf(r.Context(), err)
	if outcome == Disconnected || outcome == Closed {
		// To return would end the body properly: an answer that nobody scripted.
		_ = wire.cut(false)
	}
}

// answer routes a recorded request. Its error says why the answer was not
// completed.
func (s *Server) answer(ctx context.Context, wire *wire, rec *Recorded) error {
	if rec.BodyErr != nil {
		return refuseBody(wire, rec.BodyErr)
	}
	switch {
	case rec.isTurn():
		return s.answerTurn(ctx, wire, rec)
	case rec.Method == http.MethodPost && rec.Path == "/v1/messages/count_tokens":
		return wire.json(http.StatusOK, map[string]int{"input_tokens": estimateTokens(string(rec.Body))})
	case rec.Method == http.MethodHead && rec.Path == "/",
		rec.Method == http.MethodHead && rec.Path == "/api/hello",
		rec.Method == http.MethodGet && rec.Path == "/api/hello":
		return wire.empty(http.StatusOK)
	default:
		return wire.apiError(APIError{Status: http.StatusNotFound, Message: "Not found"})
	}
}

// answerTurn asks the script and delivers what it says.
func (s *Server) answerTurn(ctx context.Context, wire *wire, rec *Recorded) error {
	request, err := rec.Decode()
	if err != nil {
		return wire.apiError(APIError{Status: http.StatusBadRequest, Message: err.Error()})
	}
	answer := (*s.script.Load())(rec).withDefaults(request, rec.Body)
	if err := answer.validate(); err != nil {
		return wire.apiError(APIError{
			Status:  http.StatusInternalServerError,
			Message: "the script gave an impossible answer: " + err.Error(),
		})
	}
	return deliver(ctx, wire, answer, request.Stream)
}

// refuseBody answers a request whose body could not be read to its end.
func refuseBody(wire *wire, cause error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(cause, &tooLarge) {
		return wire.apiError(APIError{
			Status:  http.StatusRequestEntityTooLarge,
			Message: "Request exceeds the maximum size",
		})
	}
	return cause
}
