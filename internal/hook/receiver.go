package hook

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Path is where the receiver takes hook calls.
	Path = "/hook"
	// SecretHeader carries a session's secret.
	SecretHeader = "Ocp-Hook-Secret"
	// MaxBody bounds one hook call, in bytes. A delta can be the whole answer: 200 KB
	// in one fire was measured, and escapes can make a byte six.
	MaxBody = 32 << 20

	// routeBuffer is how many events wait for a session that is busy before its hook
	// calls are answered more slowly. The CLI has at most three fires of a message in
	// flight.
	routeBuffer = 16
	// readTimeout bounds how long one call may take to arrive.
	readTimeout = 30 * time.Second
)

// Stats counts calls since the start of a Receiver.
type Stats struct {
	Accepted int64
	Refused  int64 // wrong secret, wrong session, or not a hook call
}

// Receiver takes the hook calls of all sessions on a loopback port and on a Unix
// socket, and routes each by its session's secret.
type Receiver struct {
	tcp, unix net.Listener
	server    *http.Server
	served    sync.WaitGroup

	accepted, refused atomic.Int64

	mu     sync.Mutex
	routes map[string]*Route // by secret; guarded by mu
}

// Start listens on a free loopback port and on the Unix socket at the given path
// (at most about 100 bytes; its folder keeps others out).
func Start(socket string) (*Receiver, error) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for hooks: %w", err)
	}
	unix, err := net.Listen("unix", socket)
	if err != nil {
		_ = tcp.Close()
		return nil, fmt.Errorf("listen for hooks on a socket: %w", err)
	}
	r := &Receiver{tcp: tcp, unix: unix, routes: map[string]*Route{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+Path, r.serve)
	mux.HandleFunc("GET "+ToolsPath, r.serveTools)
	mux.HandleFunc("POST "+ToolsPath, r.toolsListed)
	r.server = &http.Server{Handler: mux, ReadTimeout: readTimeout, MaxHeaderBytes: 16 << 10}
	for _, l := range []net.Listener{tcp, unix} {
		r.served.Go(func() { _ = r.server.Serve(l) })
	}
	return r, nil
}

// URL is where http hooks are sent.
func (r *Receiver) URL() string { return "http://" + r.tcp.Addr().String() + Path }

// Socket is the path of the Unix socket.
func (r *Receiver) Socket() string { return r.unix.Addr().String() }

// Stats returns the counts so far.
func (r *Receiver) Stats() Stats {
	return Stats{Accepted: r.accepted.Load(), Refused: r.refused.Load()}
}

// Close ends all calls and waits for them.
func (r *Receiver) Close() error {
	err := r.server.Close()
	r.served.Wait()
	return err
}

// Route is one session's way in. Its events come in order of arrival, which is not
// the order of the text.
type Route struct {
	Secret string

	receiver  *Receiver
	sessionID string
	events    chan Event
	closed    chan struct{}
	closeOnce sync.Once

	mu       sync.Mutex
	expected *string       // guarded by mu
	tools    []byte        // guarded by mu: see Offer
	listed   chan struct{} // guarded by mu; nil if no tools are offered
}

// Register opens a route for a session with a secret of its own.
func (r *Receiver) Register(sessionID string) *Route {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // crypto/rand.Read never fails
	route := &Route{
		Secret:    hex.EncodeToString(secret),
		receiver:  r,
		sessionID: sessionID,
		events:    make(chan Event, routeBuffer),
		closed:    make(chan struct{}),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.routes[route.Secret] = route
	return route
}

// Events are the session's hook calls. The channel is never closed.
func (t *Route) Events() <-chan Event { return t.events }

// Expect lets one prompt be submitted in the session, if it is just this text. Any other
// is blocked, which ends its turn before anything is asked of the model; so is every one
// that is not expected.
func (t *Route) Expect(prompt string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expected = &prompt
}

// admit reports whether a prompt is the one expected, once.
func (t *Route) admit(prompt string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	ok := t.expected != nil && *t.expected == prompt
	t.expected = nil
	return ok
}

// Close ends the route: later calls with its secret are refused.
func (t *Route) Close() {
	t.closeOnce.Do(func() {
		t.receiver.mu.Lock()
		delete(t.receiver.routes, t.Secret)
		t.receiver.mu.Unlock()
		close(t.closed)
	})
}

// The lookup by map leaks at most timing of a 256-bit random key's hash, which is
// seeded per process.
func (r *Receiver) route(secret string) *Route {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.routes[secret]
}

// The answers to a hook call: go on, submit no such prompt, and run no tool. The last also
// ends the turn behind the message with the call, without another request (2.1.332).
const (
	goOn  = "{}"
	deny  = `{"continue":false,"stopReason":"ocp","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"ocp: the client runs its tools"}}`
	block = `{"decision":"block","reason":"ocp: this is not the text that the client has sent"}`
)

// serve hands one call to its session and answers goOn, but to a prompt that is not the
// expected one and to the call of a tool: no hook is used to change what the CLI does in
// any other way. SessionStart is answered when the session's tools were listed.
func (r *Receiver) serve(w http.ResponseWriter, req *http.Request) {
	route := r.route(req.Header.Get(SecretHeader))
	if route == nil {
		r.refuse(w, http.StatusForbidden, "unknown session")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, MaxBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			r.refuse(w, http.StatusRequestEntityTooLarge, "hook call too large")
			return
		}
		r.refuse(w, http.StatusBadRequest, "hook call broken off")
		return
	}
	event, err := Decode(body)
	if err != nil {
		r.refuse(w, http.StatusBadRequest, "not a hook call")
		return
	}
	if event.SessionID != route.sessionID {
		r.refuse(w, http.StatusForbidden, "not this session's hook call")
		return
	}
	event.Received = time.Now()
	answer := goOn
	switch {
	case event.Name == UserPromptSubmit && !route.admit(event.Prompt):
		event.Blocked, answer = true, block
	case event.Name == PreToolUse:
		answer = deny
	}
	select {
	case route.events <- event:
		r.accepted.Add(1)
	case <-route.closed:
		r.refuse(w, http.StatusGone, "session closed")
		return
	}
	if event.Name == SessionStart && !route.awaitListed(req.Context()) {
		r.refuse(w, http.StatusGone, "session closed")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, answer)
}

func (r *Receiver) refuse(w http.ResponseWriter, status int, why string) {
	r.refused.Add(1)
	http.Error(w, why, status)
}

// Decode reads a hook call's payload. Fields it does not know are skipped.
func Decode(body []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(body, &e); err != nil {
		return Event{}, fmt.Errorf("decode hook payload: %w", err)
	}
	if e.Name == "" || e.SessionID == "" {
		return Event{}, errors.New("decode hook payload: no hook_event_name or session_id")
	}
	return e, nil
}

// Forward sends one payload from in to the receiver at the Unix socket, and writes to out
// what it has to say to the CLI, if it is not just to go on. It is what the hidden command
// `ocp hook` does inside a session. No proxy is ever asked.
func Forward(ctx context.Context, socket, secret string, in io.Reader, out io.Writer) error {
	answer, err := send(ctx, socket, secret, http.MethodPost, Path, in, maxAnswer)
	if err != nil {
		return fmt.Errorf("forward hook: %w", err)
	}
	if string(answer) == goOn {
		return nil
	}
	_, err = out.Write(answer)
	return err
}

// maxAnswer bounds what is read of a receiver's answer, in bytes.
const maxAnswer = 1 << 10
