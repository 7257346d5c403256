// Package admission decides who may run: so many at once, so many more waiting in
// order of arrival, and everybody else is refused at once with an honest hint when to
// come back. It is pure: it knows neither requests nor sessions.
package admission

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrClosed is the refusal of everybody who waits at Close or comes after it.
var ErrClosed = errors.New("admission is closed")

// Refused is returned at once if all slots are taken and the queue is full.
type Refused struct {
	// RetryAfter is about how long the clients now running and waiting will take,
	// judged by how long slots were held lately.
	RetryAfter time.Duration
}

func (r *Refused) Error() string {
	return fmt.Sprintf("all slots are taken and the queue is full, retry after %s", r.RetryAfter)
}

// Bounds of Refused.RetryAfter. The upper one is what the OpenAI and Anthropic SDKs
// still honour; they take a longer wait for a mistake and come back sooner.
const (
	minRetry = time.Second
	maxRetry = time.Minute
)

// Options are the limits of a Gate.
type Options struct {
	Slots int              // how many may run at once; less than 1 counts as 1
	Queue int              // how many more may wait; less than 0 counts as 0
	Now   func() time.Time // the clock; nil for time.Now
}

// Stats is a snapshot of a Gate.
type Stats struct {
	Running int // slots held
	Waiting int // clients in the queue
}

// Gate lends slots. Its methods may be called from any goroutine.
type Gate struct {
	slots, queue int
	now          func() time.Time

	mu      sync.Mutex
	running int           // guarded by mu
	waiting list.List     // of *waiter, the first is next; guarded by mu
	hold    time.Duration // recent average of how long a slot is held; guarded by mu
	closed  bool          // guarded by mu
}

// waiter is a client in the queue. Whoever takes it off the queue decides: a slot or
// an error is set first and then settled is closed.
type waiter struct {
	settled chan struct{}
	err     error // nil if a slot was given; guarded by Gate.mu until settled is closed
}

// New makes a Gate with all its slots free.
func New(o Options) *Gate {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Gate{slots: max(o.Slots, 1), queue: max(o.Queue, 0), now: o.Now}
}

// Limits returns how many may run at once, and how many more may wait.
func (g *Gate) Limits() (slots, queue int) { return g.slots, g.queue }

// Acquire returns a slot, waiting for it in order of arrival if it must. The slot is
// held until release is called; only the first call counts.
//
// The error is a *Refused if there is no room to wait, ErrClosed after Close, and
// context.Cause(ctx) if ctx ended first: the place in the queue is then free again.
func (g *Gate) Acquire(ctx context.Context) (release func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	g.mu.Lock()
	switch {
	case g.closed:
		g.mu.Unlock()
		return nil, ErrClosed
	case g.running < g.slots: // then nobody waits
		g.running++
		g.mu.Unlock()
		return g.lend(), nil
	case g.waiting.Len() >= g.queue:
		defer g.mu.Unlock()
		return nil, &Refused{RetryAfter: g.retryAfter()}
	}
	w := &waiter{settled: make(chan struct{})}
	place := g.waiting.PushBack(w)
	g.mu.Unlock()

	select {
	case <-w.settled:
	case <-ctx.Done():
		if g.forget(w, place) {
			return nil, context.Cause(ctx)
		}
	}
	if w.err != nil {
		return nil, w.err
	}
	release = g.lend()
	if ctx.Err() != nil { // the slot came too late: the next one has it
		release()
		return nil, context.Cause(ctx)
	}
	return release, nil
}

// forget takes a waiter off the queue; false if it has been settled meanwhile.
func (g *Gate) forget(w *waiter, place *list.Element) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.settled:
		return false
	default:
		g.waiting.Remove(place)
		return true
	}
}

// lend makes the release of a slot that is already counted as running.
func (g *Gate) lend() func() {
	since := g.now()
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.learn(g.now().Sub(since))
		if next := g.waiting.Front(); next != nil {
			g.settle(next, nil) // the slot changes hands: running stays
			return
		}
		g.running--
	})
}

// settle takes a waiter off the queue and wakes it. The caller holds mu.
func (g *Gate) settle(place *list.Element, err error) {
	w := g.waiting.Remove(place).(*waiter)
	w.err = err
	close(w.settled)
}

// learn moves the average by a quarter of the way. The caller holds mu.
func (g *Gate) learn(held time.Duration) {
	if g.hold == 0 {
		g.hold = held
		return
	}
	g.hold += (held - g.hold) / 4
}

// retryAfter is when a client that had found room would get its slot. The caller
// holds mu.
func (g *Gate) retryAfter() time.Duration {
	wait := g.hold * time.Duration(g.waiting.Len()+1) / time.Duration(g.slots)
	return min(max(wait, minRetry), maxRetry)
}

// Stats returns how many run and wait now.
func (g *Gate) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Stats{Running: g.running, Waiting: g.waiting.Len()}
}

// Close refuses all who wait and all who come later. Slots already lent are not
// waited for: they are given back as ever.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for next := g.waiting.Front(); next != nil; next = g.waiting.Front() {
		g.settle(next, ErrClosed)
	}
}
