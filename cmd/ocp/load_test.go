package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"ocp/internal/admission"
	"ocp/internal/hook"
	"ocp/internal/prompt"
	"ocp/internal/server"
	"ocp/internal/transcript"
	"ocp/internal/turn"
)

// asGenerator makes the test binary the other side of a load: the CLIs and the clients.
// In a process of its own what it takes can be told from what ocp takes.
const asGenerator = "OCP_TEST_LOAD_GENERATOR"

// mainGenerate is the test binary in that part.
func mainGenerate() {
	if err := generate(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Many turns at once on the real server, hook receiver, transcript followers and turns;
// the CLIs alone are made up. Every client must read every answer to the byte, and
// nothing may be left.
func TestLoad(t *testing.T) {
	p := plan{Clients: 50, Run: time.Second, Deltas: 10, Every: 100 * time.Millisecond}
	runLoad(t, p, generateHere)
	before := heapInUse()
	runLoad(t, p, generateHere)
	if grown := heapInUse() - before; grown > 2<<20 {
		t.Errorf("a second run has left %d bytes on the heap", grown)
	}
}

// TestLoadSoak is the same with more turns and for longer: a minute each, or
// OCP_LOAD_RUN. It tells what that takes and how long a delta is under way, and says
// nothing of what it should be: that depends on the machine.
func TestLoadSoak(t *testing.T) {
	if os.Getenv("OCP_SOAK") == "" {
		t.Skip("set OCP_SOAK=1")
	}
	run := time.Minute
	if s := os.Getenv("OCP_LOAD_RUN"); s != "" {
		var err error
		if run, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []int{10, 100, 500, 1000, 1500, 2000} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			runLoad(t, plan{Clients: n, Run: run, Deltas: 100, Every: 100 * time.Millisecond}, generateApart)
		})
	}
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// load is ocp with a backend that starts no CLI, but tells the generator to play one.
type load struct {
	dir   string // of the sessions
	hooks *hook.Receiver
	begun time.Time
	plan  plan

	mu        sync.Mutex
	generator *json.Encoder // guarded by mu

	written series // from a hook call's receipt until its text is written to the client
}

// runLoad runs one load to its end.
func runLoad(t *testing.T, p plan, start func(t *testing.T) (in io.WriteCloser, out io.Reader, wait func() error)) {
	dir := t.TempDir()
	hooks, err := hook.Start(filepath.Join(dir, "hooks.sock"))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.API, p.Hooks = "http://"+listener.Addr().String()+"/v1/chat/completions", hooks.URL()
	in, out, wait := start(t)
	l := &load{dir: dir, hooks: hooks, plan: p, generator: json.NewEncoder(in)}
	api := server.New(server.Options{
		Backend:   l,
		Admission: admission.New(admission.Options{Slots: p.Clients, Queue: p.Clients}),
		Loopback:  true,
	})
	web := &http.Server{Handler: l.timed(api.Handler())}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()

	l.begun = time.Now()
	usage := l.watch()
	err = l.generator.Encode(p)
	var r report
	err = errors.Join(err, json.NewDecoder(out).Decode(&r))
	ocp, rss := usage()
	took := time.Since(l.begun)
	err = errors.Join(err, in.Close(), wait(), api.Shutdown(t.Context()), web.Shutdown(t.Context()), hooks.Close())
	if served := <-served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		t.Error(err)
	}
	for _, e := range r.Errors {
		t.Error(e)
	}
	if r.Turns < p.Clients {
		t.Errorf("%d turns, want at least one of each of the %d clients", r.Turns, p.Clients)
	}
	each := func(cpu time.Duration) string {
		return fmt.Sprintf("%.2f cores, %s a delta", cpu.Seconds()/took.Seconds(), cpu/time.Duration(max(r.Deltas, 1)))
	}
	t.Logf("%d turns, %d deltas in %s; %.0f a second due; load of the machine %s\nocp:       %s; %s\ngenerator: %s\n"+
		"hook receipt to write:         %s\nhook call, as the CLI sees it: %s\ndue to read by the client:     %s",
		r.Turns, r.Deltas, took.Round(time.Second), float64(p.Clients)/p.Every.Seconds(), machineLoad(),
		each(ocp), rss, each(r.CPU), &l.written, r.Called, r.Read)
}

// generateHere runs the generator among this process's goroutines.
func generateHere(*testing.T) (io.WriteCloser, io.Reader, func() error) {
	inRead, in := io.Pipe()
	out, outWrite := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := generate(inRead, outWrite)
		outWrite.CloseWithError(err)
		done <- err
	}()
	return in, out, func() error { return <-done }
}

// generateApart runs it as a process.
func generateApart(t *testing.T) (io.WriteCloser, io.Reader, func() error) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), asGenerator+"=1")
	cmd.Stderr = os.Stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := cmp.Or(inErr, outErr); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return in, out, cmd.Wait
}

