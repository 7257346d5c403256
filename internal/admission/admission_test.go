package admission

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// acquired is what became of an Acquire.
type acquired struct {
	release func()
	err     error
}

func acquire(ctx context.Context, g *Gate) <-chan acquired {
	c := make(chan acquired, 1)
	go func() {
		release, err := g.Acquire(ctx)
		c <- acquired{release, err}
	}()
	return c
}

func wantStats(t *testing.T, g *Gate, running, waiting int) {
	t.Helper()
	if got, want := g.Stats(), (Stats{running, waiting}); got != want {
		t.Errorf("stats are %+v, want %+v", got, want)
	}
}

func TestRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Options{Slots: 1, Queue: 1})
		first := <-acquire(t.Context(), g)
		second := acquire(t.Context(), g)
		synctest.Wait()

		_, err := g.Acquire(t.Context())
		refused, ok := errors.AsType[*Refused](err)
		if !ok || refused.RetryAfter != time.Second {
			t.Errorf("got %v, want a refusal with a retry after 1s", err)
		}
		wantStats(t, g, 1, 1)

		first.release()
		(<-second).release()
		wantStats(t, g, 0, 0)
	})
}

func TestReleaseIsIdempotent(t *testing.T) {
	g := New(Options{Slots: 2})
	one, _ := g.Acquire(t.Context())
	if _, err := g.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	one()
	one()
	wantStats(t, g, 1, 0)
}

func TestCanceledWaiterIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Options{Slots: 1, Queue: 1})
		first := <-acquire(t.Context(), g)
		gone := errors.New("the client has gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		second := acquire(ctx, g)
		synctest.Wait()
		cancel(gone)
		if got := <-second; got.err != gone {
			t.Errorf("got %v, want the cause of the context's end", got.err)
		}
		wantStats(t, g, 1, 0)

		third := acquire(t.Context(), g) // has the place now
		synctest.Wait()
		wantStats(t, g, 1, 1)
		first.release()
		(<-third).release()
	})
}

func TestAcquireWithEndedContext(t *testing.T) {
	g := New(Options{Slots: 1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Acquire(ctx); err != context.Canceled {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	wantStats(t, g, 0, 0)
}

// lateContext ends at the very moment at which its waiter is given a slot.
type lateContext struct {
	context.Context
	give  func()
	ended bool
}

func (c *lateContext) Done() <-chan struct{} {
	if !c.ended {
		c.ended = true
		c.give()
	}
	done := make(chan struct{})
	close(done)
	return done
}

func (c *lateContext) Err() error {
	if c.ended {
		return context.Canceled
	}
	return nil
}

// TestSlotTooLate pins that a slot given to a client that has gone is not lost,
// whichever of the two the client sees first.
func TestSlotTooLate(t *testing.T) {
	for range 100 {
		g := New(Options{Slots: 1, Queue: 1})
		give, _ := g.Acquire(t.Context())
		if _, err := g.Acquire(&lateContext{Context: context.Background(), give: give}); err != context.Canceled {
			t.Fatalf("got %v, want %v", err, context.Canceled)
		}
		wantStats(t, g, 0, 0)
	}
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Options{Slots: 1, Queue: 2})
		first := <-acquire(t.Context(), g)
		second, third := acquire(t.Context(), g), acquire(t.Context(), g)
		synctest.Wait()
		g.Close()
		g.Close()
		for _, c := range []<-chan acquired{second, third, acquire(t.Context(), g)} {
			if got := <-c; got.err != ErrClosed {
				t.Errorf("got %v, want ErrClosed", got.err)
			}
		}
		wantStats(t, g, 1, 0)
		first.release()
		wantStats(t, g, 0, 0)
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Unix(0, 0)
	for _, test := range []struct {
		held  time.Duration
		slots int
		queue int
		want  time.Duration
	}{
		{100 * time.Millisecond, 1, 0, time.Second},
		{10 * time.Second, 1, 0, 10 * time.Second},
		{10 * time.Second, 2, 0, 5 * time.Second},
		{10 * time.Second, 2, 3, 20 * time.Second},
		{time.Hour, 1, 0, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := New(Options{Slots: test.slots, Queue: test.queue, Now: func() time.Time { return now }})
			release, _ := g.Acquire(t.Context())
			now = now.Add(test.held)
			release()
			ctx, cancel := context.WithCancel(t.Context())
			for range test.slots + test.queue {
				acquire(ctx, g)
			}
			synctest.Wait()
			_, err := g.Acquire(ctx)
			if refused, ok := errors.AsType[*Refused](err); !ok || refused.RetryAfter != test.want {
				t.Errorf("%+v: got %v", test, err)
			}
			cancel()
		})
	}
}

// TestRetryAfterFollows pins that the average follows a change of pace.
func TestRetryAfterFollows(t *testing.T) {
	now := time.Unix(0, 0)
	g := New(Options{Slots: 1, Now: func() time.Time { return now }})
	hold := func(d time.Duration) {
		release, err := g.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(d)
		release()
	}
	hold(8 * time.Second)
	hold(16 * time.Second)
	if g.hold != 10*time.Second {
		t.Errorf("the average is %s, want 10s", g.hold)
	}
}

// op is a step of the property test: a client comes, or the client at an index leaves
// the queue or gives its slot back.
type op struct {
	kind  int // 0, 1, 2
	index int
}

// TestGateProperty runs a Gate beside a model of it: a list of who runs and a queue.
func TestGateProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		slots, queue := rapid.IntRange(1, 4).Draw(rt, "slots"), rapid.IntRange(0, 5).Draw(rt, "queue")
		ops := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) op {
			return op{rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(rt, "kind"), rapid.IntRange(0, 9).Draw(rt, "index")}
		}), 1, 60).Draw(rt, "ops")
		var failure error
		synctest.Test(t, func(t *testing.T) { failure = againstModel(t.Context(), slots, queue, ops) })
		if failure != nil {
			rt.Fatal(failure)
		}
	})
}

