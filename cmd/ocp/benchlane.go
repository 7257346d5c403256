package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ocp/internal/bench"
	"ocp/internal/config"
	"ocp/internal/messagesapi"
	"ocp/internal/server"
	"ocp/internal/transcript"
)

// readyEvery is how often a pool, which tells nobody, is asked whether it is filled.
const readyEvery = 10 * time.Millisecond

var errNotReady = fmt.Errorf("after %v the next turn could not begin: the last session has not ended, or the pool is not filled", demoTimeout)

// benchLane is a proxy whose turns all go one way, and its client.
type benchLane struct {
	way    benchWay
	proxy  *proxy
	state  string // its state directory
	client *http.Client
	model  *messagesapi.Server // nil if the upstream is the real one
	ask    string              // the model's name
	traces chan server.Trace

	history []chatMessage // of the conversation that goes on
}

func openLane(p program, way benchWay, settings config.Serve, cli string, env []string, level string) (*benchLane, error) {
	state, err := passingState(demoPrefix)
	if err != nil {
		return nil, err
	}
	l := &benchLane{way: way, state: state, client: &http.Client{Transport: &http.Transport{}}, traces: make(chan server.Trace, 1)}
	settings.StateDir = state
	way.settings(&settings)
	l.proxy, err = startProxy(settings, cli, env, newLogger(p.stderr, level, "text"), func(t server.Trace) {
		if t.Outcome != "" {
			l.traces <- t
		}
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(state))
	}
	return l, nil
}

// close ends the proxy, adds to the lane's turns what the transcripts that it has kept
// say of them, and removes all of it.
func (l *benchLane) close(turns []bench.Turn) error {
	l.client.CloseIdleConnections()
	err := l.proxy.close()
	durations, failed := turnDurations(filepath.Join(l.state, "transcripts"))
	for i := range turns {
		if turns[i].Wanted == l.way.name && turns[i].CLI == 0 {
			turns[i].CLI = durations[turns[i].Run]
		}
	}
	return errors.Join(err, failed, os.RemoveAll(l.state))
}

// seen is what the client has seen of a turn.
type seen struct {
	text          strings.Builder
	chunks        []time.Time
	ends          []int // length of the text after each chunk
	session, self int64 // resident memory at the first chunk, in bytes
}

// turn runs one turn and puts together what the client, the proxy and the model's log
// say of it.
func (l *benchLane) turn(ctx context.Context, run int) (bench.Turn, error) {
	if err := l.rest(ctx); err != nil {
		return bench.Turn{}, err
	}
	if l.model != nil {
		l.model.Reset()
	}
	messages := append(l.history, chatMessage{"user", fmt.Sprintf(benchPrompt, run)})
	var client seen
	t := bench.Turn{Run: run, Wanted: l.way.name, Request: time.Now()}
	err := stream(ctx, l.client, l.proxy.url(), l.ask, messages, func(text string) {
		client.chunks = append(client.chunks, time.Now())
		client.text.WriteString(text)
		client.ends = append(client.ends, client.text.Len())
		if len(client.chunks) == 1 {
			client.session, client.self = residentIn(l.state), resident("self")
		}
	})
	t.Done = time.Now()
	if err != nil {
		return t, err
	}
	if len(client.chunks) == 0 {
		return t, errors.New("the answer has no text")
	}
	if l.way.name == bench.Continued {
		l.history = append(messages, chatMessage{"assistant", client.text.String()})
	}
	select {
	case trace := <-l.traces:
		t.First, t.SessionRSS, t.OwnRSS = client.chunks[0], client.session, client.self
		addTrace(&t, trace, client)
	case <-ctx.Done():
		return t, context.Cause(ctx)
	}
	if l.model != nil {
		return t, addModel(&t, l.model, client)
	}
	return t, nil
}

// warmUp runs turns that are not measured.
func (l *benchLane) warmUp(ctx context.Context) error {
	for range warmUps {
		turn, err := l.turn(ctx, 0)
		if err != nil || turn.Way == l.way.name {
			return err
		}
	}
	return nil
}

