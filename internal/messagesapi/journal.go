package messagesapi

import (
	"context"
	"slices"
	"sync"
)

// journal holds the records of a server in order of arrival.
type journal struct {
	mu      sync.Mutex
	all     []*Recorded   // guarded by mu
	turns   []*Recorded   // guarded by mu
	changed chan struct{} // closed and replaced at every add; guarded by mu
}

func newJournal() *journal { return &journal{changed: make(chan struct{})} }

// add numbers a record and lets it be seen.
func (j *journal) add(rec *Recorded) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all = append(j.all, rec)
	rec.Seq = len(j.all)
	if rec.isTurn() {
		j.turns = append(j.turns, rec)
		rec.Turn = len(j.turns)
	}
	close(j.changed)
	j.changed = make(chan struct{})
}

// snapshot copies both lists and gives the channel that tells of the next change.
func (j *journal) snapshot() (all, turns []*Recorded, changed <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.all), slices.Clone(j.turns), j.changed
}

func (j *journal) reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all, j.turns = nil, nil
}

// Requests are all requests so far whose bodies have been read, in order.
func (s *Server) Requests() []*Recorded {
	all, _, _ := s.journal.snapshot()
	return all
}

// Turns are those of Requests that went to POST /v1/messages.
func (s *Server) Turns() []*Recorded {
	_, turns, _ := s.journal.snapshot()
	return turns
}

// Wait waits for the n-th request (from 1) since Start or Reset and returns it; its
// body has been read, its answer may not have begun. The error is that of ctx, or
// ErrClosed.
func (s *Server) Wait(ctx context.Context, n int) (*Recorded, error) {
	return s.wait(ctx, n, func(all, _ []*Recorded) []*Recorded { return all })
}

// WaitTurn is Wait for the n-th request to POST /v1/messages.
func (s *Server) WaitTurn(ctx context.Context, n int) (*Recorded, error) {
	return s.wait(ctx, n, func(_, turns []*Recorded) []*Recorded { return turns })
}

func (s *Server) wait(ctx context.Context, n int, pick func(all, turns []*Recorded) []*Recorded) (*Recorded, error) {
	for {
		all, turns, changed := s.journal.snapshot()
		if list := pick(all, turns); n >= 1 && len(list) >= n {
			return list[n-1], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-s.base.Done():
			return nil, ErrClosed
		}
	}
}

// Reset forgets all records and numbers from 1 again. Answers in progress go on;
// whoever holds their records can still wait for them. The script is untouched.
func (s *Server) Reset() { s.journal.reset() }
