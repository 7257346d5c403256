package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeUsage is a store that a test can make fail.
type fakeUsage struct {
	mu     sync.Mutex
	broken error // guarded by mu, as all below
	sum    map[Line]Turns
	writes int
	pruned []string
}

func (f *fakeUsage) AddTurns(ctx context.Context, turns []Turns) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	if f.broken != nil || ctx.Err() != nil {
		return errors.Join(f.broken, ctx.Err())
	}
	for _, t := range turns {
		sum := f.sum[t.Line]
		sum.Line = t.Line
		sum.add(t)
		if f.sum == nil {
			f.sum = map[Line]Turns{}
		}
		f.sum[t.Line] = sum
	}
	return nil
}

func (f *fakeUsage) Prune(_ context.Context, before string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pruned = append(f.pruned, before)
	return f.broken
}

func (f *fakeUsage) set(broken error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = broken
}

func (f *fakeUsage) tried() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

func (f *fakeUsage) count() (turns int64, lines int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.sum {
		turns += t.Count
	}
	return turns, len(f.sum)
}

var oneTurn = Turns{Line: Line{Day: "2026-03-01", Key: "bob", Model: "opus", Dialect: "openai", Outcome: "ok"}, Count: 1, Input: 1}

// TestRecorderNeverWaits checks that turns which the store does not take are kept, told of
// once, tried again and written in the end, once.
func TestRecorderNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		f := &fakeUsage{broken: errors.New("database or disk is full")}
		r := Record(f, 0, slog.New(slog.NewTextHandler(&log, nil)))
		for range 50 {
			r.Add(oneTurn)
			synctest.Wait()
		}
		if got := r.Stats(); got.Unwritten != 50 || !got.Failing || got.Failures != 1 || f.tried() != 1 {
			t.Errorf("got %+v after %d writes", got, f.tried())
		}
		time.Sleep(3 * longestRetry)
		synctest.Wait()
		if got := r.Stats(); got.Unwritten != 50 || got.Failures < 5 || got.Failures > 12 {
			t.Errorf("got %+v", got)
		}
		f.set(nil)
		time.Sleep(longestRetry)
		synctest.Wait()
		if got := r.Stats(); got.Unwritten != 0 || got.Failing {
			t.Errorf("got %+v", got)
		}
		r.Add(oneTurn)
		synctest.Wait()
		if turns, lines := f.count(); turns != 51 || lines != 1 {
			t.Errorf("%d turns are written in %d lines", turns, lines)
		}
		r.Close()
		r.Close()
		if full, again := strings.Count(log.String(), "disk is full"), strings.Count(log.String(), "written again"); full != 1 || again != 1 {
			t.Errorf("the log:\n%s", log.String())
		}
	})
}

// TestRecorderWritesAtTheEnd checks that what waits for a retry is written by Close.
func TestRecorderWritesAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		f := &fakeUsage{broken: errors.New("locked")}
		r := Record(f, 0, slog.New(slog.NewTextHandler(&log, nil)))
		r.Add(oneTurn)
		synctest.Wait()
		f.set(nil)
		r.Close()
		if turns, _ := f.count(); turns != 1 || strings.Contains(log.String(), "lost") {
			t.Errorf("%d turns are written:\n%s", turns, log.String())
		}

		f.set(errors.New("locked"))
		r = Record(f, 0, slog.New(slog.NewTextHandler(&log, nil)))
		r.Add(oneTurn)
		r.Close()
		if !strings.Contains(log.String(), "turns=1") {
			t.Errorf("the log:\n%s", log.String())
		}
	})
}

func TestRecorderPrunes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeUsage{}
		r := Record(f, 10*24*time.Hour, slog.New(slog.DiscardHandler))
		time.Sleep(24*time.Hour + time.Minute)
		synctest.Wait()
		r.Close()
		// A bubble's time begins at midnight of 2000-01-01.
		if got := strings.Join(f.pruned, " "); got != "1999-12-22 1999-12-23" {
			t.Errorf("pruned before %s", got)
		}
		r = Record(f, 0, slog.New(slog.DiscardHandler))
		time.Sleep(25 * time.Hour)
		r.Close()
		if len(f.pruned) != 2 {
			t.Errorf("pruned before %v though all is kept", f.pruned)
		}
	})
}

