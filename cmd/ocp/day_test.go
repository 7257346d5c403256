package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/claude/claudetest"
)

// day is mixed traffic of several clients, and what they have seen.
type day struct {
	*served
	keys   map[string]string // by name
	good   map[string]string // answers by model
	failed []string          // models of sessions that fail
	half   string            // a model that falls silent in its answer

	mu   sync.Mutex
	seen map[string]map[string]int64 // turns by key and outcome, as their clients count them; guarded by mu
}

// TestDay is a household's day in short: OCP_SOAK=1 makes it ten minutes, in which more
// turns run than a day of 24 hours has minutes. Every answer is exact or fails typed, keys
// come and go, and in the end the usage is what the clients have seen, turn by turn, and
// the process holds no more than after the first hours.
func TestDay(t *testing.T) {
	hours, each := 3, func(n int) bool { return n < 8 }
	if os.Getenv("OCP_SOAK") != "" {
		hours, each = 24, nil
	}
	d := newDay(t)
	var held []holding
	for hour := range hours {
		until := time.Now().Add(25 * time.Second)
		goOn := each
		if goOn == nil {
			goOn = func(int) bool { return time.Now().Before(until) }
		}
		d.hour(hour, goOn)
		held = append(held, d.holds())
		t.Logf("hour %d: %d turns, %+v", hour, d.total(), held[hour])
	}
	first, last := held[1], held[hours-1]
	if last.descriptors > first.descriptors || last.goroutines > first.goroutines || last.rss > first.rss+first.rss/4+4<<10 {
		t.Errorf("after the first hours %+v, in the end %+v", first, last)
	}
	d.end(os.Interrupt)
	got := map[string]map[string]int64{}
	for name, line := range d.usage("key") {
		if name != "total" {
			got[name] = line.Outcomes
		}
	}
	if diff := cmp.Diff(d.seen, got); diff != "" {
		t.Errorf("usage (-clients +store):\n%s", diff)
	}
	t.Logf("%v", d.seen)
}

func newDay(t *testing.T) *day {
	d := &day{served: newServed(t), keys: map[string]string{}, good: map[string]string{}, seen: map[string]map[string]int64{}}
	d.keys["ann"], d.keys["bob"] = d.addKey("ann"), d.addKey("bob")
	d.keys["cid"] = d.addKey("cid", "--per-day", "3")
	for i := range 6 {
		lines := []string{fmt.Sprintf("answer %d\n", i), strings.Repeat("x", 100*i) + "\n", "end\n"}
		d.good[d.model(claudetest.Answer(lines...))] = strings.Join(lines, "")
	}
	for _, f := range failures(d.rig) {
		switch f.name {
		case "exits in the boot", "exits in the answer", "is at its limit", "is overloaded in the answer":
			d.failed = append(d.failed, f.model)
		case "falls silent":
			d.half = f.model
		}
	}
	d.start("--pool", "1", "--keep", "2", "--keep-for", "1s", "--concurrency", "4", "--queue", "64")
	return d
}

// hour has turns of all kinds, four at a time, for as long as goOn says, while somebody
// looks at the page, and a key comes and goes.
func (d *day) hour(hour int, goOn func(n int) bool) {
	var workers sync.WaitGroup
	for worker := range 4 {
		workers.Go(func() {
			for n := worker; goOn(n); n += 4 {
				d.turn(n)
			}
		})
	}
	for _, path := range []string{"/", "/status", "/metrics"} {
		d.get(path)
	}
	name := fmt.Sprintf("guest %d", hour)
	d.keys[name] = d.addKey(name)
	if !eventually(d.t, func() bool { return d.knows(d.keys[name]) }) {
		d.t.Error("a new key is not taken up")
	}
	workers.Wait()
	d.expect(name, "opus", 0, false)
	d.ocp(0, "keys", "revoke", name)
	d.hangUp("keys and limits are reloaded")
}

// turn is the n-th of an hour.
func (d *day) turn(n int) {
	name := []string{"ann", "bob", "ann", "bob", "cid"}[n%5]
	switch {
	case n%7 == 3:
		d.expect(name, d.failed[n/7%len(d.failed)], n%3, n%2 == 0)
	case n%11 == 5 && name != "cid":
		d.goes(name, n%3)
	default:
		d.expect(name, []string{"opus", "sonnet"}[n%2], n%3, n%2 == 0)
		for model := range d.good { // any
			d.expect(name, model, (n+1)%3, n%2 == 1)
			break
		}
	}
}

