package terminal

import "sync"

// Queue holds a bounded number of bytes between two goroutines. Putting never
// blocks.
type Queue struct {
	mu      sync.Mutex
	changed sync.Cond
	pending []byte // guarded by mu
	closed  bool   // guarded by mu
}

// NewQueue returns an empty Queue.
func NewQueue() *Queue {
	q := &Queue{}
	q.changed.L = &q.mu
	return q
}

// Put appends all of p, or nothing: it fails with ErrBacklog if more than limit
// bytes would be pending, and with ErrExited after Close.
func (q *Queue) Put(p []byte, limit int) error {
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

// Take waits for pending bytes and moves as many as fit into p. It returns false
// when the queue is closed and empty.
func (q *Queue) Take(p []byte) (int, bool) {
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

// Drop discards what is pending.
func (q *Queue) Drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending = nil
}

// Close ends Put at once, and Take after what is pending.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