// TestModelNamesAreBounded checks that a client which makes up names of models fills
// neither the memory nor the disk.
func TestModelNamesAreBounded(t *testing.T) {
	f := &fakeUsage{}
	r := Record(f, 0, slog.New(slog.DiscardHandler))
	turn := oneTurn
	for _, turn.Day = range []string{"2026-03-01", "2026-03-02"} {
		for i := range 2 * mostModels {
			turn.Model = fmt.Sprint("made-up-", i)
			r.Add(turn)
		}
		turn.Model = "made-up-0"
		r.Add(turn)
	}
	turn.Model = strings.Repeat("ü", 1000)
	r.Add(turn)
	r.Close()
	turns, lines := f.count()
	if turns != 4*mostModels+3 || lines != 2*(mostModels+1) {
		t.Errorf("%d turns in %d lines", turns, lines)
	}
	for line := range f.sum {
		if len(line.Model) > mostModelName {
			t.Errorf("a name of %d bytes", len(line.Model))
		}
	}
}

// TestRecorderAddsUp has many write at once into a real file, with another process in it.
func TestRecorderAddsUp(t *testing.T) {
	dir := t.TempDir()
	s, other := openIn(t, dir), openIn(t, dir)
	r := Record(s, time.Hour, slog.New(slog.DiscardHandler))
	day := Day(time.Now())
	const writers, each = 8, 200
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for i := range each {
				turn := oneTurn
				turn.Day, turn.Model = day, fmt.Sprint("m", i%5)
				r.Add(turn)
				if i%50 == 0 {
					if err := other.AddTurns(t.Context(), []Turns{turn}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	r.Close()
	got, err := other.Usage(t.Context(), day)
	if err != nil {
		t.Fatal(err)
	}
	var turns, input int64
	for _, line := range got {
		turns += line.Count
		input += line.Input
	}
	if want := int64(writers * (each + each/50)); turns != want || input != want {
		t.Errorf("%d turns and %d tokens, want %d", turns, input, want)
	}
}

// TestLockedStore has another process hold the file: the turn is written once it lets go.
func TestLockedStore(t *testing.T) {
	dir := t.TempDir()
	s, other := openIn(t, dir), openIn(t, dir)
	tx, err := other.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := Record(s, 0, slog.New(slog.DiscardHandler))
	r.Add(oneTurn)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if got, err := other.Usage(t.Context(), ""); err != nil || len(got) != 1 || got[0] != oneTurn {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestFullStore has no room in the file: the turns stay in memory until there is.
func TestFullStore(t *testing.T) {
	s := openIn(t, t.TempDir())
	s.db.SetMaxOpenConns(1) // the bound is a connection's own
	bound := func(pages string) {
		t.Helper()
		if _, err := s.db.Exec("PRAGMA max_page_count = " + pages); err != nil {
			t.Fatal(err)
		}
	}
	bound("1") // no more than there are
	log := logLines(make(chan string, 10))
	r := Record(s, 0, slog.New(slog.NewTextHandler(log, nil)))
	turn, day := oneTurn, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	const turns = 2000
	for i := range turns {
		turn.Day = Day(day.AddDate(0, 0, i))
		r.Add(turn)
	}
	if line := <-log; !strings.Contains(line, "full") {
		t.Errorf("the log says %s", line)
	}
	if got := r.Stats(); !got.Failing || got.Unwritten == 0 {
		t.Errorf("got %+v", got)
	}
	bound("1000000")
	r.Close()
	if got, err := s.Usage(t.Context(), ""); err != nil || len(got) != turns {
		t.Errorf("%d turns are written, want %d (%v)", len(got), turns, err)
	}
}

// logLines gives the lines of a log to a test.
type logLines chan string

func (l logLines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}