// expect has a turn and notes how its client saw it end.
func (d *day) expect(key, model string, path int, stream bool) {
	req := d.request(paths[path], model, stream)
	req.Header.Set("X-Api-Key", d.keys[key])
	got, err := d.do(req)
	if err != nil {
		d.t.Error(err)
		return
	}
	text, want := got.text(paths[path], stream), d.good[model]
	ended := got.status == http.StatusOK && !strings.Contains(got.body, `"error":{`)
	switch {
	case ended && want != "" && text != want, ended && want == "" && text != "You said: "+question && !strings.Contains(text, question):
		d.t.Errorf("%s with %s: got %q, want %q", paths[path], model, text, want)
	case ended && stream && !goodEnd.MatchString(got.body):
		d.t.Errorf("a stream without an end: %s", got.body)
	case !ended && !strings.Contains(got.body, `"error":{`):
		d.t.Errorf("no typed error: %+v", got)
	}
	switch {
	case ended:
		d.note(key, "ok")
	case strings.Contains(got.body, "a day (UTC)"):
		d.note(key, "limited")
	case strings.Contains(got.body, "rate_limit"):
		d.note(key, "rate_limited")
	case got.status == http.StatusOK || got.status == http.StatusBadGateway || got.status == http.StatusServiceUnavailable || got.status == 529:
		d.note(key, kindOf(got))
	default:
		d.t.Errorf("an unexpected end: %+v", got)
	}
}

// kindOf is what the log calls a failure that a client sees.
func kindOf(r reply) string {
	if strings.Contains(r.body, "overloaded") {
		return "overloaded"
	}
	return "session_failed"
}

// goes is a client that reads the beginning of an answer and leaves.
func (d *day) goes(key string, path int) {
	ctx, cancel := context.WithCancel(d.t.Context())
	defer cancel()
	req := d.request(paths[path], d.half, true).WithContext(ctx)
	req.Header.Set("X-Api-Key", d.keys[key])
	res, err := d.client.Do(req)
	if err != nil {
		d.t.Error(err)
		return
	}
	defer res.Body.Close()
	if _, err := res.Body.Read(make([]byte, 10)); err != nil {
		d.t.Error(err)
	}
	d.note(key, "canceled")
}

func (d *day) note(key, outcome string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen[key] == nil {
		d.seen[key] = map[string]int64{}
	}
	d.seen[key][outcome]++
}

func (d *day) total() (n int64) {
	for _, outcomes := range d.seen {
		for count := range maps.Values(outcomes) {
			n += count
		}
	}
	return n
}

func (d *day) get(path string) reply {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, d.url+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", d.keys["ann"])
	got, err := d.do(req)
	if err != nil || got.status != http.StatusOK {
		d.t.Fatalf("%s: %+v, %v", path, got, err)
	}
	return got
}

// holding is what the process holds: RSS in KB, file descriptors, goroutines.
type holding struct{ rss, descriptors, goroutines int }

// holds waits until no turn runs and only the pool's session waits.
func (d *day) holds() holding {
	d.t.Helper()
	var status struct {
		Sessions struct{ Running, Waiting int }
		Pool     struct{ Primed int }
		Kept     struct{ Waiting int }
		Usage    struct{ Unwritten int }
	}
	if !eventually(d.t, func() bool {
		return json.Unmarshal([]byte(d.get("/status").body), &status) == nil && status.Sessions.Running == 0 &&
			status.Pool.Primed == 1 && status.Kept.Waiting == 0 && status.Usage.Unwritten == 0
	}) {
		d.t.Errorf("it does not come to rest: %+v", status)
	}
	var last holding
	still := 0
	eventually(d.t, func() bool { // the ends of connections and processes take a moment
		now := d.measure()
		if still++; now.descriptors != last.descriptors || now.goroutines != last.goroutines {
			still = 0
		}
		last = now
		return still == 10
	})
	return last
}

func (d *day) measure() holding {
	d.t.Helper()
	proc := filepath.Join("/proc", strconv.Itoa(d.cmd.Process.Pid))
	descriptors, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		d.t.Fatal(err)
	}
	status, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		d.t.Fatal(err)
	}
	number := func(pattern, text string) int {
		found := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if found == nil {
			d.t.Fatalf("no %s in %s", pattern, text)
		}
		n, _ := strconv.Atoi(found[1])
		return n
	}
	return holding{
		rss: number(`VmRSS:\s+(\d+) kB`, string(status)), descriptors: len(descriptors),
		goroutines: number(`(?m)^go_goroutines (\d+)`, d.get("/metrics").body),
	}
}
