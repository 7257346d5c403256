package messagesapi

import (
	"context"
	"sync"
)

// Gate holds an answer back step by step, so that a test can let chunk n+1 go only
// after it has seen chunk n arrive. A step is one content_block_delta event, of any
// kind, or the end of the message (message_delta and message_stop); so an answer of
// n deltas takes n+1 steps: see Answer.Steps. What precedes the first step (the
// header, message_start, content_block_start) is not held. An answer that is not
// streamed takes one step.
//
// A held answer ends when the client disconnects or the server is closed. Answers
// that share a gate share its steps.
type Gate struct {
	mu      sync.Mutex
	allowed int           // steps released; guarded by mu
	passed  int           // steps taken; guarded by mu
	arrived int           // steps come to; guarded by mu
	open    bool          // guarded by mu
	changed chan struct{} // closed and replaced at every change; guarded by mu
}

// NewGate returns a shut gate.
func NewGate() *Gate { return &Gate{changed: make(chan struct{})} }

// Release lets one more step pass, now or when an answer comes to it.
func (g *Gate) Release() { g.change(func() { g.allowed++ }) }

// Open lets everything pass from now on.
func (g *Gate) Open() { g.change(func() { g.open = true }) }

// Arrived waits until answers have come to the n-th step (from 1), whether it has
// passed or not: everything before that step has then been written. The error is
// that of ctx.
func (g *Gate) Arrived(ctx context.Context, n int) error {
	return g.await(ctx, func() bool { return g.arrived >= n })
}

// pass takes one step. Its error is the cause of ctx.
func (g *Gate) pass(ctx context.Context) error {
	g.change(func() { g.arrived++ })
	return g.await(ctx, func() bool {
		switch {
		case g.open:
			return true
		case g.passed < g.allowed:
			g.passed++
			return true
		default:
			return false
		}
	})
}

// change runs f under mu and wakes all who wait.
func (g *Gate) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
	close(g.changed)
	g.changed = make(chan struct{})
}

// await waits until ready, which is called under mu, returns true.
func (g *Gate) await(ctx context.Context, ready func() bool) error {
	for {
		g.mu.Lock()
		ok, changed := ready(), g.changed
		g.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
