package e2e

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ocp/internal/messagesapi"
)

// patience bounds every wait for an event. It is no assertion about speed: it only
// keeps a test that has failed from hanging.
const patience = 90 * time.Second

// apiKey is the key that sessions use upstream; no log, argv or answer may hold it.
const apiKey = "canary-key-5f1c0e9a7b3d2468"

// proxyOptions say how `ocp serve` is started.
type proxyOptions struct {
	args   []string           // further flags
	env    []string           // further environment
	script messagesapi.Script // what the model says
	state  string             // state directory; default: a fresh one
	check  bool               // with the start-up check
	noKey  bool               // leave ANTHROPIC_API_KEY out of the environment
	ahead  bool               // with the sessions that wait by default, primed and kept
}

// proxy is a running `ocp serve` and the scripted model behind it.
type proxy struct {
	t     testing.TB
	url   string
	state string
	model *messagesapi.Server
	cmd   *exec.Cmd
	log   *logLines
	done  chan struct{} // closed when the process was reaped
}

// startProxy starts `ocp serve`. At the end of the test it is stopped by SIGTERM and
// must have left nothing: no process, no file of a session, no data race.
func startProxy(t testing.TB, c cli, o proxyOptions) *proxy {
	t.Helper()
	model, err := messagesapi.Start(messagesapi.Options{Script: o.script})
	if err != nil {
		t.Fatal(err)
	}
	if o.state == "" {
		o.state = filepath.Join(t.TempDir(), "state")
	}
	p := &proxy{t: t, state: o.state, model: model, log: newLogLines(), done: make(chan struct{})}
	args := []string{"serve", "--listen", "127.0.0.1:0", "--claude", c.path, "--state-dir", o.state, "--log-level", "debug"}
	if !o.ahead {
		args = append(args, "--pool", "0", "--keep", "0")
	}
	p.cmd = exec.Command(ocpBinary, append(args, o.args...)...)
	if !o.check {
		p.cmd.Args = append(p.cmd.Args, "--no-start-check")
	}
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "ANTHROPIC_BASE_URL=" + model.URL()}
	if !o.noKey {
		p.cmd.Env = append(p.cmd.Env, "ANTHROPIC_API_KEY="+apiKey)
	}
	if terminal := os.Getenv("OCP_TEST_TERMINAL"); terminal != "" {
		p.cmd.Env = append(p.cmd.Env, "OCP_TERMINAL="+terminal)
	}
	p.cmd.Env = append(p.cmd.Env, o.env...)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.log.read(stderr)
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(p.finish)
	line := p.log.wait(t, p.done, "msg=serving")
	p.url = regexp.MustCompile(`url=(\S+)`).FindStringSubmatch(line)[1]
	return p
}

// finish stops the proxy and checks what must always hold afterwards.
func (p *proxy) finish() {
	p.model.Close() // ends hanging answers
	if p.stop(syscall.SIGTERM) != 0 {
		p.t.Errorf("ocp serve ended with code %d", p.cmd.ProcessState.ExitCode())
	}
	if left := p.processes(); len(left) > 0 {
		p.t.Errorf("processes left: %v", left)
	}
	if entries, err := os.ReadDir(filepath.Join(p.state, "sessions")); err == nil && len(entries) > 0 {
		p.t.Errorf("session folders left: %v", entries)
	}
	if log := p.log.text(); strings.Contains(log, "DATA RACE") || p.t.Failed() {
		p.t.Errorf("log of ocp serve:\n%s", log)
	}
	if strings.Contains(p.log.text(), apiKey) {
		p.t.Error("the log holds the API key")
	}
}

// stop sends a signal, unless the process has ended, waits for its end and returns its
// exit code: 0 also for a process that was ended by a test itself.
func (p *proxy) stop(sig syscall.Signal) int {
	select {
	case <-p.done:
		return 0
	default:
	}
	_ = p.cmd.Process.Signal(sig)
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		p.t.Error("ocp serve did not end after a signal")
	}
	return p.cmd.ProcessState.ExitCode()
}

// sessionDirs are the folders of sessions that exist now.
func (p *proxy) sessionDirs() []string {
	entries, err := os.ReadDir(filepath.Join(p.state, "sessions"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// logLines is a process's log as it comes.
type logLines struct {
	mu      sync.Mutex
	lines   []string
	changed chan struct{} // closed and replaced at each line
}

func newLogLines() *logLines { return &logLines{changed: make(chan struct{})} }

func (l *logLines) read(r io.Reader) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		l.mu.Lock()
		l.lines = append(l.lines, scanner.Text())
		close(l.changed)
		l.changed = make(chan struct{})
		l.mu.Unlock()
	}
	_, _ = io.Copy(io.Discard, r)
}

func (l *logLines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// find returns the first line that holds all words, and a channel that tells of more.
func (l *logLines) find(words ...string) (string, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for _, line := range l.lines {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue next
			}
		}
		return line, nil
	}
	return "", l.changed
}

// wait returns the first line that holds all words.
func (l *logLines) wait(t testing.TB, ended <-chan struct{}, words ...string) string {
	t.Helper()
	timeout := time.After(patience)
	for {
		line, more := l.find(words...)
		if line != "" {
			return line
		}
		select {
		case <-more:
		case <-ended:
			t.Fatalf("the process ended without a log line with %q; its log:\n%s", words, l.text())
		case <-timeout:
			t.Fatalf("no log line with %q; the log:\n%s", words, l.text())
		}
	}
}

// waitFor waits until n lines hold the word.
func (l *logLines) waitFor(t testing.TB, n int, word string) {
	t.Helper()
	timeout := time.After(patience)
	for {
		l.mu.Lock()
		found, more := 0, l.changed
		for _, line := range l.lines {
			if strings.Contains(line, word) {
				found++
			}
		}
		l.mu.Unlock()
		if found >= n {
			return
		}
		select {
		case <-more:
		case <-timeout:
			t.Fatalf("%d log lines with %q, want %d; the log:\n%s", found, word, n, l.text())
		}
	}
}

// withPatience is a context for one step of a test.
func withPatience(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