// watch begins to measure what this process takes.
func (l *load) watch() (end func() (cpu time.Duration, rss string)) {
	var inRun [2]atomic.Int64 // MB, after a third of the run and near its end
	third := time.AfterFunc(l.plan.Run/3, func() { inRun[0].Store(rssMB()) })
	late := time.AfterFunc(l.plan.Run*9/10, func() { inRun[1].Store(rssMB()) })
	used := processorTime()
	return func() (time.Duration, string) {
		third.Stop()
		late.Stop()
		return processorTime() - used, fmt.Sprintf("RSS %d MB after a third of the run, %d MB near its end", inRun[0].Load(), inRun[1].Load())
	}
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// rssMB is this process's resident memory, 0 where there is no /proc.
func rssMB() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return 0
	}
	kb, _ := strconv.ParseInt(string(found[1]), 10, 64)
	return kb >> 10
}

func machineLoad() string {
	averages, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := bytes.Cut(averages, []byte(" "))
	return string(first)
}

// timing is a response's writer that knows when what it writes was received.
type timing struct {
	http.ResponseWriter
	load     *load
	client   string
	received atomic.Int64 // since load.begun; 0 for none
}

type timingKey struct{}

func (l *load) timed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timed := &timing{ResponseWriter: w, load: l, client: r.Header.Get(clientHeader)}
		h.ServeHTTP(timed, r.WithContext(context.WithValue(r.Context(), timingKey{}, timed)))
	})
}

func (t *timing) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *timing) FlushError() error {
	err := http.NewResponseController(t.ResponseWriter).Flush()
	if received := t.received.Swap(0); received != 0 {
		now := time.Since(t.load.begun)
		t.load.written.add(now, t.load.plan.Run, now-time.Duration(received))
	}
	return err
}

// Start implements server.Backend.
func (l *load) Start(ctx context.Context, _ prompt.Request) (server.Session, error) {
	id := uuid.NewString()
	s := &playedSession{
		dir: filepath.Join(l.dir, id), timing: ctx.Value(timingKey{}).(*timing), events: make(chan turn.Event),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	path := filepath.Join(s.dir, id+".jsonl")
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, err
	}
	size, err := transcript.Create(path, []transcript.Entry{{Role: "user", Content: json.RawMessage(`[{"type":"text","text":"Go on."}]`)}})
	if err != nil {
		return nil, err
	}
	if s.follower, err = transcript.Follow(path, size, transcript.Options{}); err != nil {
		return nil, err
	}
	s.route = l.hooks.Register(id)
	go s.live()
	l.mu.Lock()
	defer l.mu.Unlock()
	return s, l.generator.Encode(launch{Client: s.timing.client, Session: id, Secret: s.route.Secret, Transcript: path})
}

// playedSession is a claude.Session without a process: what its loop does with hook
// calls and records, and no more.
type playedSession struct {
	dir      string
	timing   *timing
	route    *hook.Route
	follower *transcript.Follower

	events chan turn.Event // closed after the last one
	err    error           // set before events is closed
	stop   chan struct{}
	once   sync.Once
	done   chan struct{}
}

func (s *playedSession) live() {
	defer close(s.done)
	defer s.route.Close()
	defer s.follower.Close()
	t := turn.New(turn.Options{Classify: func(f turn.Failure) *turn.Error { return &turn.Error{Kind: turn.Upstream, Message: f.Message} }})
	var out []turn.Event
	closed := false
	take := func(events []turn.Event, err error) {
		if err != nil {
			s.err = err
		}
		for _, e := range events {
			d, isDelta := e.(turn.Delta)
			if n := len(out) - 1; isDelta && n >= 0 {
				if last, ok := out[n].(turn.Delta); ok {
					out[n] = turn.Delta{Text: last.Text + d.Text, Received: last.Received}
					continue
				}
			}
			out = append(out, e)
		}
	}
	for {
		var taker chan<- turn.Event
		var next turn.Event
		if len(out) > 0 {
			taker, next = s.events, out[0]
		} else if t.Over() && !closed {
			closed = true
			close(s.events)
		}
		select {
		case <-s.stop:
			return
		case taker <- next:
			out = out[1:]
		case e := <-s.route.Events():
			if e.Name == hook.Stop {
				s.follower.Poke()
			}
			take(t.Hook(e))
		case r, ok := <-s.follower.Records():
			if !ok {
				take(nil, s.follower.Err())
				t.Abort()
				continue
			}
			take(t.Record(r))
		}
	}
}

func (s *playedSession) Next(ctx context.Context) (turn.Event, error) {
	select {
	case e, ok := <-s.events:
		if !ok {
			return nil, s.err
		}
		if d, ok := e.(turn.Delta); ok && !d.Received.IsZero() {
			s.timing.received.Store(int64(d.Received.Sub(s.timing.load.begun)))
		}
		return e, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *playedSession) Close() error {
	s.once.Do(func() { close(s.stop) })
	<-s.done
	return os.RemoveAll(s.dir)
}
