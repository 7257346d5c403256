package transcript

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Options are a follower's; the zero value is usable.
type Options struct {
	// Poll is how often the file is looked at when nothing announces a change. It is
	// a net under the notifications, and all there is where they cannot be had. While
	// looks find nothing they become fewer, down to a quarter, until Poke or a change.
	// 0 means 100 ms.
	Poll time.Duration

	// MaxLine bounds a line, and with it the memory a follower takes. 0 means 64 MiB.
	MaxLine int

	// Skipped, if set, is told of each line that does not parse: where it begins, how
	// long it is and why, never what it says. The follower's goroutine calls it, and
	// waits.
	Skipped func(offset int64, length int, err error)

	newWatcher func() (*fsnotify.Watcher, error) // nil means fsnotify's
}

const (
	defaultPoll    = 100 * time.Millisecond
	defaultMaxLine = 64 << 20
	maxRarer       = 4 // how much rarer looks become than Options.Poll
)

// Follower delivers what is appended to a transcript. Its goroutine lives until Close,
// or until the file cannot be followed any more.
type Follower struct {
	opts    Options
	tail    *tail             // owned by run
	watcher *fsnotify.Watcher // owned by run; nil if there is polling alone
	next    time.Duration     // owned by run; when the file is looked at if nothing comes

	events      <-chan fsnotify.Event // owned by run; nil if there are none
	watchErrors <-chan error          // owned by run; nil if there are none

	records chan Record
	poke    chan struct{}
	stop    chan struct{}
	stopped sync.Once
	done    chan struct{} // closed when run has returned

	mu    sync.Mutex
	stats Stats // guarded by mu
	err   error // guarded by mu
}

// Stats counts what a follower has done.
type Stats struct {
	Records  int64 // delivered
	Skipped  int64 // lines that did not parse
	Offset   int64 // behind the last line that was delivered or skipped
	Notified bool  // the system announces changes; otherwise they are found by polling
}

// Follow delivers the records behind offset in the transcript at path, in order: those
// that are there and those that will be. offset is the beginning of a line, as given by
// Write. The file need not exist yet, but its folder must; when the file is first seen it
// must reach to offset. A line counts as written once its newline is there.
//
// The caller must Close the follower.
func Follow(path string, offset int64, opts Options) (*Follower, error) {
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("transcript: follow: %w", err)
	}
	if offset < 0 {
		return nil, errors.New("transcript: follow: negative offset")
	}
	if opts.Poll <= 0 {
		opts.Poll = defaultPoll
	}
	if opts.MaxLine <= 0 {
		opts.MaxLine = defaultMaxLine
	}
	if opts.newWatcher == nil {
		opts.newWatcher = fsnotify.NewWatcher
	}
	f := &Follower{
		opts:    opts,
		tail:    newTail(path, offset, opts.MaxLine),
		watcher: watch(dir, opts.newWatcher),
		records: make(chan Record),
		poke:    make(chan struct{}, 1),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	f.stats = Stats{Offset: offset, Notified: f.watcher != nil}
	go f.run()
	return f, nil
}

// watch returns nil if the system grants no notifications: it limits how many of them
// a user may have, and one follower more must not fail for that.
func watch(dir string, newWatcher func() (*fsnotify.Watcher, error)) *fsnotify.Watcher {
	watcher, err := newWatcher()
	if err != nil {
		return nil
	}
	if watcher.Add(dir) != nil {
		watcher.Close()
		return nil
	}
	return watcher
}

// Records delivers the records. While nobody receives, nothing more is read. It is
// closed when the follower has ended; Err then says why.
func (f *Follower) Records() <-chan Record { return f.records }

// Poke makes the follower look at the file now. It does not wait. For a caller that
// knows that records are due.
func (f *Follower) Poke() {
	select {
	case f.poke <- struct{}{}:
	default: // a look that has not begun yet is due already
	}
}

// Err is why the follower ended by itself: ErrRewritten, ErrReplaced, ErrLineTooLong or
// an error of the file system. It is nil while the follower works and after Close.
func (f *Follower) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Stats may be called at any time.
func (f *Follower) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats
}

// Close ends the follower and waits until its goroutine is gone. Records that were not
// received are lost. It may be called more than once and from several goroutines.
func (f *Follower) Close() {
	f.stopped.Do(func() { close(f.stop) })
	<-f.done
}

// errStopped ends run because of Close.
var errStopped = errors.New("stopped")

func (f *Follower) run() {
	defer close(f.done)
	defer close(f.records)
	defer f.tail.close()
	if f.watcher != nil {
		defer f.watcher.Close()
		f.events, f.watchErrors = f.watcher.Events, f.watcher.Errors
	}
	f.next = f.opts.Poll
	timer := time.NewTimer(f.next)
	defer timer.Stop()
	for {
		seen := f.tail.pos
		if err := f.deliver(); err != nil {
			f.fail(err)
			return
		}
		if f.tail.pos != seen {
			f.next = f.opts.Poll
		}
		timer.Reset(f.next)
		if !f.wait(timer.C) {
			return
		}
	}
}

// wait returns true when the file should be looked at, false when Close was called.
func (f *Follower) wait(tick <-chan time.Time) bool {
	name := filepath.Base(f.tail.path)
	for {
		select {
		case <-f.stop:
			return false
		case <-f.poke:
			f.next = f.opts.Poll
			return true
		case <-tick:
			f.next = min(2*f.next, maxRarer*f.opts.Poll)
			return true
		case event, ok := <-f.events:
			if !ok {
				f.events = nil
			} else if filepath.Base(event.Name) == name {
				return true
			}
		case _, ok := <-f.watchErrors:
			if ok { // events were lost, perhaps ours
				return true
			}
			f.watchErrors = nil
		}
	}
}

// deliver hands out every whole line there is.
func (f *Follower) deliver() error {
	for {
		line, at, err := f.tail.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		record, err := Parse(line)
		if err != nil {
			if f.opts.Skipped != nil {
				f.opts.Skipped(at, len(line), err)
			}
			f.count(0, 1)
			continue
		}
		select {
		case f.records <- record:
			f.count(1, 0)
		case <-f.stop:
			return errStopped
		}
	}
}

func (f *Follower) count(records, skipped int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Records += records
	f.stats.Skipped += skipped
	f.stats.Offset = f.tail.offset()
}

func (f *Follower) fail(err error) {
	if err == errStopped {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}
