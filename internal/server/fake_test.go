package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"ocp/internal/admission"
	"ocp/internal/prompt"
	"ocp/internal/turn"
)

// net/http gives a connection that it closes half a second to be read to its end.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// step is what a fake session's Next returns. A non-nil panics is thrown instead.
type step struct {
	event  turn.Event
	err    error
	panics any
}

// fakeSession gives the steps that a test sends it. Next counts the waiting.
type fakeSession struct {
	request prompt.Request
	steps   chan step
	waiting chan struct{} // one for each Next that waits
	hold    chan struct{} // Close waits for it
	closing chan struct{} // closed when Close was called
	once    sync.Once
}

func (f *fakeSession) Next(ctx context.Context) (turn.Event, error) {
	select {
	case f.waiting <- struct{}{}:
	default:
	}
	select {
	case s := <-f.steps:
		if s.panics != nil {
			panic(s.panics)
		}
		return s.event, s.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (f *fakeSession) Close() error {
	f.once.Do(func() { close(f.closing) })
	<-f.hold
	return nil
}

// say sends a session its next steps, one by one.
func (f *fakeSession) say(events ...turn.Event) {
	for _, event := range events {
		f.steps <- step{event: event}
	}
}

// fakeBackend hands its sessions to the test, and to the server.
type fakeBackend struct {
	started chan *fakeSession
	start   func(ctx context.Context) error // if not nil, asked first
	hold    bool                            // Close of the sessions waits until the test closes hold
}

func (f *fakeBackend) Start(ctx context.Context, req prompt.Request) (Session, error) {
	if f.start != nil {
		if err := f.start(ctx); err != nil {
			return (*fakeSession)(nil), err
		}
	}
	s := &fakeSession{
		request: req,
		steps:   make(chan step),
		waiting: make(chan struct{}, 1),
		hold:    make(chan struct{}),
		closing: make(chan struct{}),
	}
	if !f.hold {
		close(s.hold)
	}
	f.started <- s
	return s, nil
}

// logSink is a slog.Handler that keeps every record for the test.
type logSink struct{ lines chan map[string]any }

func (l logSink) Enabled(context.Context, slog.Level) bool { return true }
func (l logSink) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l logSink) WithGroup(string) slog.Handler            { return l }
func (l logSink) Handle(_ context.Context, r slog.Record) error {
	line := map[string]any{"msg": r.Message, "level": r.Level}
	r.Attrs(func(a slog.Attr) bool {
		line[a.Key] = a.Value.Any()
		return true
	})
	l.lines <- line
	return nil
}

// rig is a server with a fake backend behind it and a client before it.
type rig struct {
	t       *testing.T
	backend *fakeBackend
	gate    *admission.Gate
	server  *Server
	client  *http.Client
	url     string
	lines   chan map[string]any
}

func newRig(t *testing.T, o Options, limits admission.Options) *rig {
	t.Helper()
	r := &rig{
		t:       t,
		backend: &fakeBackend{started: make(chan *fakeSession, 16)},
		gate:    admission.New(limits),
		lines:   make(chan map[string]any, 1024),
	}
	if o.HostNames == nil && !o.Loopback {
		o.HostNames = []string{"*"}
	}
	o.Backend, o.Admission, o.Logger, o.Version = r.backend, r.gate, slog.New(logSink{r.lines}), "1.2.3"
	r.server = New(o)
	return r
}

// start serves over real TCP.
func start(t *testing.T, o Options, limits admission.Options) *rig {
	t.Helper()
	r := newRig(t, o, limits)
	ts := httptest.NewServer(r.server.Handler())
	r.client, r.url = ts.Client(), ts.URL
	t.Cleanup(func() {
		if err := r.server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		ts.CloseClientConnections()
		ts.Close()
	})
	return r
}

// startPiped serves over pipes in memory, for use in a synctest bubble.
func startPiped(t *testing.T, o Options, limits admission.Options) (*rig, func() net.Conn) {
	t.Helper()
	r := newRig(t, o, limits)
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	hs := r.server.HTTP()
	hs.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	go hs.Serve(l) // until Close
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return l.dial(), nil }}
	r.client, r.url = &http.Client{Transport: transport}, "http://pipe"
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := r.server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		hs.Close()
	})
	return r, l.dial
}

type pipeListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (l *pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l.conns <- server
	return client
}

const (
	streamedBody = `{"model":"opus","messages":[{"role":"user","content":"a secret"}],"stream":true}`
	wholeBody    = `{"model":"opus","messages":[{"role":"user","content":"a secret"}]}`
)

// post sends a chat request and returns its response, whose headers have come.
func (r *rig) post(ctx context.Context, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		r.t.Error(err)
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return r.client.Do(req)
}

// reply is a response read to its end.
type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

// send posts a chat request in the background.
func (r *rig) send(ctx context.Context, body string) <-chan reply {
	c := make(chan reply, 1)
	go func() {
		res, err := r.post(ctx, body)
		if err != nil {
			c <- reply{err: err}
			return
		}
		c <- read(res)
	}()
	return c
}

func read(res *http.Response) reply {
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, maps.Clone(res.Header), string(body), err}
}

// envelope is the error in a reply.
type envelope struct {
	Error struct{ Message, Type, Param, Code string }
}

func decodeEnvelope(t *testing.T, body string) (e envelope) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Errorf("%v in %q", err, body)
	}
	return e
}

// wantError checks a reply for an error in the API's shape.
func wantError(t *testing.T, got reply, status int, code, param string) {
	t.Helper()
	if got.err != nil {
		t.Errorf("no reply: %v", got.err)
		return
	}
	e := decodeEnvelope(t, got.body)
	if got.status != status || e.Error.Code != code || e.Error.Param != param || e.Error.Message == "" || e.Error.Type == "" {
		t.Errorf("got %d %s, want %d with code %q and param %q", got.status, got.body, status, code, param)
	}
	if !strings.HasPrefix(got.header.Get("X-Request-Id"), "req_") || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("the headers are %v", got.header)
	}
}

// wantLine waits for the log line of a request and checks its outcome.
func (r *rig) wantLine(msg, outcome string) map[string]any {
	r.t.Helper()
	line := <-r.lines
	if line["msg"] != msg || line["outcome"] != outcome {
		r.t.Errorf("logged %v, want a %s that is %q", line, msg, outcome)
	}
	return line
}

// wantFree waits until every slot is free again.
func (r *rig) wantFree() {
	r.t.Helper()
	r.server.turns.Wait()
	release, err := r.gate.Acquire(context.Background())
	if err != nil {
		r.t.Errorf("no slot: %v", err)
		return
	}
	release()
	if got := r.gate.Stats(); got != (admission.Stats{}) {
		r.t.Errorf("the gate has %+v", got)
	}
}

// frames reads a stream frame by frame.
type frames struct {
	t    *testing.T
	body io.ReadCloser
	scan *bufio.Scanner
}

func readFrames(t *testing.T, res *http.Response) *frames {
	return &frames{t, res.Body, bufio.NewScanner(res.Body)}
}

// next returns the next frame without its empty line; "" at the end.
func (f *frames) next() string {
	f.t.Helper()
	var lines []string
	for f.scan.Scan() {
		if f.scan.Text() == "" {
			return strings.Join(lines, "\n")
		}
		lines = append(lines, f.scan.Text())
	}
	if err := f.scan.Err(); err != nil && !errors.Is(err, context.Canceled) {
		f.t.Errorf("the stream broke: %v", err)
	}
	return strings.Join(lines, "\n")
}

// text returns the content of the next frame, which must be a chunk with one choice.
func (f *frames) text() string {
	f.t.Helper()
	var chunk struct {
		Choices []struct {
			Delta struct{ Content string }
		}
	}
	frame := f.next()
	if err := json.Unmarshal([]byte(strings.TrimPrefix(frame, "data: ")), &chunk); err != nil || len(chunk.Choices) != 1 {
		f.t.Fatalf("not a chunk: %q (%v)", frame, err)
	}
	return chunk.Choices[0].Delta.Content
}
