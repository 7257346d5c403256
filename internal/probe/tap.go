package probe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"ocp/internal/hook"
)

// call is one http hook call, as it came from the CLI.
type call struct {
	hook.Event
	came   time.Time
	flying int // calls of its message under way when it came, itself included
}

// manner is how a tap treats a call: what it answers, after passing the call on, or not.
// A status of zero cuts the connection without an answer.
type manner func(ctx context.Context, c call, pass func(ctx context.Context, body []byte) (int, []byte)) (status int, answer []byte)

// tap stands between the CLI's http hooks and the launcher's receiver, and notes every
// call.
type tap struct {
	server   *http.Server
	listener net.Listener
	served   sync.WaitGroup
	client   *http.Client

	mu      sync.Mutex
	target  string         // guarded by mu
	manner  manner         // nil to pass every call on; guarded by mu
	calls   []call         // guarded by mu
	flying  map[string]int // by message id; guarded by mu
	changed chan struct{}  // closed and replaced at every call; guarded by mu
}

func startTap() (*tap, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &tap{
		listener: listener, client: &http.Client{Transport: &http.Transport{}},
		flying: map[string]int{}, changed: make(chan struct{}),
	}
	t.server = &http.Server{Handler: t, ReadHeaderTimeout: 10 * time.Second}
	t.served.Go(func() { _ = t.server.Serve(listener) })
	return t, nil
}

func (t *tap) url() string { return "http://" + t.listener.Addr().String() + hook.Path }

// to names the receiver that calls are passed on to.
func (t *tap) to(url string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.target = url
}

// treat sets how calls are treated from now on.
func (t *tap) treat(m manner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.manner = m
}

func (t *tap) close() {
	_ = t.server.Close()
	t.served.Wait()
	t.client.CloseIdleConnections()
}

// of returns the calls of a session so far, in the order in which they came; of all, if
// it names none.
func (t *tap) of(session string) []call {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(t.calls), func(c call) bool { return session != "" && c.SessionID != session })
}

// await waits until what has come from a session is enough.
func (t *tap) await(ctx context.Context, session string, enough func([]call) bool) error {
	for {
		t.mu.Lock()
		changed := t.changed
		t.mu.Unlock()
		if enough(t.of(session)) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (t *tap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, hook.MaxBody))
	event, decodeErr := hook.Decode(body)
	if errors.Join(err, decodeErr) != nil {
		http.Error(w, "not a hook call", http.StatusBadRequest)
		return
	}
	c, treat := t.note(event)
	defer t.forget(c)
	pass := func(ctx context.Context, body []byte) (int, []byte) {
		return t.pass(ctx, r.Header.Get(hook.SecretHeader), body)
	}
	var status int
	var answer []byte
	if treat == nil {
		status, answer = pass(r.Context(), body)
	} else {
		status, answer = treat(r.Context(), c, func(ctx context.Context, changed []byte) (int, []byte) {
			if changed == nil {
				changed = body
			}
			return pass(ctx, changed)
		})
	}
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

func (t *tap) note(e hook.Event) (call, manner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flying[e.MessageID]++
	c := call{Event: e, came: time.Now(), flying: t.flying[e.MessageID]}
	t.calls = append(t.calls, c)
	close(t.changed)
	t.changed = make(chan struct{})
	return c, t.manner
}

func (t *tap) forget(c call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flying[c.MessageID]--
}

// pass hands a call on and returns the receiver's answer; a status of zero if there is none.
func (t *tap) pass(ctx context.Context, secret string, body []byte) (int, []byte) {
	t.mu.Lock()
	target := t.target
	t.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return 0, nil
	}
	req.Header.Set(hook.SecretHeader, secret)
	resp, err := t.client.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil
	}
	return resp.StatusCode, answer
}

// named are the calls of one event.
func named(calls []call, event string) []call {
	return slices.DeleteFunc(slices.Clone(calls), func(c call) bool { return c.Name != event })
}
