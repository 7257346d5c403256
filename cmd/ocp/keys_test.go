package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/claude/claudetest"
	"ocp/internal/config"
	"ocp/internal/store"
)

// served is `ocp serve` as a process of its own, with the stand-in for its CLI: what kill -9
// and SIGHUP are for. Other commands run beside it, in this process.
type served struct {
	*rig
	cmd    *exec.Cmd
	secret []string // no file, log or command line may hold them
}

// ocp runs a command on the state directory and returns what it prints to stdout.
func (s *served) ocp(code int, args ...string) string {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	p := program{stdout: &stdout, stderr: &stderr, env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.t.TempDir()}}
	if got := run(p, append(args, "--state-dir", s.state, "--config", os.DevNull)); got != code {
		s.t.Fatalf("ocp %q: code %d, want %d: %s", args, got, code, stderr.String())
	}
	s.log.Write(stderr.Bytes())
	return stdout.String()
}

// addKey makes a key and returns it.
func (s *served) addKey(args ...string) string {
	s.t.Helper()
	key := strings.TrimSuffix(s.ocp(0, append([]string{"keys", "add"}, args...)...), "\n")
	if !regexp.MustCompile(`^sk-ocp-[a-z2-7]{26}$`).MatchString(key) {
		s.t.Fatalf("keys add prints %q", key)
	}
	s.secret = append(s.secret, key)
	return key
}

// newServed prepares a state directory; start begins to serve on it.
func newServed(t *testing.T) *served {
	t.Helper()
	dir, err := os.MkdirTemp("", "ocp-") // short: the hooks' socket lies in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &served{rig: &rig{
		t: t, state: filepath.Join(dir, "state"), log: &logBuffer{},
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}}
}

func (s *served) start(args ...string) {
	s.t.Helper()
	s.cmd = exec.Command(claudetest.Path(), append([]string{
		"serve", "--listen", "127.0.0.1:0", "--claude", claudetest.Path(), "--state-dir", s.state, "--config", os.DevNull,
		"--pool", "0", "--keep", "0", "--no-start-check", "--log-level", "debug",
	}, args...)...)
	s.cmd.Env = []string{asOcp + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + s.t.TempDir(), "ANTHROPIC_API_KEY=" + credential}
	s.cmd.Stderr = s.log
	before := len(s.log.String())
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.end(os.Interrupt) })
	var found []string
	if !eventually(s.t, func() bool {
		found = regexp.MustCompile(`msg=serving url=(\S+)`).FindStringSubmatch(s.log.String()[before:])
		return found != nil
	}) {
		s.t.Fatalf("it does not serve:\n%s", s.log)
	}
	s.url = found[1]
}

// end ends the process by a signal, if it runs.
func (s *served) end(sig os.Signal) {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Signal(sig)
		_ = s.cmd.Wait() // its code says what the signal was
	}
}

// ask asks for a turn with a key.
func (s *served) ask(key, path, model string) reply {
	s.t.Helper()
	req := s.request(path, model, true)
	req.Header.Set("X-Api-Key", key)
	got, err := s.do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.wantNoSecret("an answer", got.body)
	return got
}

// knows reports whether the server takes a key.
func (s *served) knows(key string) bool {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/status", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	got, err := s.do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.wantNoSecret("/status", got.body)
	return got.status == http.StatusOK
}

func (s *served) wantNoSecret(where, text string) {
	s.t.Helper()
	for _, key := range s.secret {
		if strings.Contains(text, key) {
			s.t.Errorf("%s holds a key: %s", where, text)
		}
	}
}

// checkSecrets looks for keys wherever ocp writes, and on the command lines of it and its
// sessions.
func (s *served) checkSecrets() {
	s.t.Helper()
	s.wantNoSecret("the log", s.log.String())
	files := 0
	for _, pattern := range []string{filepath.Join(s.state, "*"), filepath.Join(s.state, "*", "*")} {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			if data, err := os.ReadFile(path); err == nil {
				s.wantNoSecret(path, string(data))
				if strings.HasPrefix(filepath.Base(path), "ocp.db") {
					files++
				}
			}
		}
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if data, err := os.ReadFile(path); err == nil {
			s.wantNoSecret(path, string(data))
		}
	}
	if files == 0 {
		s.t.Error("no file of the store was looked at")
	}
}

