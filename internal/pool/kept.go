package pool

import (
	"log/slog"
	"slices"
	"sync"
	"time"
)

// KeptOptions configure a Kept.
type KeptOptions struct {
	Size   int           // the most that is kept; 0 for none
	For    time.Duration // how long a session is kept that nobody asks for; required
	Logger *slog.Logger  // required
}

// Kept keeps sessions after their answers, each under a key for what may follow.
type Kept[K comparable, S Session] struct {
	options KeptOptions
	tasks   sync.WaitGroup

	mu     sync.Mutex
	list   []*keeping[K, S] // guarded by mu, as all below; oldest first
	stats  KeptStats
	closed bool
}

type keeping[K comparable, S Session] struct {
	key     K
	session S
	out     chan struct{} // closed when it leaves the list
}

// KeptStats are figures for the operator.
type KeptStats struct {
	Kept    int   // sessions that wait
	Hits    int64 // takes that there was one for
	Evicted int64 // closed to make room for another
	Expired int64 // closed because nobody asked for them
	Died    int64 // ended by themselves while they waited
}

// NewKept returns a Kept, which must be closed.
func NewKept[K comparable, S Session](o KeptOptions) *Kept[K, S] {
	return &Kept[K, S]{options: o}
}

// Put takes the session over, to keep or close it. It returns false, and does nothing, if
// none are kept.
func (k *Kept[K, S]) Put(key K, s S) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.options.Size == 0 {
		return false
	}
	if len(k.list) >= k.options.Size {
		k.stats.Evicted++
		k.close(k.remove(0))
	}
	kept := &keeping[K, S]{key, s, make(chan struct{})}
	k.list = append(k.list, kept)
	k.tasks.Go(func() { k.watch(kept) })
	return true
}

// Take gives out the session that was put under the key last, if there is one. It is its
// taker's to close.
func (k *Kept[K, S]) Take(key K) (s S, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, kept := range slices.Backward(k.list) {
		if kept.key == key && !isClosed(kept.session.Ended()) {
			k.stats.Hits++
			return k.remove(i), true
		}
	}
	return s, false
}

// remove takes a session off the list. mu is held.
func (k *Kept[K, S]) remove(i int) S {
	s := k.list[i].session
	close(k.list[i].out)
	k.list = slices.Delete(k.list, i, i+1)
	return s
}

// watch drops a session when its time is over or it has ended.
func (k *Kept[K, S]) watch(kept *keeping[K, S]) {
	expiry := time.NewTimer(k.options.For)
	defer expiry.Stop()
	select {
	case <-expiry.C:
	case <-kept.session.Ended():
	case <-kept.out:
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.Index(k.list, kept)
	if i < 0 {
		return // it was taken meanwhile
	}
	s := k.remove(i)
	if isClosed(s.Ended()) {
		k.stats.Died++
		return
	}
	k.stats.Expired++
	k.close(s)
}

// close ends a session while others go on. mu is held.
func (k *Kept[K, S]) close(s S) {
	k.tasks.Go(func() {
		if err := s.Close(); err != nil {
			k.options.Logger.Warn("a kept session did not close well", "err", err)
		}
	})
}

// Stats returns the figures now.
func (k *Kept[K, S]) Stats() KeptStats {
	k.mu.Lock()
	defer k.mu.Unlock()
	stats := k.stats
	stats.Kept = len(k.list)
	return stats
}

// Close ends the sessions that are kept and returns when nothing of them is left.
func (k *Kept[K, S]) Close() {
	k.mu.Lock()
	k.closed = true
	for len(k.list) > 0 {
		k.close(k.remove(0))
	}
	k.mu.Unlock()
	k.tasks.Wait()
}
