package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const patience = 20 * time.Second

// noWatcher is a system whose inotify instances are used up.
func noWatcher() (*fsnotify.Watcher, error) { return nil, syscall.EMFILE }

// The three ways to learn of a change, each with the other two made useless.
var (
	notifyOnly = Options{Poll: time.Hour}
	pollOnly   = Options{Poll: time.Millisecond, newWatcher: noWatcher}
	pokeOnly   = Options{Poll: time.Hour, newWatcher: noWatcher}
)

func follow(t *testing.T, path string, offset int64, opts Options) *Follower {
	t.Helper()
	f, err := Follow(path, offset, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func receive(t rapid.TB, f *Follower) Record {
	t.Helper()
	select {
	case record, ok := <-f.Records():
		if !ok {
			t.Fatalf("the follower ended: %v", f.Err())
		}
		return record
	case <-time.After(patience):
		t.Fatalf("no record; stats %+v", f.Stats())
	}
	panic("unreachable")
}

func wantTypes(t *testing.T, f *Follower, want ...string) {
	t.Helper()
	for _, w := range want {
		if got := receive(t, f).Type; got != w {
			t.Fatalf("type = %q, want %q", got, w)
		}
	}
}

func wantEnd(t *testing.T, f *Follower, want error) {
	t.Helper()
	select {
	case record, ok := <-f.Records():
		if ok {
			t.Fatalf("record %+v, want the end", record)
		}
	case <-time.After(patience):
		t.Fatal("the follower does not end")
	}
	if err := f.Err(); !errors.Is(err, want) {
		t.Errorf("Err() = %v, want %v", err, want)
	}
}

func lineOf(kind string) string { return fmt.Sprintf("{\"type\":%q}\n", kind) }

func TestFollow(t *testing.T) {
	tests := map[string]struct {
		opts Options
		poke bool
	}{
		"notify": {notifyOnly, false},
		"poll":   {pollOnly, false},
		"poke":   {pokeOnly, true},
		"all":    {Options{}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t.jsonl")
			f := follow(t, path, 0, test.opts)
			if got, want := f.Stats().Notified, test.opts.newWatcher == nil; got != want {
				t.Errorf("Notified = %v, want %v", got, want)
			}
			add := func(data string) {
				appendFile(t, path, data)
				if test.poke {
					f.Poke()
				}
			}
			add("") // the file appears
			add(lineOf("a") + lineOf("b") + `{"type":`)
			wantTypes(t, f, "a", "b")
			appendFile(t, filepath.Join(filepath.Dir(path), "other.jsonl"), lineOf("x"))
			add("\"c\"}\n" + lineOf("d"))
			wantTypes(t, f, "c", "d")
			for i := range 50 { // so that the follower waits before at least one of them
				add(lineOf(strconv.Itoa(i)))
				wantTypes(t, f, strconv.Itoa(i))
			}
			f.Close()
			f.Close()
			wantEnd(t, f, nil)
		})
	}
}

// TestFollowBehindConversation is the package's whole use: a conversation of ours, and
// behind it what the CLI appends.
func TestFollowBehindConversation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.jsonl")
	n, err := Create(path, []Entry{{Role: "user", Content: []textBlock{text("hello")}}})
	if err != nil {
		t.Fatal(err)
	}
	f := follow(t, path, n, Options{})
	data, err := os.ReadFile("testdata/2.1.332-plain.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	appendFile(t, path, string(data))
	for record := receive(t, f); record.Type != "assistant"; record = receive(t, f) {
		if record.Type == "user" {
			t.Fatal("our own entry was delivered")
		}
	}
}

func TestFollowSkips(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.jsonl")
	var skips []string
	opts := pollOnly
	opts.Skipped = func(offset int64, length int, err error) {
		skips = append(skips, fmt.Sprint(offset, length, err == ErrSyntax))
	}
	f := follow(t, path, 0, opts)
	appendFile(t, path, lineOf("a")+"secret\n\n"+lineOf("b")+"[1]\n"+lineOf("c"))
	wantTypes(t, f, "a", "b", "c")
	f.Close()
	if diff := cmp.Diff([]string{"13 6 true", "20 0 true", "34 3 true"}, skips); diff != "" {
		t.Errorf("skips (-want +got):\n%s", diff)
	}
	if s := f.Stats(); s.Skipped != 3 || s.Offset < 38 {
		t.Errorf("Stats = %+v", s)
	}
}

func TestFollowEnds(t *testing.T) {
	tests := map[string]struct {
		change func(path string) error
		want   error
	}{
		"truncated": {func(path string) error { return os.Truncate(path, 1) }, ErrRewritten},
		"removed":   {os.Remove, ErrReplaced},
		"renamed":   {func(path string) error { return os.Rename(path, path+".old") }, ErrReplaced},
		"long line": {func(path string) error { return appendTo(path, strings.Repeat("x", 101)) }, ErrLineTooLong},
	}
	for _, opts := range []Options{notifyOnly, pollOnly} {
		opts.MaxLine = 100
		for name, test := range tests {
			t.Run(fmt.Sprint(name, " notified ", opts.newWatcher == nil), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "t.jsonl")
				appendFile(t, path, lineOf("a"))
				f := follow(t, path, 0, opts)
				wantTypes(t, f, "a")
				if err := test.change(path); err != nil {
					t.Fatal(err)
				}
				wantEnd(t, f, test.want)
			})
		}
	}
}