// gated is a model that says something and then waits until the function is called.
func (s *served) gated() (model string, open func()) {
	s.t.Helper()
	fifo := filepath.Join(s.t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		s.t.Fatal(err)
	}
	answer := claudetest.Answer("half\n", "whole\n")
	at := slices.IndexFunc(answer, func(step claudetest.Step) bool { return step.Do == claudetest.Display }) + 1
	model = s.model(answer[:at], []claudetest.Step{{Do: claudetest.Tell, Text: fifo}}, answer[at:])
	return model, func() {
		if _, err := os.ReadFile(fifo); err != nil {
			s.t.Error(err)
		}
	}
}

// begin asks for a turn and returns once its first text has come.
func (s *served) begin(ctx context.Context, key, model string) (rest func() string) {
	s.t.Helper()
	req := s.request(paths[0], model, true).WithContext(ctx)
	req.Header.Set("X-Api-Key", key)
	res, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = res.Body.Close() })
	var begun bytes.Buffer
	for !strings.Contains(begun.String(), "half") {
		if _, err := io.CopyN(&begun, res.Body, 1); err != nil {
			s.t.Fatalf("%v after %s", err, begun.String())
		}
	}
	return func() string {
		more, _ := io.ReadAll(res.Body)
		return begun.String() + string(more)
	}
}

// usage is what `ocp usage` says, by name.
func (s *served) usage(by string) map[string]usageLine {
	s.t.Helper()
	var report usageReport
	if err := json.Unmarshal([]byte(s.ocp(0, "usage", "--json", "--by", by)), &report); err != nil {
		s.t.Fatal(err)
	}
	lines := map[string]usageLine{"total": report.Total}
	for _, line := range report.Lines {
		lines[line.Name] = line
	}
	return lines
}

