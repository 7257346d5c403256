package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ocp/internal/hook"
)

// hookCall is one call of a session's hooks.
type hookCall struct {
	event  hook.Event
	secret string
	body   []byte
}

// relay stands between the CLI's hooks and ocp: it answers the CLI at once, and delivers
// what a tamper lets through, in its order, one call of a session after the other.
type relay struct {
	t      *testing.T
	target func(context.Context) (net.Conn, error) // dials ocp's receiver
	tamper func() tamper                           // makes one a session

	came, delivered atomic.Int64

	mu       sync.Mutex
	rng      *rand.Rand                 // guarded by mu
	sessions map[string]chan<- hookCall // by secret: to the session's goroutine; guarded by mu
	closed   bool                       // guarded by mu
	all      sync.WaitGroup             // the sessions' goroutines
}

// startRelay puts a relay into the way of the hooks that p's settings name, all but
// SessionStart. It must be called before the first request.
func startRelay(t *testing.T, p *proxy, tamper func() tamper) *relay {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("relay: seed %d", seed)
	r := &relay{t: t, tamper: tamper, rng: rand.New(rand.NewPCG(seed, 0)), sessions: map[string]chan<- hookCall{}}
	server := httptest.NewUnstartedServer(r)
	dir := shortStateDir(t)
	var dialer net.Dialer
	socket := filepath.Join(dir, "relay.sock")
	unix, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	byCommand := false
	p.rewriteSettings(t, func(h *hookEntry, event string) {
		switch {
		case event == hook.SessionStart:
		case h.URL != "":
			address := strings.TrimSuffix(strings.TrimPrefix(h.URL, "http://"), hook.Path)
			r.target = func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", address) }
			h.URL = "http://" + server.Listener.Addr().String() + hook.Path
		default:
			byCommand = true
			r.target = func(ctx context.Context) (net.Conn, error) {
				return dialer.DialContext(ctx, "unix", filepath.Join(p.state, "hook.sock"))
			}
			h.Command = "OCP_HOOK_SOCKET='" + socket + "' " + h.Command
		}
	})
	if byCommand {
		_ = server.Listener.Close()
		server.Listener = unix
	} else {
		_ = unix.Close()
	}
	server.Start()
	t.Cleanup(func() {
		server.Close()
		r.mu.Lock()
		r.closed = true
		for _, calls := range r.sessions {
			close(calls)
		}
		r.mu.Unlock()
		r.all.Wait()
	})
	return r
}

// hookEntry is one hook in the settings; its other fields are kept as they are.
type hookEntry struct{ Command, URL string }

// rewriteSettings changes every hook in the settings file that p gives its sessions.
func (p *proxy) rewriteSettings(t *testing.T, change func(h *hookEntry, event string)) {
	t.Helper()
	path := filepath.Join(p.state, "settings.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var settings struct {
		Hooks map[string][]struct {
			Hooks []map[string]any `json:"hooks"`
		} `json:"hooks"`
	}
	if err := json.Unmarshal(data, &settings); err != nil {
		t.Fatal(err)
	}
	for event, groups := range settings.Hooks {
		for _, group := range groups {
			for _, fields := range group.Hooks {
				var h hookEntry
				h.Command, _ = fields["command"].(string)
				h.URL, _ = fields["url"].(string)
				change(&h, event)
				if _, there := fields["command"]; there {
					fields["command"] = h.Command
				}
				if _, there := fields["url"]; there {
					fields["url"] = h.URL
				}
			}
		}
	}
	if data, err = json.Marshal(settings); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	event, decodeErr := hook.Decode(body)
	if err != nil || decodeErr != nil {
		r.t.Errorf("relay: not a hook call: %v, %v", err, decodeErr)
		return
	}
	r.came.Add(1)
	r.pass(hookCall{event: event, secret: req.Header.Get(hook.SecretHeader), body: body})
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "{}")
}

// pass gives a call to its session's goroutine, which it starts with the first one.
func (r *relay) pass(c hookCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	calls, there := r.sessions[c.secret]
	if !there {
		queue := make(chan hookCall, 1000) // more than a session makes
		rng := rand.New(rand.NewPCG(r.rng.Uint64(), 0))
		r.sessions[c.secret], calls = queue, queue
		r.all.Go(func() { r.deliver(queue, rng) })
	}
	calls <- c
}

// deliver is a session's goroutine. A call that comes too late, since the turn is over,
// is refused by ocp; that is no fault.
func (r *relay) deliver(calls <-chan hookCall, rng *rand.Rand) {
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return r.target(ctx) },
	}}
	defer client.CloseIdleConnections()
	tamper := r.tamper()
	for c := range calls {
		for _, now := range tamper(rng, c) {
			req, err := http.NewRequest(http.MethodPost, "http://ocp"+hook.Path, bytes.NewReader(now.body))
			if err != nil {
				r.t.Errorf("relay: %v", err)
				return
			}
			req.Header.Set(hook.SecretHeader, now.secret)
			resp, err := client.Do(req)
			if err != nil {
				continue // ocp has gone
			}
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				r.delivered.Add(1)
			}
		}
	}
}
