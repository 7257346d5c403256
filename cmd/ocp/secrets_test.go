package main

import (
	"bytes"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestSecretsStayIn has an ocp serve with keys of all kinds answer, refuse and fail, at the
// lowest log level, and looks for them wherever somebody else could: log, state, metrics,
// pages, errors, command lines and files. It looks while a session runs.
func TestSecretsStayIn(t *testing.T) {
	n := startNode(t, "--log-level", "debug", "--terminal", "pty")
	c := &cluster{rig: &rig{t: t, state: filepath.Join(t.TempDir(), "state"), url: "http://" + n.address}}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	const wrongKey = "wrong-key-canary-31e8"
	shown := map[string]string{}

	for name, header := range map[string][2]string{
		"a wrong key":      {"X-Api-Key", wrongKey},
		"a wrong bearer":   {"Authorization", "Bearer " + wrongKey},
		"a foreign origin": {"Origin", "http://" + wrongKey},
	} {
		req := c.request(paths[0], "opus", false)
		req.Header.Set(header[0], header[1])
		shown[name] = c.read(client, req)
	}
	for _, f := range failures(c.rig)[:3] {
		req := c.request(paths[0], f.model, false)
		req.Header.Set("X-Api-Key", clusterKey)
		shown[f.name] = c.read(client, req)
	}
	gate, end := newGate(t), make(chan outcome, 1)
	go func() {
		end <- c.answer(client, c.request(paths[0], c.model(answerThrough(gate, "", "fine\n")), true), true, nil)
	}()
	var sessions []string
	if !eventually(t, func() bool {
		sessions = (&rig{state: n.state}).processes()
		return len(sessions) > 0 && n.status().Sessions.Running == 1
	}) {
		t.Fatal("no session has started")
	}
	secrets := []string{clusterKey, credential, wrongKey, hookSecret(t, sessions[0])}

	for _, path := range []string{"/status", "/readyz", "/healthz", "/metrics", "/", "/v1/models"} {
		_, body := n.ask(path)
		shown[path] = string(body)
	}
	for _, pid := range append(sessions, strconv.Itoa(n.cmd.Process.Pid)) {
		line, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
		if err != nil {
			t.Error(err)
		}
		shown["command line "+pid] = string(line)
	}
	err := filepath.WalkDir(n.state, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // it may be gone
		}
		if content, err := os.ReadFile(path); err == nil {
			shown[path] = string(content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	gate.open()
	if o := <-end; !o.whole {
		t.Errorf("got %+v", o)
	}
	n.end(syscall.SIGTERM)
	shown["log"] = n.log.String()

	if len(shown) < 15 || !strings.Contains(shown["log"], "level=DEBUG") {
		t.Errorf("too little was looked at: %d", len(shown))
	}
	for where, text := range shown {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds %q", where, secret)
			}
		}
	}
}

// read sends a request and returns all that comes back.
func (c *cluster) read(client *http.Client, req *http.Request) string {
	c.t.Helper()
	res, err := client.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	var all bytes.Buffer
	_ = res.Write(&all)
	return all.String()
}

// hookSecret is what a session's hook calls are known by.
func hookSecret(t *testing.T, pid string) string {
	t.Helper()
	env, err := os.ReadFile(filepath.Join("/proc", pid, "environ"))
	if err != nil {
		t.Fatal(err)
	}
	for _, variable := range strings.Split(string(env), "\x00") {
		if secret, ok := strings.CutPrefix(variable, "OCP_HOOK_SECRET="); ok && secret != "" {
			return secret
		}
	}
	t.Fatal("the session has no hook secret")
	return ""
}
