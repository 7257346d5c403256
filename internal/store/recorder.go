package store

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// The wait after a write that failed, which doubles up to the longest.
	firstRetry, longestRetry = time.Second, time.Minute
	// lastWrite bounds the write at the end.
	lastWrite = 3 * time.Second
	// mostModels is how many names of models a day's lines may have: clients make them up.
	// The rest are counted under OtherModels.
	mostModels = 256
	// mostModelName is the most that is kept of a name, in bytes.
	mostModelName = 128
	// OtherModels stands for the names beyond what is kept apart.
	OtherModels = "(other)"
)

// Usage is what a Recorder writes to: a *Store.
type Usage interface {
	AddTurns(ctx context.Context, turns []Turns) error
	Prune(ctx context.Context, before string) error
}

// Recorder writes turns into a store as they end, without anyone waiting for it: one
// goroutine writes what has come while it wrote before. So a turn is on disk some
// milliseconds after its end, or after that of the writing before it. While the store
// cannot be written, turns are added up in memory, in lines whose number is bounded.
type Recorder struct {
	store Usage
	keep  time.Duration
	log   *slog.Logger
	wake  chan struct{}      // holds one while there may be something to write
	stop  context.CancelFunc // also of a write that waits for another process
	done  chan struct{}

	mu        sync.Mutex
	unwritten map[Line]Turns      // guarded by mu, as all below
	modelDay  string              // that models is of
	models    map[string]struct{} // seen on modelDay
	failures  int64
	failing   bool
}

// Record starts a Recorder, which must be closed. Usage that is older than keep is
// removed at the start and then each day; 0 keeps all.
func Record(store Usage, keep time.Duration, logger *slog.Logger) *Recorder {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Recorder{
		store: store, keep: keep, log: logger,
		wake: make(chan struct{}, 1), stop: cancel, done: make(chan struct{}),
		unwritten: map[Line]Turns{},
	}
	go r.run(ctx)
	return r
}

// Add takes turns, to be written soon. It never waits for the store.
func (r *Recorder) Add(t Turns) {
	r.mu.Lock()
	t.Model = r.modelName(t.Day, t.Model)
	r.merge(t)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// modelName is the name that a model is counted under. mu is held, as in merge.
func (r *Recorder) modelName(day, name string) string {
	name = strings.ToValidUTF8(name[:min(len(name), mostModelName)], "")
	if day > r.modelDay {
		r.modelDay, r.models = day, map[string]struct{}{}
	}
	if _, seen := r.models[name]; !seen && len(r.models) >= mostModels {
		return OtherModels
	}
	r.models[name] = struct{}{}
	return name
}

func (r *Recorder) merge(t Turns) {
	sum := r.unwritten[t.Line]
	sum.Line = t.Line
	sum.add(t)
	r.unwritten[t.Line] = sum
}

// RecorderStats are figures for the operator.
type RecorderStats struct {
	Unwritten int64 // turns that are not in the store yet
	Failures  int64 // writes that have failed and were tried again
	Failing   bool  // the last one has
}

// Stats returns the figures at this moment.
func (r *Recorder) Stats() RecorderStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := RecorderStats{Failures: r.failures, Failing: r.failing}
	for _, t := range r.unwritten {
		s.Unwritten += t.Count
	}
	return s
}

// Close writes what there is, for 3 s at the most, and ends the Recorder. What could not
// be written is lost, and logged.
func (r *Recorder) Close() {
	r.stop()
	<-r.done
}

func (r *Recorder) run(ctx context.Context) {
	defer close(r.done)
	day := time.NewTicker(24 * time.Hour)
	defer day.Stop()
	r.prune(ctx)
	wait := firstRetry
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			r.writeLast()
			return
		case <-day.C:
			r.prune(ctx)
			continue
		case <-retry:
		case <-r.wake:
			if retry != nil {
				continue // the retry will write it too
			}
		}
		if retry = nil; r.write(ctx) {
			wait = firstRetry
			continue
		}
		retry = time.After(wait)
		wait = min(2*wait, longestRetry)
	}
}

// write writes all that there is, and reports whether it has.
func (r *Recorder) write(ctx context.Context) bool {
	r.mu.Lock()
	turns := r.unwritten
	r.unwritten = map[Line]Turns{}
	r.mu.Unlock()
	if len(turns) == 0 {
		return true
	}
	err := r.store.AddTurns(ctx, slices.Collect(maps.Values(turns)))
	r.mu.Lock()
	was := r.failing
	r.failing = err != nil
	if err != nil {
		r.failures++
		for _, t := range turns {
			r.merge(t)
		}
	}
	r.mu.Unlock()
	switch {
	case err != nil && ctx.Err() != nil: // writeLast comes next
	case err != nil && !was:
		r.log.Error("usage cannot be written; turns go on, and it is tried again", "err", err)
	case err == nil && was:
		r.log.Info("usage is written again")
	}
	return err == nil
}

func (r *Recorder) writeLast() {
	ctx, cancel := context.WithTimeout(context.Background(), lastWrite)
	defer cancel()
	if !r.write(ctx) {
		r.log.Error("usage is lost that could not be written before the end", "turns", r.Stats().Unwritten)
	}
}

func (r *Recorder) prune(ctx context.Context) {
	if r.keep <= 0 {
		return
	}
	if err := r.store.Prune(ctx, Day(time.Now().Add(-r.keep))); err != nil && ctx.Err() == nil {
		r.log.Warn("old usage could not be removed; it is tried again in a day", "err", err)
	}
}
