package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"ocp/internal/quota"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens the store of a folder until the end of the test.
func openIn(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func hash(key string) [sha256.Size]byte { return sha256.Sum256([]byte(key)) }

func TestFilesAreTheOwners(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a ?#%20 folder")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := openIn(t, dir)
	if _, err := s.AddKey(t.Context(), "a", hash("a"), quota.Limits{}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Fatalf("got %v, %v", entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode() != 0o600 || !strings.HasPrefix(e.Name(), FileName) {
			t.Errorf("%s has mode %v (%v)", e.Name(), info.Mode(), err)
		}
	}
}

func TestOpenExisting(t *testing.T) {
	dir := t.TempDir()
	if s, err := OpenExisting(t.Context(), dir); s != nil || err != nil {
		t.Errorf("got %v, %v", s, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("it made %v", entries)
	}
	openIn(t, dir)
	s, err := OpenExisting(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestManyOpenAtOnce has several open a file that is not there yet.
func TestManyOpenAtOnce(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			s, err := Open(t.Context(), dir)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := s.AddKey(t.Context(), strings.Repeat("x", i+1), hash(strings.Repeat("x", i+1)), quota.Limits{}); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if keys, err := openIn(t, dir).Keys(t.Context()); err != nil || len(keys) != 8 {
		t.Errorf("got %v, %v", keys, err)
	}
}

func TestFilesThatAreNone(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(t *testing.T, dir string)
		says  string
	}{
		"of a newer ocp": {func(t *testing.T, dir string) {
			if _, err := openIn(t, dir).db.Exec("PRAGMA user_version = 99"); err != nil {
				t.Fatal(err)
			}
		}, "newer ocp"},
		"no database": {func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, FileName), []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not a database"},
		"a folder": {func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, FileName), 0o700); err != nil {
				t.Fatal(err)
			}
		}, "directory"},
	} {
		dir := t.TempDir()
		test.spoil(t, dir)
		if _, err := Open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), FileName) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestKeys(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	limits := quota.Limits{Models: []string{"opus", "sonnet[1m]"}, Concurrency: 1, PerMinute: 2, PerDay: 3, TokensPerDay: 1 << 50}
	bob, err := s.AddKey(t.Context(), "bob", hash("bob's"), limits)
	if err != nil {
		t.Fatal(err)
	}
	if len(bob.ID) != idDigits || time.Since(bob.Created) > time.Minute {
		t.Errorf("got %+v", bob)
	}
	if _, err := s.AddKey(t.Context(), "bob", hash("another"), quota.Limits{}); !errors.Is(err, ErrNameTaken) {
		t.Errorf("got %v", err)
	}
	// Its name is another's id.
	odd, err := s.AddKey(t.Context(), bob.ID, hash("odd"), quota.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	again := openIn(t, dir)
	keys, err := again.Keys(t.Context())
	if diff := cmp.Diff([]Key{bob, odd}, keys); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for _, step := range []struct{ ask, name string }{{bob.ID, odd.Name}, {bob.ID, "bob"}} {
		if got, err := s.RevokeKey(t.Context(), step.ask); err != nil || got.Name != step.name {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	if _, err := s.RevokeKey(t.Context(), "bob"); !errors.Is(err, ErrNoKey) {
		t.Errorf("got %v", err)
	}
	if keys, err := again.Keys(t.Context()); err != nil || len(keys) > 0 {
		t.Errorf("got %v, %v", keys, err)
	}
}

func TestValidName(t *testing.T) {
	for name, valid := range map[string]bool{
		"bob": true, "my phone": true, "Jürgen": true, strings.Repeat("ü", maxName): true,
		"": false, " bob": false, "bob\n": false, "a\tb": false, "\x1b[31m": false, "a\xffb": false,
		strings.Repeat("a", maxName+1): false, "sk-ocp-secret": false,
	} {
		err := ValidName(name)
		if (err == nil) != valid || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestWatch checks that another process's changes are told, and its own usage is not lost
// on the way.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	s, other := openIn(t, dir), openIn(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	told, done := make(chan int), make(chan struct{})
	go func() {
		defer close(done)
		s.Watch(ctx, time.Millisecond, func() {
			keys, err := s.Keys(ctx)
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			select {
			case told <- len(keys):
			case <-ctx.Done():
			}
		})
	}()
	if n := <-told; n != 0 {
		t.Errorf("at first it told of %d", n)
	}
	if _, err := other.AddKey(t.Context(), "bob", hash("bob"), quota.Limits{}); err != nil {
		t.Fatal(err)
	}
	if n := <-told; n != 1 {
		t.Errorf("then it told of %d", n)
	}
	if _, err := other.RevokeKey(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	if n := <-told; n != 0 {
		t.Errorf("at last it told of %d", n)
	}
	cancel()
	<-done
}

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	s, other := openIn(t, dir), openIn(t, dir)
	line := Line{Day: "2026-03-01", Key: "bob", Model: "opus", Dialect: "openai", Outcome: "ok"}
	one := Turns{Line: line, Count: 1, Input: 2, Output: 3, CacheRead: 4, CacheCreation: 5, Estimated: 1}
	later := one
	later.Day = "2026-03-02"
	const rounds = 20
	var all sync.WaitGroup
	for _, s := range []*Store{s, other} {
		all.Go(func() {
			for range rounds {
				if err := s.AddTurns(t.Context(), []Turns{one, later}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	sum := Turns{Line: line, Count: 40, Input: 80, Output: 120, CacheRead: 160, CacheCreation: 200, Estimated: 40}
	laterSum := sum
	laterSum.Day = later.Day
	for _, test := range []struct {
		since string
		want  []Turns
	}{{"2026-01-01", []Turns{sum, laterSum}}, {"2026-03-02", []Turns{laterSum}}, {"2026-03-03", nil}} {
		got, err := s.Usage(t.Context(), test.since)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("since %s: %v %s", test.since, err, diff)
		}
	}
	if err := s.Prune(t.Context(), "2026-03-02"); err != nil {
		t.Fatal(err)
	}
	if got, err := other.Usage(t.Context(), ""); err != nil || len(got) != 1 || got[0] != laterSum {
		t.Errorf("got %v, %v", got, err)
	}
	if day := Day(time.Date(2026, 3, 1, 23, 0, 0, 0, time.FixedZone("", -2*3600))); day != "2026-03-02" {
		t.Errorf("the day is %s", day)
	}
}