func TestKeysOfARunningServe(t *testing.T) {
	s := newServed(t)
	first := s.addKey("first") // makes the state directory
	s.secret = append(s.secret, "clear-key-of-the-file", "clear-key-after-it")
	file := filepath.Join(t.TempDir(), "keys")
	s.writeHash(file, "clear-key-of-the-file")
	s.start("--api-key-file", file)
	if !s.knows(first) || !s.knows("clear-key-of-the-file") || s.knows("another") || s.knows("") {
		t.Error("the keys of the start are not the ones that count")
	}

	// Added while it serves, with limits.
	second := s.addKey("second", "--concurrency", "1", "--models", "standin,opus", "--per-day", "5")
	if !eventually(t, func() bool { return s.knows(second) }) {
		t.Fatal("an added key is not taken up")
	}
	if got := s.ask(second, paths[0], "sonnet"); got.status != http.StatusForbidden || !strings.Contains(got.body, "sonnet") {
		t.Errorf("another model: %+v", got)
	}
	s.ocp(1, "keys", "add", "second")

	// Revoked while its turn runs: the turn ends well, and no other begins.
	third := s.addKey("third", "--concurrency", "1")
	model, open := s.gated()
	if !eventually(t, func() bool { return s.knows(third) }) {
		t.Fatal("an added key is not taken up")
	}
	rest := s.begin(t.Context(), third, model)
	if got := s.ask(third, paths[2], "opus"); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Errorf("a second turn at once: %+v", got)
	}
	s.checkSecrets()
	s.ocp(0, "keys", "revoke", "third")
	if !eventually(t, func() bool { return !s.knows(third) }) {
		t.Error("a revoked key goes on")
	}
	open()
	if got := rest(); !strings.Contains(got, "whole") || !strings.Contains(got, "[DONE]") {
		t.Errorf("the running turn did not end well: %s", got)
	}

	// SIGHUP reads the file anew; one without sense changes nothing.
	s.writeHash(file, "clear-key-after-it")
	s.hangUp("keys and limits are reloaded")
	if s.knows("clear-key-of-the-file") || !s.knows("clear-key-after-it") || !s.knows(first) {
		t.Error("SIGHUP did not reload the keys")
	}
	if err := os.WriteFile(file, []byte("no hash\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.hangUp("could not be reloaded")
	if !s.knows("clear-key-after-it") || !s.knows(first) {
		t.Error("a file without sense has taken keys away")
	}

	if !strings.Contains(s.log.String(), "key=third") {
		t.Error("no line of a turn names its key")
	}
	if list := s.ocp(0, "keys", "list"); !strings.Contains(list, "first") || !strings.Contains(list, "standin, opus") || strings.Contains(list, "third") {
		t.Errorf("the list:\n%s", list)
	}
	s.wantNoSecret("the list", s.ocp(0, "keys", "list")+s.ocp(0, "keys", "list", "--json"))
	s.checkSecrets()
}

func (s *served) writeHash(file, key string) {
	s.t.Helper()
	if err := os.WriteFile(file, fmt.Appendf(nil, "sha256:%x of the file\n", sha256.Sum256([]byte(key))), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// hangUp sends SIGHUP and waits for what it makes the process log.
func (s *served) hangUp(says string) {
	s.t.Helper()
	before := strings.Count(s.log.String(), says)
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		s.t.Fatal(err)
	}
	if !eventually(s.t, func() bool { return strings.Count(s.log.String(), says) > before }) {
		s.t.Fatalf("SIGHUP does not log %q:\n%s", says, s.log)
	}
}

// TestUsageOutlivesKill has `ocp serve` killed while a turn runs: every turn that was over
// is in the usage, once, and counts for the limits of the day.
func TestUsageOutlivesKill(t *testing.T) {
	s := newServed(t)
	bob, ann := s.addKey("bob", "--per-day", "4"), s.addKey("ann")
	s.start()
	for _, path := range paths {
		if got := s.ask(bob, path, "opus"); got.status != http.StatusOK {
			t.Errorf("%+v", got)
		}
	}
	if got := s.ask(ann, paths[0], "sonnet"); got.status != http.StatusOK {
		t.Errorf("%+v", got)
	}
	failing := s.model(claudetest.Boot()[:2], []claudetest.Step{{Do: claudetest.Exit, N: 1}})
	if got := s.ask(ann, paths[0], failing); got.status != http.StatusBadGateway {
		t.Errorf("%+v", got)
	}
	model, _ := s.gated()
	s.begin(t.Context(), bob, model)
	if got := s.ask(bob, paths[0], "opus"); got.status != http.StatusTooManyRequests {
		t.Errorf("the fifth of the day: %+v", got)
	}
	// The turns end some milliseconds before they are written.
	if !eventually(t, func() bool { return s.usage("key")["total"].Turns == 6 }) {
		t.Errorf("while it serves: %+v", s.usage("key"))
	}
	s.end(syscall.SIGKILL)

	byKey, byModel, byDialect := s.usage("key"), s.usage("model"), s.usage("dialect")
	if byKey["bob"].Turns != 4 || byKey["bob"].Outcomes["ok"] != 3 || byKey["bob"].Outcomes["limited"] != 1 || byKey["ann"].Outcomes["ok"] != 1 || byKey["ann"].Outcomes["session_failed"] != 1 || byKey["total"].Turns != 6 {
		t.Errorf("by key: %+v", byKey)
	}
	if byModel["opus"].Turns != 4 || byModel["sonnet"].Turns != 1 {
		t.Errorf("by model: %+v", byModel)
	}
	if byDialect["openai"].Turns != 4 || byDialect["responses"].Turns != 1 || byDialect["anthropic"].Turns != 1 {
		t.Errorf("by dialect: %+v", byDialect)
	}
	if bob := byKey["bob"]; bob.Input+bob.CacheRead+bob.CacheCreation == 0 || bob.Output == 0 {
		t.Errorf("no tokens are counted: %+v", bob)
	}
	if table := s.ocp(0, "usage"); !strings.Contains(table, "bob") || !strings.Contains(table, "total") {
		t.Errorf("the table:\n%s", table)
	}

	// The turn that ran when it was killed is not in it, and may be asked for again.
	s.start()
	if got := s.ask(bob, paths[2], "opus"); got.status != http.StatusOK || got.header.Get("Anthropic-Ratelimit-Requests-Remaining") != "0" {
		t.Errorf("the fourth of the day: %+v", got)
	}
	if got := s.ask(bob, paths[2], "opus"); got.status != http.StatusTooManyRequests || !strings.Contains(got.body, "4 requests a day") {
		t.Errorf("the fifth of the day: %+v", got)
	}
	s.end(os.Interrupt)
	if total := s.usage("day")["total"]; total.Turns != 8 || total.Outcomes["ok"] != 5 {
		t.Errorf("after an orderly end: %+v", total)
	}
	s.checkSecrets()
}

// TestBeyondLoopback checks that a key of the store lets ocp serve where others can reach
// it, and that without one it does not start.
func TestBeyondLoopback(t *testing.T) {
	s := newServed(t)
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	for _, c := range []config.Serve{{Listen: "0.0.0.0:0"}, {Listen: "127.0.0.1:0", AllowHost: []string{"*"}}} {
		c.Claude, c.StateDir, c.Concurrency, c.TurnTimeout, c.StartTimeout, c.KeepAlive = claudetest.Path(), s.state, 1, 1, 1, 1
		if _, err := complete(c, env); err == nil || !strings.Contains(err.Error(), "ocp keys add") {
			t.Errorf("%s: got %v", c.Listen, err)
		}
		s.addKey("one")
		got, err := complete(c, env)
		if err != nil || !got.StoredKeys {
			t.Errorf("%s: got %+v, %v", c.Listen, got, err)
		}
		// It is revoked before the store is opened to serve.
		s.ocp(0, "keys", "revoke", "one")
		if k, err := openClients(t.Context(), got, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: it serves without a key: %v", c.Listen, k.close())
		}
	}
}

func TestKeysCommandsRefuse(t *testing.T) {
	s := newServed(t)
	s.secret = append(s.secret, "sk-ocp-in-the-wrong-place")
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		code int
		says string
		args []string
	}{
		{1, "sk-", []string{"keys", "add", "sk-ocp-in-the-wrong-place"}},
		{1, "--per-day", []string{"keys", "add", "a", "--per-day=-1"}},
		{2, "--per-day", []string{"keys", "add", "a", "--per-day=many"}},
		{1, "--models", []string{"keys", "add", "a", "--models= "}},
		{1, "keys list", []string{"keys", "revoke", "a"}},
		{1, "keys list", []string{"keys", "revoke", "sk-ocp-in-the-wrong-place"}},
		{1, "--days", []string{"usage", "--days=0"}},
		{2, "--by", []string{"usage", "--by=moon"}},
		{0, "no keys", []string{"keys", "list"}},
		{0, "Nothing", []string{"usage"}},
	} {
		before := len(s.log.String())
		s.ocp(test.code, test.args...)
		if said := s.log.String()[before:]; !strings.Contains(said, test.says) {
			t.Errorf("%q says %q, want %q", test.args, said, test.says)
		}
	}
	s.wantNoSecret("an error", s.log.String())
	if _, err := os.Stat(s.state); err == nil {
		t.Error("a command that was refused, or only looks, has made the state directory")
	}
	s.state = foreign
	s.ocp(1, "keys", "add", "a")
	if entries, _ := os.ReadDir(foreign); len(entries) != 1 {
		t.Errorf("a foreign folder was written to: %v", entries)
	}
}

// TestUsageTable checks the sums, and that no name which a client made up reaches the
// terminal as it is.
func TestUsageTable(t *testing.T) {
	var out strings.Builder
	line := store.Line{Day: "2026-03-01", Model: "\x1b[31mred", Dialect: "openai", Outcome: "ok"}
	failed := line
	failed.Key, failed.Outcome = "bob", "upstream"
	turns := []store.Turns{{Line: line, Count: 2, Input: 3, CacheRead: 4, CacheCreation: 5, Output: 6}, {Line: failed, Count: 1, Input: 1, Output: 1, Estimated: 1}}
	for _, by := range []string{"key", "model"} {
		if err := addUp(turns, by).write(&out); err != nil {
			t.Fatal(err)
		}
	}
	want := `    KEY  TURNS  OK  LIMITED  FAILED  INPUT  CACHE READ  CACHE WRITE  OUTPUT
      -      2   2        0       0      3           4            5       6
    bob      1   0        0       1      1           0            0       1
  total      3   2        0       1      4           4            5       7

Turns that ended before their answer did, whose tokens are estimates: 1
     MODEL  TURNS  OK  LIMITED  FAILED  INPUT  CACHE READ  CACHE WRITE  OUTPUT
  ?[31mred      3   2        0       1      4           4            5       7
     total      3   2        0       1      4           4            5       7

Turns that ended before their answer did, whose tokens are estimates: 1
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
