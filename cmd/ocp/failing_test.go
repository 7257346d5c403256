package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"ocp/internal/claude/claudetest"
	"ocp/internal/config"
)

// failure is a session whose turn does not end well, and what its client gets.
type failure struct {
	name, model string
	status      int  // before the first byte
	anthropic   int  // the same on /v1/messages, if it is another
	begun       bool // some text was sent before
	leaves      bool // the client goes; it gets nothing
}

func failures(r *rig) []failure {
	boot, half := claudetest.Boot(), claudetest.Deltas("m", "half an answer\n", "and more\n")
	one := func(do claudetest.Action, text string) []claudetest.Step {
		return []claudetest.Step{{Do: do, N: 1, Text: text}}
	}
	failed := func(word string, status int) []claudetest.Step {
		return []claudetest.Step{
			{Do: claudetest.StopFailure, Reason: word, Text: "API Error"},
			{Do: claudetest.BannerRecord, Reason: word, Status: status, Text: "API Error"},
		}
	}
	return []failure{
		{name: "exits in the boot", model: r.model(boot[:2], one(claudetest.Exit, "")), status: 502},
		{name: "exits in the answer", model: r.model(boot, half, one(claudetest.Exit, "")), status: 502, begun: true},
		{name: "is killed in the answer", model: r.model(boot, half, one(claudetest.Kill, "")), status: 502, begun: true},
		{name: "is not logged in", model: r.model(boot, failed("authentication_failed", 401)), status: 401},
		{name: "is at its limit", model: r.model(boot, failed("rate_limit", 429)), status: 429},
		{name: "got too much", model: r.model(boot, failed("invalid_request", 400)), status: 400},
		{name: "is overloaded", model: r.model(boot, failed("server_error", 529)), status: 503, anthropic: 529},
		{name: "is overloaded in the answer", model: r.model(boot, half, failed("server_error", 529)), status: 503, anthropic: 529, begun: true},
		{name: "opens a menu", model: r.model(boot, one(claudetest.Dialog, claudetest.LimitUpgrade)), status: 429},
		{name: "opens a dialog", model: r.model(boot[:1], one(claudetest.Dialog, claudetest.Trust332)), status: 502},
		{name: "is deaf and has a child", model: r.model(one(claudetest.Deaf, ""), one(claudetest.Fork, ""), boot, half, failed("server_error", 500)), status: 502, begun: true},
		{name: "falls silent", model: r.model(boot, half), status: 504, begun: true},
		{name: "is left by its client", model: r.model(boot, half), leaves: true},
	}
}

// TestFailuresLeaveNothing has two hundred requests fail in a row, in every way, on every
// route and in both modes. Each client learns it, and afterwards all is as before: slots,
// gauges, goroutines, file descriptors, processes and files.
func TestFailuresLeaveNothing(t *testing.T) {
	const requests, parallel = 200, 4
	t.Setenv("TMPDIR", t.TempDir())
	r := serveStandin(t, func(c *config.Serve) { c.IdleTimeout = time.Second })
	all := failures(r)
	run := func(n int) {
		next := make(chan int)
		var workers sync.WaitGroup
		for range parallel {
			workers.Go(func() {
				for i := range next {
					r.fail(all[i%len(all)], paths[i%len(paths)], i%2 == 0)
				}
			})
		}
		for i := range n {
			next <- i
		}
		close(next)
		workers.Wait()
	}
	run(len(all)) // what is made once, and kept
	before := r.stock()
	run(requests)
	if after := r.stock(); after.goroutines > before.goroutines || after.descriptors > before.descriptors {
		t.Errorf("before %+v, after %+v", before, after)
	}
	turns, status := 0, r.status()
	for _, n := range status.Turns {
		turns += n
	}
	lines := strings.Count(r.log.String(), `"msg":"turn"`)
	if want := requests + len(all); status.Turns["ok"] != 0 || turns != want || lines != want {
		t.Errorf("%d turns are counted and %d logged, want %d and none ok: %v", turns, lines, want, status.Turns)
	}
	t.Logf("%v", status.Turns)

	// The slots are there: as many requests as there are run at once.
	answer := r.model(claudetest.Answer("fine\n"))
	var answers sync.WaitGroup
	for range parallel {
		answers.Go(func() {
			if got, err := r.do(r.request(paths[0], answer, false)); err != nil || got.status != 200 || !strings.Contains(got.body, `"fine\n"`) {
				t.Errorf("afterwards: %+v, %v", got, err)
			}
		})
	}
	answers.Wait()
}

