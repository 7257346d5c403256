// Package server is OCP's HTTP side: routes, handlers, and what goes over the wire
// around an answer, keep-alives, deadlines and error statuses included. It knows
// nothing of the CLI: a Backend runs the turns.
package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"ocp/internal/admission"
	"ocp/internal/config"
	"ocp/internal/prompt"
	"ocp/internal/quota"
	"ocp/internal/turn"
)

// Backend starts sessions. It may be a Reporter too.
type Backend interface {
	// Start starts a session on a request and its turn. ctx bounds the turn, the
	// waiting in Next included: once it ends the session need not be kept, and
	// context.Cause(ctx) says why. A failure is best a *turn.Error; any other error
	// counts as turn.SessionFailed. If Start fails it leaves nothing behind.
	Start(ctx context.Context, req prompt.Request) (Session, error)
}

// Session is one running turn. It is used by one goroutine at a time.
type Session interface {
	// Next waits for the turn's next event. After turn.Finished or an error it is
	// not called again.
	Next(ctx context.Context) (turn.Event, error)
	// Close gives the session back and waits until nothing of its turn is left: the
	// session is over, its process included, or waits for what its conversation's client
	// will say next. It may be called at any time, and more than once.
	Close() error
}

// Options say what a Server serves and within which bounds. Zero values mean the
// defaults named.
type Options struct {
	Backend   Backend         // required
	Admission *admission.Gate // required
	Models    []string        // the names in /v1/models
	Version   string          // shown by /healthz
	Mounts    []Mount         // further routes
	Logger    *slog.Logger    // default: none

	// LogContent logs the texts of conversations too. Otherwise no line holds any.
	LogContent bool

	// Observers are told of every turn at each stage: when it begins, has a slot, has
	// its session and its first text, when its answer is being checked, and when it is
	// over. They are called from the handler's goroutine, and must not block.
	Observers []func(Trace)
	// TraceDeltas records when each single delta came and went.
	TraceDeltas bool

	// StrictParams refuses requests with a parameter that has no effect, which are
	// otherwise answered with its name in the header Ocp-Ignored-Params.
	StrictParams bool

	// Keys are those of clients, until SetKeys. Once there are any, every route but /healthz
	// and /readyz wants one.
	Keys  []config.Key
	Quota *quota.Book // what has been used with each; default: nothing yet

	// Loopback says that only programs on this machine can reach the listener. They call it
	// by a loopback address; beyond, any address will do.
	Loopback bool
	// HostNames are the names by which clients may call the server besides localhost; "*"
	// for any.
	HostNames []string
	// Origins are those of web pages that may use the server, as browsers write them.
	Origins []string

	// TurnTimeout bounds a turn from the moment it has a slot; the wait for the slot
	// has the same bound of its own. Default 10m.
	TurnTimeout time.Duration
	// FirstByteTimeout bounds the time from a turn's start to its first text, IdleTimeout
	// each silence after that. Zero for no bound.
	FirstByteTimeout, IdleTimeout time.Duration
	// KeepAlive is the longest silence of a stream; a comment line ends it. Default 15s.
	KeepAlive time.Duration
	// MaxBody bounds a request's body, in bytes. Default 32 MiB.
	MaxBody int64
	// BodyMemory bounds the bodies that are read and decoded at once, in bytes. It is at
	// least MaxBody. Default 128 MiB.
	BodyMemory int64
	// HeaderTimeout bounds how long a request's line and headers may take to come in, the
	// TLS handshake included. Default 10s.
	HeaderTimeout time.Duration
	// ReadTimeout bounds how long a request's body may take to come in. Default 30s.
	ReadTimeout time.Duration
	// WriteTimeout bounds each single write, so that a client which does not read
	// cannot hold a slot. Default 30s.
	WriteTimeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.Quota == nil {
		o.Quota = &quota.Book{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&o.TurnTimeout, 10 * time.Minute},
		{&o.KeepAlive, 15 * time.Second},
		{&o.HeaderTimeout, 10 * time.Second},
		{&o.ReadTimeout, 30 * time.Second},
		{&o.WriteTimeout, 30 * time.Second},
	} {
		if *d.value <= 0 {
			*d.value = d.fallback
		}
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 32 << 20
	}
	if o.BodyMemory <= 0 {
		o.BodyMemory = 128 << 20
	}
	o.BodyMemory = max(o.BodyMemory, o.MaxBody)
	return o
}