// client is one Acquire under way in the property test.
type client struct {
	cancel context.CancelFunc
	result <-chan acquired
}

func againstModel(ctx context.Context, slots, queue int, ops []op) error {
	g := New(Options{Slots: slots, Queue: queue})
	var running []acquired
	var waiting []client
	defer func() { // nothing may be left behind for the bubble
		for _, w := range waiting {
			w.cancel()
			if got := <-w.result; got.err == nil {
				got.release()
			}
		}
	}()
	for i, op := range ops {
		switch {
		case op.kind == 0:
			ctx, cancel := context.WithCancel(ctx)
			c := client{cancel, acquire(ctx, g)}
			synctest.Wait()
			switch {
			case len(running) < slots:
				running = append(running, <-c.result)
			case len(waiting) < queue:
				waiting = append(waiting, c)
			default:
				if _, ok := (<-c.result).err.(*Refused); !ok {
					return fmt.Errorf("step %d: not refused", i)
				}
			}
		case op.kind == 1 && len(waiting) > 0:
			at := op.index % len(waiting)
			waiting[at].cancel()
			if got := <-waiting[at].result; got.err != context.Canceled {
				return fmt.Errorf("step %d: canceled client got %v", i, got.err)
			}
			waiting = slices.Delete(waiting, at, at+1)
		case op.kind == 2 && len(running) > 0:
			at := op.index % len(running)
			running[at].release()
			running[at].release()
			running = slices.Delete(running, at, at+1)
			synctest.Wait()
			if len(waiting) > 0 { // the first one has it, and it alone
				running = append(running, <-waiting[0].result)
				waiting = waiting[1:]
			}
		}
		synctest.Wait()
		if got, want := g.Stats(), (Stats{len(running), len(waiting)}); got != want {
			return fmt.Errorf("step %d: stats are %+v, want %+v", i, got, want)
		}
		for _, w := range waiting {
			if len(w.result) > 0 {
				return fmt.Errorf("step %d: a client got in before its time", i)
			}
		}
	}
	return nil
}

// TestGateUnderLoad has many clients at once, some of which give up at random; the
// race detector looks on.
func TestGateUnderLoad(t *testing.T) {
	const slots = 3
	g := New(Options{Slots: slots, Queue: 8})
	var held, most atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(3) == 0 {
					go cancel()
				}
				release, err := g.Acquire(ctx)
				if err == nil {
					now := held.Add(1)
					for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
					}
					held.Add(-1)
					release()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if most.Load() > slots {
		t.Errorf("%d slots were held at once, there are %d", most.Load(), slots)
	}
	wantStats(t, g, 0, 0)
}
