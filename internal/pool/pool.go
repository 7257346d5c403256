// Package pool keeps sessions that are started before anyone has asked for them, lends
// one and replaces it. It does not know what a session is, nor what is done with it:
// once lent, it is its borrower's to close.
package pool

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Session is what a pool keeps.
type Session interface {
	// Primed is closed when the session is ready to be lent, or has ended.
	Primed() <-chan struct{}
	// Running is closed when a lent session has done what its start takes the processor
	// for, or has ended.
	Running() <-chan struct{}
	// Ended is closed when the session is over, by itself or by Close.
	Ended() <-chan struct{}
	// Close ends the session and waits for it.
	Close() error
}

// Options configure a Pool.
type Options[K comparable, S Session] struct {
	Size   int                // the most that is kept; 0 for none
	MaxAge time.Duration      // a session that has waited so long is replaced; required
	Prime  func(K) (S, error) // starts a session for that key; required
	First  []K                // what is expected before anything is asked for
	Logger *slog.Logger       // required
}

// ErrClosed is returned by Take once the pool is closed.
var ErrClosed = errors.New("the pool is closed")

const (
	// firstPause and maxPause bound how long no session is started after one that has
	// ended by itself: a CLI that cannot start must not be started for ever.
	firstPause = time.Second
	maxPause   = time.Minute
)

// Stats are figures for the operator.
type Stats struct {
	Primed  int   // sessions that wait
	Hits    int64 // takes that one was waiting for
	Misses  int64 // takes that had to start one
	Renewed int64 // replaced for their age
	Died    int64 // ended by themselves while they waited
}

// Pool keeps primed sessions for the keys that recent takes have asked for. One at a
// time is started, and none while a lent one still boots: that one's client waits.
type Pool[K comparable, S Session] struct {
	options Options[K, S]
	wake    chan struct{} // to refill, which looks again
	tasks   sync.WaitGroup
	ctx     context.Context
	cancel  context.CancelFunc

	mu      sync.Mutex
	shelf   []waiting[K, S] // guarded by mu, as all below; oldest first
	demand  demand[K]
	booting int       // lent sessions that are not running yet
	deaths  int       // in a row
	pause   time.Time // until then none is started
	stats   Stats
	closed  bool
}

type waiting[K comparable, S Session] struct {
	key     K
	session S
	since   time.Time
}

// New starts a pool, which begins to fill itself. It must be closed.
func New[K comparable, S Session](o Options[K, S]) *Pool[K, S] {
	p := &Pool[K, S]{options: o, wake: make(chan struct{}, 1)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for _, key := range o.First {
		p.demand.note(key)
	}
	if o.Size > 0 {
		p.tasks.Go(p.refill)
	}
	return p
}

// Take lends a session for the key: one that waits, or else one that is started now.
// waited says which. Errors: ErrClosed, and those of Options.Prime.
func (p *Pool[K, S]) Take(key K) (s S, waited bool, err error) {
	s, waited, err = p.fromShelf(key)
	if err != nil || waited {
		return s, waited, err
	}
	if s, err = p.options.Prime(key); err != nil {
		return s, false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lent(s)
	return s, false, nil
}

func (p *Pool[K, S]) fromShelf(key K) (s S, ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return s, false, ErrClosed
	}
	p.demand.note(key)
	for i, w := range p.shelf {
		if w.key == key && !isClosed(w.session.Ended()) {
			p.shelf = append(p.shelf[:i], p.shelf[i+1:]...)
			p.stats.Hits++
			p.deaths = 0
			p.lent(w.session)
			return w.session, true, nil
		}
	}
	p.stats.Misses++
	return s, false, nil
}

// lent watches a session that is with its borrower until it runs. mu is held.
func (p *Pool[K, S]) lent(s S) {
	if p.closed {
		return
	}
	p.booting++
	p.tasks.Go(func() {
		select {
		case <-s.Running():
		case <-p.ctx.Done():
		}
		p.mu.Lock()
		p.booting--
		p.mu.Unlock()
		p.look()
	})
}

// look has refill look again.
func (p *Pool[K, S]) look() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Stats returns the figures now.
func (p *Pool[K, S]) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	stats := p.stats
	stats.Primed = len(p.shelf)
	return stats
}

// Close ends the sessions that wait and returns when nothing of them is left. Those
// that are lent are their borrowers'.
func (p *Pool[K, S]) Close() error {
	p.mu.Lock()
	p.closed = true
	shelf := p.shelf
	p.shelf = nil
	p.mu.Unlock()
	p.cancel()
	err := closeAll(shelf)
	p.tasks.Wait()
	return err
}

func closeAll[K comparable, S Session](list []waiting[K, S]) error {
	errs := make([]error, len(list))
	var closing sync.WaitGroup
	for i, w := range list {
		closing.Go(func() { errs[i] = w.session.Close() })
	}
	closing.Wait()
	return errors.Join(errs...)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