// Server serves the API. It starts nothing until a request comes; Shutdown waits for
// all it has started.
type Server struct {
	options Options
	started time.Time
	tally   tally
	bodies  *semaphore.Weighted // by Options.BodyMemory
	keys    atomic.Pointer[keyring]

	// stopping is cancelled by Shutdown, and with it every turn.
	stopping context.Context
	stop     context.CancelCauseFunc
	// pages is cancelled when mounts are to end.
	pages    context.Context
	endPages context.CancelCauseFunc

	mu      sync.Mutex
	stopped bool           // no new turns; guarded by mu
	drained chan struct{}  // closed when no turn is left; nil unless Drain was called; guarded by mu
	running int            // turns that are not answered; guarded by mu
	turns   sync.WaitGroup // turns and sessions being closed; Add under mu while not stopped, or by one of them
}

// New makes a Server.
func New(o Options) *Server {
	s := &Server{options: o.withDefaults(), started: time.Now()}
	s.bodies = semaphore.NewWeighted(s.options.BodyMemory)
	s.SetKeys(o.Keys)
	s.pages, s.endPages = context.WithCancelCause(context.Background())
	s.stopping, s.stop = context.WithCancelCause(context.Background())
	return s
}

// Handler returns the routes.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/v1/chat/completions", s.route(openaiDialect, s.chat, http.MethodPost))
	mux.Handle("/v1/responses", s.route(responsesDialect, s.responses, http.MethodPost))
	s.handleMessages(mux)
	mux.Handle("/v1/models", byClient(
		s.route(openaiDialect, s.listModels, http.MethodGet, http.MethodHead),
		s.route(anthropicDialect, s.anthropicModels, http.MethodGet, http.MethodHead)))
	mux.Handle("/v1/models/{id...}", byClient(
		s.route(openaiDialect, s.model, http.MethodGet, http.MethodHead),
		s.route(anthropicDialect, s.anthropicModel, http.MethodGet, http.MethodHead)))
	mux.Handle("/healthz", s.open(openaiDialect, s.healthz, http.MethodGet, http.MethodHead))
	mux.Handle("/readyz", s.open(openaiDialect, s.readyz, http.MethodGet, http.MethodHead))
	mux.Handle("/status", s.route(openaiDialect, s.status, http.MethodGet, http.MethodHead))
	for _, m := range s.options.Mounts {
		mux.Handle(m.Path, s.mount(m))
	}
	mux.Handle("/", s.route(openaiDialect, s.notFound))
	return s.cleanOnly(mux)
}

// Drain says by /readyz that the server is ending, for those who share requests out among
// several, and waits until no turn waits or runs, or for ctx's end, whose cause it returns.
// Turns that come meanwhile, or later, are answered; mounts are told to end when none is
// left. It is to be called once, before Shutdown.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.drained = make(chan struct{})
	if s.running == 0 {
		s.nothingRuns()
	}
	s.mu.Unlock()
	select {
	case <-s.drained:
		s.endPages(shuttingDown())
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ending reports whether Drain or Shutdown was called.
func (s *Server) ending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped || s.drained != nil
}

// Shutdown admits no more turns and ends those that wait or run: each client gets an
// error of kind turn.Shutdown. It waits until all are answered and their sessions
// closed, or returns the cause of ctx's end. The rest of the routes keep answering.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.stop(shuttingDown())
	s.endPages(shuttingDown())

	done := make(chan struct{})
	go func() { // ends with the last turn
		s.turns.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// enter counts a turn in until leave is called; an error of kind turn.Shutdown if it
// is too late.
func (s *Server) enter() (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, shuttingDown()
	}
	s.turns.Add(1)
	s.running++
	return s.leave, nil
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running--; s.running == 0 {
		s.nothingRuns()
	}
	s.turns.Done()
}

// nothingRuns tells Drain. The caller holds mu.
func (s *Server) nothingRuns() {
	if s.drained == nil {
		return
	}
	select {
	case <-s.drained:
	default:
		close(s.drained)
	}
}

func shuttingDown() *turn.Error {
	return &turn.Error{Kind: turn.Shutdown, Message: "the server is shutting down"}
}