// fail has a turn fail and checks that its client learns it: by a status before the first
// byte, and after it by an error that the stream ends with, and no other end.
func (r *rig) fail(f failure, path string, stream bool) {
	req := r.request(path, f.model, stream)
	if f.leaves {
		r.leave(req.Context(), path, f.model)
		return
	}
	want := f.status
	switch {
	case stream && f.begun:
		want = 200
	case path == "/v1/messages" && f.anthropic != 0:
		want = f.anthropic
	}
	got, err := r.do(req)
	switch {
	case err != nil || got.status != want:
		r.t.Errorf("%s, %s, stream %v: status %d, want %d, %v: %s", f.name, path, stream, got.status, want, err, got.body)
	case want == 200 && goodEnd.MatchString(got.body):
		r.t.Errorf("%s, %s: a stream that ends well: %s", f.name, path, got.body)
	case !stream && strings.Contains(got.body, "half an answer"):
		r.t.Errorf("%s, %s: half an answer: %s", f.name, path, got.body)
	case !strings.Contains(got.body, `"error":{`):
		r.t.Errorf("%s, %s: no error in the dialect: %s", f.name, path, got.body)
	case strings.Contains(got.body, "API Error") || strings.Contains(got.body, r.state):
		r.t.Errorf("%s, %s: the error shows too much: %s", f.name, path, got.body)
	}
}

// goodEnd is how a stream of any dialect ends well.
var goodEnd = regexp.MustCompile(`\[DONE\]|message_stop|"finish_reason":"|response\.completed`)

// leave is a client that reads the beginning of an answer and goes.
func (r *rig) leave(ctx context.Context, path, model string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	res, err := r.client.Do(r.request(path, model, true).WithContext(ctx))
	if err != nil {
		r.t.Error(err)
		return
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, 10)); err != nil {
		r.t.Errorf("%s: %v", path, err)
	}
}

// stock is what the proxy holds.
type stock struct{ goroutines, descriptors int }

// stock waits until no session is left of any kind, and counts what is.
func (r *rig) stock() stock {
	r.t.Helper()
	if !eventually(r.t, func() bool { return r.status().Sessions == state{}.Sessions }) {
		r.t.Errorf("the gauges stay at %+v", r.status().Sessions)
	}
	if !eventually(r.t, func() bool { return len(r.processes()) == 0 }) {
		r.t.Errorf("processes are left: %q", r.processes())
	}
	for _, pattern := range []string{filepath.Join(r.state, "sessions", "*"), filepath.Join(os.TempDir(), "*")} {
		left, err := filepath.Glob(pattern)
		if left = withoutState(left, r.state); err != nil || len(left) > 0 {
			r.t.Errorf("files are left: %q, %v", left, err)
		}
	}
	count := func() stock {
		descriptors, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			r.t.Fatal(err)
		}
		return stock{runtime.NumGoroutine(), len(descriptors)}
	}
	// The ends of connections take a moment.
	last, still := count(), 0
	eventually(r.t, func() bool {
		now := count()
		if still++; now != last {
			still = 0
		}
		last = now
		return still == 10
	})
	return last
}

// withoutState leaves out the folder of the proxy itself.
func withoutState(files []string, state string) []string {
	var others []string
	for _, file := range files {
		if file != filepath.Dir(state) {
			others = append(others, file)
		}
	}
	return others
}

// processes are those whose environment names the state directory.
func (r *rig) processes() []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if env, err := os.ReadFile(file); err == nil && bytes.Contains(env, []byte(r.state)) {
			found = append(found, filepath.Base(filepath.Dir(file)))
		}
	}
	return found
}
