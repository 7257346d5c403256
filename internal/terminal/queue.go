package terminal

import "sync"

// queue holds a bounded number of bytes between two goroutines. Putting never
// blocks.
type queue struct {
	mu      sync.Mutex
	changed sync.Cond
	pending []byte // guarded by mu
	closed  bool   // guarded by mu
}

func newQueue() *queue {
	q := &queue{}
	q.changed.L = &q.mu
	return q
}

// put appends all of p, or nothing: it fails with ErrBacklog if more than limit
// bytes would be pending, and with ErrExited after close.
func (q *queue) put(p []byte, limit int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrExited
	}
	if len(q.pending)+len(p) > limit {
		return ErrBacklog
	}
	q.pending = append(q.pending, p...)
	q.changed.Signal()
	return nil
}

// take waits for pending bytes and moves as many as fit into p. It returns false
// when the queue is closed and empty.
func (q *queue) take(p []byte) (int, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.pending) == 0 && !q.closed {
		q.changed.Wait()
	}
	if len(q.pending) == 0 {
		return 0, false
	}
	n := copy(p, q.pending)
	q.pending = q.pending[n:]
	if len(q.pending) == 0 {
		q.pending = nil // gives a large backlog's memory back
	}
	return n, true
}

// drop discards what is pending.
func (q *queue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending = nil
}

// close ends put at once, and take after what is pending.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