// rest waits until what the turn before has left is gone, since its slot is free only
// then, and until the next one can go its way.
func (l *benchLane) rest(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, demoTimeout, errNotReady)
	defer cancel()
	release, err := l.proxy.gate.Acquire(ctx)
	if err != nil {
		return err
	}
	release()
	look := time.NewTicker(readyEvery)
	defer look.Stop()
	for l.way.ready != nil && !l.way.ready(l.proxy) {
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// addTrace adds what the proxy knows.
func addTrace(t *bench.Turn, trace server.Trace, client seen) {
	s := trace.Finished.Stages
	t.Way = string(s.Way)
	if t.Way == "" {
		t.Way = t.Wanted
	}
	t.Admitted, t.Spawned, t.Given, t.Taken, t.Ready = trace.Admitted, s.Spawned, s.Given, s.Taken, s.Ready
	t.Stopped, t.Ended, t.CLI = s.Stopped, s.Ended, s.CLI
	for i, d := range trace.Deltas {
		delta := bench.Delta{Received: d.Received, Written: d.Written}
		if len(trace.Deltas) == len(client.chunks) { // each delta is a chunk
			delta.Client = client.chunks[i]
		}
		t.Deltas = append(t.Deltas, delta)
	}
}

// addModel adds what the scripted model's log says. Each of its deltas is a line, and
// each chunk ends with one.
func addModel(t *bench.Turn, model *messagesapi.Server, client seen) error {
	asked := model.Turns()
	if len(asked) != 1 {
		return fmt.Errorf("the model was asked %d times for one turn", len(asked))
	}
	t.Submitted, t.Last, t.RequestBytes = asked[0].Arrived, asked[0].LastByte(), len(asked[0].Body)
	var lines []time.Time
	for _, e := range asked[0].Events() {
		if e.Name == "content_block_delta" {
			lines = append(lines, e.At)
		}
	}
	if len(lines) == 0 {
		return errors.New("the model has written no line")
	}
	t.Line = lines[0]
	if len(t.Deltas) != len(client.chunks) {
		return nil
	}
	for i := range t.Deltas {
		if n := strings.Count(client.text.String()[:client.ends[i]], "\n"); n >= 1 && n <= len(lines) {
			t.Deltas[i].Line = lines[n-1]
		}
	}
	return nil
}

// turnDurations are the CLI's own measures of its turns, by the run that their prompts
// name. The record comes behind the answer, as a rule too late for a trace.
func turnDurations(dir string) (map[int]time.Duration, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	durations := map[int]time.Duration{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a kept transcript: %w", err)
		}
		run := -1
		for line := range bytes.Lines(data) {
			r, err := transcript.Parse(line)
			switch {
			case err != nil: // cut off by the session's end
			case r.Type == "user" && !r.IsMeta:
				_, _ = fmt.Sscanf(r.Message.Text(), benchPrompt[:len("Turn %d:")], &run)
			case r.Subtype == "turn_duration":
				durations[run] = time.Duration(r.DurationMS) * time.Millisecond
			}
		}
	}
	return durations, nil
}

// residentIn is the resident memory, in bytes, of the largest process that works inside
// a directory: a session's CLI. Zero where there is no /proc.
func residentIn(dir string) int64 {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	var largest int64
	for _, link := range links {
		if cwd, err := os.Readlink(link); err == nil && strings.HasPrefix(cwd, dir+"/") {
			largest = max(largest, resident(filepath.Base(filepath.Dir(link))))
		}
	}
	return largest
}

// resident is a process's resident memory in bytes; zero if it cannot be told.
func resident(pid string) int64 {
	status, _ := os.ReadFile(filepath.Join("/proc", pid, "status"))
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var kilobytes int64
	_, _ = fmt.Sscan(rest, &kilobytes)
	return kilobytes << 10
}