func TestFollowRefuses(t *testing.T) {
	if _, err := Follow(filepath.Join(t.TempDir(), "no", "t.jsonl"), 0, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: error = %v, want ErrNotExist", err)
	}
	if _, err := Follow(filepath.Join(t.TempDir(), "t.jsonl"), -1, Options{}); err == nil {
		t.Error("negative offset: no error")
	}
}

// TestFollowBackPressure: a consumer that does not receive stops the reading.
func TestFollowBackPressure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.jsonl")
	const lines = 50_000
	var data bytes.Buffer
	for i := range lines {
		data.WriteString(lineOf(strconv.Itoa(i)))
	}
	appendFile(t, path, data.String())
	f := follow(t, path, 0, Options{})
	wantTypes(t, f, "0")
	if got := f.Stats().Records; got > 1 {
		t.Errorf("%d records delivered, 1 received", got)
	}
	for i := 1; i < lines; i++ {
		if got := receive(t, f).Type; got != strconv.Itoa(i) {
			t.Fatalf("type = %s, want %d", got, i)
		}
	}
	f.Close()
	if cap(f.tail.buf) > 4*chunkSize {
		t.Errorf("buffer grew to %d bytes", cap(f.tail.buf))
	}
}

// TestFollowCloseWhileDelivering: nobody receives, and Close returns all the same.
func TestFollowCloseWhileDelivering(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.jsonl")
	appendFile(t, path, strings.Repeat(lineOf("a"), 10))
	f := follow(t, path, 0, Options{})
	wantTypes(t, f, "a")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			f.Close()
			select {
			case <-f.done:
			default:
				t.Error("Close did not wait")
			}
		})
		wg.Go(f.Poke)
		wg.Go(func() { f.Stats() })
	}
	wg.Wait()
	wantEnd(t, f, nil)
}

func TestFollowPieces(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, "t.jsonl")
		os.Remove(path)
		var b bytes.Buffer
		texts := rapid.SliceOfN(textGenerator(), 1, 8).Draw(t, "texts")
		for _, s := range texts {
			if _, err := Write(&b, []Entry{{Role: "assistant", Content: []textBlock{text(s)}}}); err != nil {
				t.Fatal(err)
			}
		}
		f, err := Follow(path, 0, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		pieces := rapid.SliceOfN(rapid.IntRange(1, 200), 1, 20).Draw(t, "pieces")
		written := make(chan error, 1)
		go func() {
			rest, err := b.Bytes(), error(nil)
			for i := 0; len(rest) > 0 && err == nil; i++ {
				n := min(pieces[i%len(pieces)], len(rest))
				err = appendTo(path, string(rest[:n]))
				rest = rest[n:]
				if i%3 == 0 {
					f.Poke()
				}
			}
			written <- err
		}()
		for i, want := range texts {
			if got := receive(t, f).Message.Text(); got != want {
				t.Fatalf("text %d = %q, want %q", i, got, want)
			}
		}
		if err := <-written; err != nil {
			t.Fatal(err)
		}
	})
}

// BenchmarkFollow measures from the append to the record in the consumer's hands.
func BenchmarkFollow(b *testing.B) {
	data, err := os.ReadFile("testdata/2.1.332-plain.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	var answer string
	for line := range bytes.Lines(data) {
		if bytes.Contains(line, []byte(`"type":"assistant"`)) {
			answer = string(line)
		}
	}
	long := strings.Replace(answer, "Line one", strings.Repeat("Line one ", 22_000), 1)
	for _, bench := range []struct {
		name, line string
		opts       Options
		poke       bool
	}{
		{"notify/1KB", answer, notifyOnly, false},
		{"notify/200KB", long, notifyOnly, false},
		{"poke/1KB", answer, pokeOnly, true},
		{"poll=5ms/1KB", answer, Options{Poll: 5 * time.Millisecond, newWatcher: noWatcher}, false},
	} {
		b.Run(bench.name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "t.jsonl")
			f, err := Follow(path, 0, bench.opts)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
			if err != nil {
				b.Fatal(err)
			}
			defer file.Close()
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				if _, err := file.WriteString(bench.line); err != nil {
					b.Fatal(err)
				}
				if bench.poke {
					f.Poke()
				}
				<-f.Records()
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-median")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs-p99")
		})
	}
}

func BenchmarkParse(b *testing.B) {
	data, err := os.ReadFile("testdata/2.1.332-plain.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		for line := range bytes.Lines(data) {
			if _, err := Parse(line); err != nil {
				b.Fatal(err)
			}
		}
	}
}
