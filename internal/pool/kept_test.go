package pool

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func newKept(size int) *Kept[string, *fake] {
	return NewKept[string, *fake](KeptOptions{Size: size, For: 5 * time.Minute, Logger: slog.New(slog.DiscardHandler)})
}

func newFake(number int) *fake {
	return &fake{number: number, primed: make(chan struct{}), running: make(chan struct{}), ended: make(chan struct{})}
}

func (k *Kept[K, S]) want(t *testing.T, want KeptStats) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, k.Stats()); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

func TestKeptIsGivenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(2)
		defer k.Close()
		first, second := newFake(1), newFake(2)
		if !k.Put("a", first) || !k.Put("a", second) {
			t.Fatal("not kept")
		}
		if _, ok := k.Take("b"); ok {
			t.Error("took what was put under another key")
		}
		for _, want := range []*fake{second, first} {
			if got, ok := k.Take("a"); !ok || got != want {
				t.Errorf("got %+v, %v", got, ok)
			}
		}
		if _, ok := k.Take("a"); ok {
			t.Error("a session was given twice")
		}
		k.want(t, KeptStats{Hits: 2})
		if isClosed(first.ended) || isClosed(second.ended) {
			t.Error("a session was closed that is its taker's")
		}
	})
}

func TestKeptMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(2)
		defer k.Close()
		list := []*fake{newFake(0), newFake(1), newFake(2)}
		for _, s := range list {
			k.Put("a", s)
		}
		k.want(t, KeptStats{Kept: 2, Evicted: 1})
		if !isClosed(list[0].ended) || isClosed(list[1].ended) {
			t.Error("not the oldest was closed")
		}
	})
}

// A session that is kept anew is kept for the whole time again.
func TestKeptExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(2)
		defer k.Close()
		s := newFake(1)
		k.Put("a", s)
		time.Sleep(4 * time.Minute)
		k.Take("a")
		k.Put("b", s)
		time.Sleep(4 * time.Minute)
		k.want(t, KeptStats{Kept: 1, Hits: 1})
		time.Sleep(time.Minute)
		k.want(t, KeptStats{Hits: 1, Expired: 1})
		if !isClosed(s.ended) {
			t.Error("it was not closed")
		}
	})
}

func TestKeptDropsTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(2)
		defer k.Close()
		s := newFake(1)
		k.Put("a", s)
		_ = s.Close()
		if _, ok := k.Take("a"); ok {
			t.Error("a dead session was given")
		}
		k.want(t, KeptStats{Died: 1})
	})
}

func TestKeptNone(t *testing.T) {
	k := newKept(0)
	if k.Put("a", newFake(1)) {
		t.Error("it keeps what it must not")
	}
	k.Close()
	k = newKept(1)
	k.Close()
	if k.Put("a", newFake(1)) {
		t.Error("it keeps after Close")
	}
}

// Whatever is done: at most Size are kept, none is given twice, and at the end all that
// were not given are closed.
func TestKeptProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(0, 3).Draw(rt, "size")
		steps := rapid.SliceOfN(rapid.IntRange(0, 6), 1, 40).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			k := newKept(size)
			var all []*fake
			mine := map[*fake]bool{} // with the test
			for _, step := range steps {
				synctest.Wait()
				key := string(rune('a' + step%2))
				switch step {
				case 0, 1, 2:
					s := newFake(len(all))
					all = append(all, s)
					mine[s] = !k.Put(key, s)
				case 3, 4:
					if s, ok := k.Take(key); ok {
						if mine[s] || isClosed(s.ended) {
							t.Fatalf("given twice, or dead: %+v", s)
						}
						mine[s] = true
					}
				case 5:
					time.Sleep(2 * time.Minute)
				case 6:
					if len(all) > 0 {
						_ = all[len(all)-1].Close()
					}
				}
				if got := k.Stats(); got.Kept > size {
					t.Fatalf("%d are kept, of at most %d", got.Kept, size)
				}
			}
			k.Close()
			for _, s := range all {
				if !mine[s] && !isClosed(s.ended) {
					t.Errorf("%+v was left", s)
				}
			}
		})
	})
}
