package pool

import (
	"slices"
	"time"
)

// refill fills the shelf and replaces what is on it, until the pool is closed.
func (p *Pool[K, S]) refill() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		key, start, next, out := p.plan(time.Now())
		if err := closeAll(out); err != nil {
			p.options.Logger.Warn("a primed session did not close well", "err", err)
		}
		if start {
			p.start(key)
			continue
		}
		timer.Reset(time.Until(next))
		select {
		case <-timer.C:
		case <-p.wake:
		case <-p.ctx.Done():
			return
		}
	}
}

// plan says what to do now: which session is to go, whether to start one and for which
// key, and when to look again at the latest.
func (p *Pool[K, S]) plan(now time.Time) (key K, start bool, next time.Time, out []waiting[K, S]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sortOut(now)
	missing, surplus := p.compare(now)
	switch {
	case p.closed || p.booting > 0:
		return key, false, now.Add(p.options.MaxAge), nil // the end of a boot wakes it
	case len(missing) == 0:
		next = now.Add(p.options.MaxAge)
		for _, w := range p.shelf {
			if old := w.since.Add(p.options.MaxAge); old.Before(next) {
				next = old
			}
		}
		return key, false, next, nil
	case p.pause.After(now):
		return key, false, p.pause, nil
	}
	if surplus >= 0 {
		out = append(out, p.shelf[surplus])
		if p.old(p.shelf[surplus], now) {
			p.stats.Renewed++
		}
		p.shelf = slices.Delete(p.shelf, surplus, surplus+1)
	}
	return missing[0], true, now, out
}

// sortOut drops the sessions that have ended by themselves.
func (p *Pool[K, S]) sortOut(now time.Time) {
	p.shelf = slices.DeleteFunc(p.shelf, func(w waiting[K, S]) bool {
		ended := isClosed(w.session.Ended())
		if ended {
			p.stats.Died++
			p.hold(now)
		}
		return ended
	})
}

// hold starts no session for a while, the longer the more often it is called in a row.
func (p *Pool[K, S]) hold(now time.Time) {
	p.pause = now.Add(min(maxPause, firstPause<<min(p.deaths, 10)))
	p.deaths++
}

// compare returns the keys that the shelf lacks, the most wanted first, and the index of
// one session on it that is not wanted or too old, or -1.
func (p *Pool[K, S]) compare(now time.Time) (missing []K, surplus int) {
	surplus = -1
	missing = p.demand.wanted(p.options.Size)
	for i, w := range p.shelf {
		at := slices.Index(missing, w.key)
		if at >= 0 && !p.old(w, now) {
			missing = slices.Delete(missing, at, at+1)
		} else if surplus < 0 {
			surplus = i
		}
	}
	return missing, surplus
}

func (p *Pool[K, S]) old(w waiting[K, S], now time.Time) bool {
	return now.Sub(w.since) >= p.options.MaxAge
}

// start primes one session and returns when it is ready.
func (p *Pool[K, S]) start(key K) {
	s, err := p.options.Prime(key)
	if err != nil {
		p.options.Logger.Warn("no session could be primed", "err", err)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.hold(time.Now())
		return
	}
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.shelf = append(p.shelf, waiting[K, S]{key, s, time.Now()})
		p.tasks.Go(func() {
			select {
			case <-s.Ended():
				p.look()
			case <-p.ctx.Done():
			}
		})
	}
	p.mu.Unlock()
	if closed {
		if err := s.Close(); err != nil {
			p.options.Logger.Warn("a primed session did not close well", "err", err)
		}
		return
	}
	select {
	case <-s.Primed():
	case <-p.ctx.Done():
	}
}
