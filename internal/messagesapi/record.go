package messagesapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Outcome says how the answer to a request ended.
type Outcome string

const (
	// Pending: the answer has not ended yet.
	Pending Outcome = ""
	// Completed: all of the answer was written, an HTTP error included.
	Completed Outcome = "completed"
	// Faulted: a scripted fault ended it.
	Faulted Outcome = "faulted"
	// Disconnected: the client's connection went away first.
	Disconnected Outcome = "disconnected"
	// Closed: the server was closed first.
	Closed Outcome = "closed"
)

// Recorded is one request as it came in, and what has become of its answer. The
// exported fields do not change once it can be seen and must not be changed.
type Recorded struct {
	// Seq numbers all requests, Turn only those to POST /v1/messages (zero for the
	// others), from 1 since Start or Reset.
	Seq, Turn int
	// Method, Path and Query (without the question mark) are those of the request line.
	Method, Path, Query string
	// Header is a copy of the request's.
	Header http.Header
	// Body is the request's, byte for byte; what came of it if BodyErr is set.
	Body    []byte
	BodyErr error
	// Arrived is when the header had been read.
	Arrived time.Time

	done chan struct{} // closed by finish

	mu        sync.Mutex
	outcome   Outcome   // guarded by mu
	firstByte time.Time // guarded by mu
	lastByte  time.Time // guarded by mu
	events    []Sent    // guarded by mu
}

// Sent is one SSE event of an answer and when it had been written.
type Sent struct {
	Name string
	At   time.Time
}

// newRecorded reads the body to its end.
func newRecorded(r *http.Request, body io.Reader) *Recorded {
	rec := &Recorded{
		Method:  r.Method,
		Path:    r.URL.Path,
		Query:   r.URL.RawQuery,
		Header:  r.Header.Clone(),
		Arrived: time.Now(),
		done:    make(chan struct{}),
	}
	rec.Body, rec.BodyErr = io.ReadAll(body)
	return rec
}

// Done is closed when the answer has ended, in whatever way: see Outcome. For an
// answer that hangs or is paced this is the moment the client's connection went.
func (r *Recorded) Done() <-chan struct{} { return r.done }

// Outcome is Pending until Done is closed.
func (r *Recorded) Outcome() Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outcome
}

// Wait waits for Done. Its error is that of ctx.
func (r *Recorded) Wait(ctx context.Context) (Outcome, error) {
	select {
	case <-r.done:
		return r.Outcome(), nil
	case <-ctx.Done():
		return Pending, context.Cause(ctx)
	}
}

// FirstByte is when the first byte of the answer (its header) was written; zero if
// none was.
func (r *Recorded) FirstByte() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.firstByte
}

// LastByte is when the answer was last written to; zero if it never was.
func (r *Recorded) LastByte() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastByte
}

// Events are the SSE events written so far, in order.
func (r *Recorded) Events() []Sent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func (r *Recorded) isTurn() bool {
	return r.Method == http.MethodPost && r.Path == "/v1/messages"
}

// wrote notes that bytes have gone out.
func (r *Recorded) wrote() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastByte = time.Now()
	if r.firstByte.IsZero() {
		r.firstByte = r.lastByte
	}
}

func (r *Recorded) sent(event string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, Sent{Name: event, At: time.Now()})
}

func (r *Recorded) finish(o Outcome) {
	r.mu.Lock()
	r.outcome = o
	r.mu.Unlock()
	close(r.done)
}

// outcomeOf classifies the error that ended an answer under ctx.
func outcomeOf(ctx context.Context, err error) Outcome {
	switch {
	case err == nil:
		return Completed
	case errors.Is(err, errFaulted):
		return Faulted
	case errors.Is(context.Cause(ctx), ErrClosed):
		return Closed
	default:
		return Disconnected
	}
}
