package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ocp/internal/claude/claudetest"
	"ocp/internal/config"
)

// asOcp makes the test binary be ocp.
const asOcp = "OCP_TEST_AS_OCP"

// The test binary is also the stand-in CLI that the proxy launches, the other side of a
// load, and ocp itself.
func TestMain(m *testing.M) {
	if os.Getenv(asOcp) != "" {
		main()
	}
	if os.Getenv(asGenerator) != "" {
		mainGenerate()
	}
	claudetest.Main()
	// net/http gives a connection that it closes half a second to be read to its end.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// credential is what the proxy's sessions have; nobody else may ever see it.
const credential = "sk-ant-canary-of-the-stand-in-test"

// question is what every request asks. Neither it nor any text of an answer may be in what
// an operator sees.
const question = "hello, canary of the prompt"

var unseen = []string{credential, "canary of the prompt", "half an answer", "You said", "API Error", "canary-key"}

// rig is the whole proxy in this process, with the stand-in for its CLI.
type rig struct {
	t      *testing.T
	url    string
	state  string
	client *http.Client
	log    *logBuffer
	key    string // if one is wanted
	names  int    // of scripts; guarded by mu
	mu     sync.Mutex
}

func serveStandin(t *testing.T, change func(*config.Serve)) *rig {
	t.Helper()
	return serveRelease(t, claudetest.Version, change)
}

// serveRelease takes the stand-in for some release of the CLI.
func serveRelease(t *testing.T, release string, change func(*config.Serve)) *rig {
	t.Helper()
	// Short: the hooks' socket lies in it.
	state, err := os.MkdirTemp("", "ocp-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	c := config.Serve{
		Listen: "127.0.0.1:0", Claude: claudetest.Path(), StateDir: filepath.Join(state, "state"),
		Concurrency: 4, Queue: 64, TurnTimeout: time.Minute, StartTimeout: time.Minute, KeepAlive: time.Minute,
		HookTransport: "http",
	}
	if change != nil {
		change(&c)
	}
	r := &rig{t: t, state: c.StateDir, log: &logBuffer{}, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "ANTHROPIC_API_KEY=" + credential}
	p, err := startProxy(c, release, env, newLogger(r.log, "debug", "json"), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.url = p.url()
	t.Cleanup(func() {
		seen := map[string]string{}
		for _, path := range []string{"/metrics", "/status", "/"} {
			seen[path] = r.get(path)
		}
		if err := p.close(); err != nil {
			t.Error(err)
		}
		seen["the log"] = r.log.String()
		for where, text := range seen {
			for _, secret := range unseen {
				if strings.Contains(text, secret) {
					t.Errorf("%s holds %q", where, secret)
				}
			}
		}
		if t.Failed() {
			t.Logf("the log:\n%s", r.log)
		}
	})
	return r
}

// logBuffer is a log that may be read while it is written.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// model is the name under which a request gets a session that does the steps.
func (r *rig) model(steps ...[]claudetest.Step) string {
	r.t.Helper()
	r.mu.Lock()
	r.names++
	file := filepath.Join(filepath.Dir(r.state), fmt.Sprintf("script-%d", r.names))
	r.mu.Unlock()
	var all []claudetest.Step
	for _, s := range steps {
		all = append(all, s...)
	}
	model, err := claudetest.Script{Steps: all}.ModelIn(file)
	if err != nil {
		r.t.Fatal(err)
	}
	return model
}

// paths are the routes that answer turns.
var paths = []string{"/v1/chat/completions", "/v1/responses", "/v1/messages"}

// request is a question on a route.
func (r *rig) request(path, model string, stream bool) *http.Request {
	r.t.Helper()
	messages := []any{map[string]any{"role": "user", "content": question}}
	body := map[string]any{"model": model, "stream": stream, "messages": messages}
	switch path {
	case "/v1/responses":
		body = map[string]any{"model": model, "stream": stream, "input": messages}
	case "/v1/messages":
		body["max_tokens"] = 100_000
	}
	data, err := json.Marshal(body)
	if err != nil {
		r.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url+path, bytes.NewReader(data))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req
}

// reply is a whole response.
type reply struct {
	status int
	header http.Header
	body   string
}

// do sends a request and reads the response to its end.
func (r *rig) do(req *http.Request) (reply, error) {
	res, err := r.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, string(body)}, err
}

// state is what /status says of sessions and turns.
type state struct {
	Sessions struct{ Running, Waiting int }
	Turns    map[string]int
	Warnings []string
}

func (r *rig) status() (s state) {
	r.t.Helper()
	body := r.get("/status")
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		r.t.Fatalf("%v in %s", err, body)
	}
	return s
}

// get returns what is at a path, at the end of a test too.
func (r *rig) get(path string) string {
	r.t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(r.t.Context()), http.MethodGet, r.url+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.key != "" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	got, err := r.do(req)
	if err != nil || got.status != http.StatusOK {
		r.t.Errorf("%s: %+v, %v", path, got, err)
	}
	return got.body
}

// eventually waits for what nothing announces: a process gone, a descriptor closed.
func eventually(t *testing.T, holds func() bool) bool {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			return false
		}
	}
	return true
}
