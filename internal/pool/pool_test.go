package pool

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a session of a test's.
type fake struct {
	key                    string
	number                 int
	primed, running, ended chan struct{}
	once                   sync.Once
}

func (f *fake) Primed() <-chan struct{}  { return f.primed }
func (f *fake) Running() <-chan struct{} { return f.running }
func (f *fake) Ended() <-chan struct{}   { return f.ended }

func (f *fake) Close() error {
	f.once.Do(func() {
		for _, c := range []chan struct{}{f.primed, f.running, f.ended} {
			if !isClosed(c) {
				close(c)
			}
		}
	})
	return nil
}

// rig is a pool and what it has started.
type rig struct {
	*Pool[string, *fake]
	log bytes.Buffer

	mu      sync.Mutex
	started []*fake
	broken  bool // nothing starts
	slow    bool // nothing is primed by itself
}

func newRig(size int, first ...string) *rig {
	r := &rig{}
	r.Pool = New(Options[string, *fake]{
		Size: size, MaxAge: time.Hour, First: first, Prime: r.prime,
		Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
	})
	return r
}

func (r *rig) prime(key string) (*fake, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken {
		return nil, errors.New("it is broken")
	}
	f := &fake{
		key: key, number: len(r.started),
		primed: make(chan struct{}), running: make(chan struct{}), ended: make(chan struct{}),
	}
	r.started = append(r.started, f)
	if !r.slow {
		close(f.primed)
	}
	return f, nil
}

// keys are those of all sessions started so far, in order.
func (r *rig) keys() string {
	var keys []string
	for _, f := range r.all() {
		keys = append(keys, f.key)
	}
	return strings.Join(keys, " ")
}

// all are the sessions started so far, once nothing moves.
func (r *rig) all() []*fake {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.started)
}

func (r *rig) wantKeys(t *testing.T, want string) {
	t.Helper()
	if got := r.keys(); got != want {
		t.Fatalf("started %q, want %q", got, want)
	}
}

// take wants the session of that number.
func (r *rig) take(t *testing.T, key string, number int, waited bool) *fake {
	t.Helper()
	synctest.Wait()
	s, got, err := r.Take(key)
	if err != nil || s.key != key || s.number != number || got != waited {
		t.Fatalf("took %+v, waited %v, %v; want number %d, waited %v", s, got, err, number, waited)
	}
	return s
}

func (r *rig) close(t *testing.T) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestPoolRefillsWhenTheLentSessionRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, "a")
		defer r.close(t)
		r.wantKeys(t, "a")
		s := r.take(t, "a", 0, true)
		time.Sleep(2 * time.Hour) // of synctest
		r.wantKeys(t, "a")
		close(s.running)
		r.wantKeys(t, "a a")
		if diff := cmp.Diff(Stats{Primed: 1, Hits: 1}, r.Stats()); diff != "" {
			t.Error(diff)
		}
		_ = s.Close()
	})
}

func TestPoolStartsOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(3)
		defer r.close(t)
		r.slow = true
		r.take(t, "a", 0, false).Close()
		for _, want := range []string{"a a", "a a a", "a a a a"} {
			r.wantKeys(t, want)
			time.Sleep(time.Minute)
			r.wantKeys(t, want)
			all := r.all()
			close(all[len(all)-1].primed)
		}
		r.wantKeys(t, "a a a a")
	})
}

func TestMissStartsOneAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, size := range []int{0, 1} {
			r := newRig(size, "a")
			synctest.Wait()
			n := len(r.all())
			first := r.take(t, "b", n, false)
			second := r.take(t, "b", n+1, false)
			r.wantKeys(t, strings.TrimSpace(strings.Repeat("a ", n)+"b b"))
			_, _ = first.Close(), second.Close()
			r.close(t)
		}
	})
}

// The shelf follows what is asked for, but not one request that is out of the ordinary.
func TestPoolFollowsDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1)
		defer r.close(t)
		r.wantKeys(t, "")
		r.take(t, "a", 0, false).Close()
		r.take(t, "a", 1, true).Close()
		r.wantKeys(t, "a a a")
		r.take(t, "b", 3, false).Close()
		r.wantKeys(t, "a a a b") // a waits
		r.take(t, "b", 4, false).Close()
		r.wantKeys(t, "a a a b b b")
		if !isClosed(r.all()[2].ended) {
			t.Error("the session that nobody asks for is still there")
		}
		r.take(t, "b", 5, true).Close()
	})
}

func TestPoolRenewsByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(2, "a")
		defer r.close(t)
		r.wantKeys(t, "a a")
		time.Sleep(time.Hour)
		r.wantKeys(t, "a a a a")
		for i, f := range r.all() {
			if isClosed(f.ended) != (i < 2) {
				t.Errorf("session %d: ended %v", i, isClosed(f.ended))
			}
		}
		if got := r.Stats(); got.Renewed != 2 || got.Died != 0 {
			t.Errorf("got %+v", got)
		}
	})
}

// A session that ends while it waits is never lent, and another takes its place: the
// later, the more often it happens.
func TestPoolReplacesTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, "a")
		defer r.close(t)
		for i, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			r.all()[i].Close()
			synctest.Wait()
			time.Sleep(pause - 1)
			if len(r.all()) != i+1 {
				t.Fatalf("after the end of session %d the next was started before %s", i, pause)
			}
			time.Sleep(time.Nanosecond)
			if len(r.all()) != i+2 {
				t.Fatalf("after the end of session %d none was started", i)
			}
		}
		r.all()[3].Close()
		if s, waited, err := r.Take("a"); err != nil || waited || s.number != 4 {
			t.Errorf("lent number %d, waited %v, %v", s.number, waited, err)
		}
		r.all()[4].Close()
		if got := r.Stats(); got.Died < 3 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestPoolWithoutAWayToStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1)
		r.broken = true
		if _, _, err := r.Take("a"); err == nil {
			t.Error("it lent something")
		}
		r.look()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := strings.Count(r.log.String(), "it is broken"); got < 5 || got > 20 {
			t.Errorf("it was tried %d times in ten minutes", got)
		}
		r.close(t)
		if _, _, err := r.Take("a"); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	})
}

// Whatever is done to it: at most Size wait, none is lent twice or dead, and at the end
// all that were not lent are closed.
func TestPoolProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(0, 3).Draw(rt, "size")
		steps := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 40).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			r := newRig(size, "a")
			lent := map[int]*fake{}
			for i, step := range steps {
				synctest.Wait()
				switch step {
				case 0, 1:
					s, _, err := r.Take(string(rune('a' + step)))
					if err != nil || lent[s.number] != nil || isClosed(s.ended) {
						t.Fatalf("took %+v, %v", s, err)
					}
					lent[s.number] = s
				case 2: // all that are lent run, the first of them ends
					for _, s := range lent {
						if !isClosed(s.running) {
							close(s.running)
						}
					}
				case 3:
					time.Sleep(30 * time.Minute)
				case 4: // one that may wait dies
					if all := r.all(); len(all) > 0 && lent[i%len(all)] == nil {
						_ = all[i%len(all)].Close()
					}
				case 5:
					for _, s := range lent {
						_ = s.Close()
					}
				}
				if got := r.Stats(); got.Primed > size {
					t.Fatalf("%d wait, of at most %d", got.Primed, size)
				}
			}
			r.close(t)
			for _, s := range r.all() {
				if lent[s.number] == nil && !isClosed(s.ended) {
					t.Errorf("number %d was left", s.number)
				}
				_ = s.Close()
			}
		})
	})
}

func TestDemand(t *testing.T) {
	for _, test := range []struct {
		takes string
		want  string // of three
	}{
		{"", ""},
		{"a", "aaa"},
		{"ab", "bab"},
		{"aaaaaaab", "aab"},
		{"abababab", "bab"},
		{"abc", "cbc"},
		{"aaaaaaabb", "bab"},
		{"aabbcccccccccccccccccccc", "ccc"},
	} {
		var d demand[rune]
		for _, key := range test.takes {
			d.note(key)
		}
		if got := string(d.wanted(3)); got != test.want {
			t.Errorf("%q: got %q, want %q", test.takes, got, test.want)
		}
	}
	var d demand[int]
	for i := range 1000 {
		d.note(i)
	}
	if len(d) > 20 {
		t.Errorf("%d keys are remembered", len(d))
	}
}
