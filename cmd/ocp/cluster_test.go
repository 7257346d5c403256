package main

import (
	"bufio"
	"bytes"
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
	"strings"
	"syscall"
	"testing"
	"time"

	"ocp/internal/claude/claudetest"
	"ocp/internal/programtest"
)

// clusterKey is the key that the nodes want.
const clusterKey = "key-of-the-cluster"

// process is one that a test has started, and what it says.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  *logBuffer
	done chan struct{} // closed when it was reaped
}

func startProcess(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, log: &logBuffer{}, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	cmd.WaitDelay = time.Second // for what it leaves behind that holds the log open
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.end(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(cmd.Path), p.log)
		}
	})
	return p
}

// end sends a signal, waits for the end and returns the exit code.
func (p *process) end(sig syscall.Signal) int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	default:
	}
	_ = p.cmd.Process.Signal(sig)
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		p.t.Errorf("%s did not end", filepath.Base(p.cmd.Path))
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	return p.cmd.ProcessState.ExitCode()
}

// said waits for a text in what the process says, and returns what matches.
func (p *process) said(pattern string, times int) []string {
	p.t.Helper()
	wanted := regexp.MustCompile(pattern)
	var found [][]string
	if !eventually(p.t, func() bool {
		found = wanted.FindAllStringSubmatch(p.log.String(), -1)
		return len(found) >= times
	}) {
		p.t.Fatalf("no %q, %d times, in:\n%s", pattern, times, p.log)
	}
	return found[times-1]
}

// node is an `ocp serve` of its own process, with the stand-in for its CLI.
type node struct {
	*process
	address, state string
}

func startNode(t *testing.T, args ...string) *node {
	t.Helper()
	state, err := os.MkdirTemp("", "ocp-") // short: the hooks' socket lies in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	n := &node{state: filepath.Join(state, "state")}
	cmd := exec.Command(claudetest.Path(), append([]string{
		"serve", "--listen", "127.0.0.1:0", "--claude", claudetest.Path(), "--state-dir", n.state,
		"--pool", "0", "--keep", "0", "--no-start-check", "--concurrency", "8",
	}, args...)...)
	cmd.Env = []string{
		asOcp + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(),
		"ANTHROPIC_API_KEY=" + credential, "OCP_API_KEY=" + clusterKey,
	}
	n.process = startProcess(t, cmd)
	n.address = n.said(`msg=serving url=http://(\S+)`, 1)[1]
	return n
}

// ask is a request to the node itself.
func (n *node) ask(path string) (status int, body []byte) {
	n.t.Helper()
	req, err := http.NewRequestWithContext(n.t.Context(), http.MethodGet, "http://"+n.address+path, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", clusterKey)
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	body, _ = io.ReadAll(res.Body)
	return res.StatusCode, body
}

func (n *node) status() (s state) {
	n.t.Helper()
	if _, body := n.ask("/status"); body != nil {
		if err := json.Unmarshal(body, &s); err != nil {
			n.t.Errorf("%v in %s", err, body)
		}
	}
	return s
}

// die kills the node and waits until its sessions, too, are gone.
func (n *node) die() {
	n.t.Helper()
	n.end(syscall.SIGKILL)
	if !eventually(n.t, func() bool { return len((&rig{state: n.state}).processes()) == 0 }) {
		n.t.Error("sessions of the killed node are left")
	}
}

// cluster is nodes behind HAProxy, as deploy/haproxy has it.
type cluster struct {
	*rig    // its clients ask HAProxy
	nodes   []*node
	haproxy *process
	clients []*http.Client // with a connection for each request, and with some for all
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	binary := programtest.Find(t, "haproxy")
	dir, err := os.MkdirTemp("", "ocp-haproxy-") // short: the socket lies in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := &cluster{rig: &rig{t: t, state: filepath.Join(t.TempDir(), "state"), url: "https://127.0.0.1"}}
	for range 3 {
		c.nodes = append(c.nodes, startNode(t, "--drain", "1m"))
	}
	a := newAuthority(t)
	socket := filepath.Join(dir, "front")
	for _, kept := range []bool{false, true} {
		client := a.client(t, false)
		transport := client.Transport.(*http.Transport)
		transport.DisableKeepAlives = !kept
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
		c.clients = append(c.clients, client)
	}
	config := filepath.Join(dir, "haproxy.cfg")
	c.configure(config, socket, filepath.Join(dir, "ocp.pem"), a)
	c.haproxy = startProcess(t, exec.Command(binary, "-W", "-f", config))
	c.haproxy.said(`Loading success`, 1)
	return c
}

// configure fits the documented file to the test: who it runs as, and addresses.
func (c *cluster) configure(path, socket, pem string, a authority) {
	c.t.Helper()
	file, err := os.ReadFile(filepath.Join("..", "..", "deploy", "haproxy", "haproxy.cfg"))
	if err != nil {
		c.t.Fatal(err)
	}
	cert, certErr := os.ReadFile(a.cert)
	key, keyErr := os.ReadFile(a.key)
	if err := errors.Join(certErr, keyErr, os.WriteFile(pem, append(cert, key...), 0o600)); err != nil {
		c.t.Fatal(err)
	}
	text := string(file)
	for from, to := range map[string]string{
		"    user haproxy\n    group haproxy\n    chroot /var/lib/haproxy\n": "",
		"log /dev/log local0":   "log stdout format raw local0",
		"bind :443 ":            "bind unix@" + socket + " ",
		"/etc/haproxy/ocp.pem ": pem + " ",
		"192.0.2.11:3456\n":     c.nodes[0].address + "\n",
		"192.0.2.12:3456\n":     c.nodes[1].address + "\n",
		"192.0.2.13:3456\n":     c.nodes[2].address + "\n",
	} {
		if strings.Count(text, from) != 1 {
			c.t.Fatalf("%q is not in the file once", from)
		}
		text = strings.Replace(text, from, to, 1)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// outcome is what a client saw of an answer.
type outcome struct {
	begun bool // some of it came
	whole bool // it ended as a good answer does
	text  string
	err   error
}

// talk is a request that is under way.
type talk struct {
	want string
	gate gate
	end  chan outcome
	got  chan struct{} // closed when its first text has come
}

// manner is how something is asked of a cluster. The answer stops at a gate behind its first line.
type manner struct {
	whole bool // not streamed
	early bool // it stops before its first line
	pad   int  // bytes more

	conversation string // its name, if it has one
}

// ask begins a request, of each client in turn.
func (c *cluster) ask(n int, path string, q manner) *talk {
	c.t.Helper()
	first, rest := fmt.Sprintf("answer %d begins\n", n), fmt.Sprintf("and answer %d ends, naïvely ☕\n", n)
	k := &talk{want: first + rest, gate: newGate(c.t), end: make(chan outcome, 1), got: make(chan struct{})}
	steps := answerThrough(k.gate, first, rest)
	if q.early {
		steps = answerThrough(k.gate, "", first, rest)
	}
	req := c.request(path, c.model(steps), !q.whole)
	if q.conversation != "" {
		req.Header.Set("Ocp-Conversation", q.conversation)
	}
	if q.pad > 0 {
		body, _ := io.ReadAll(req.Body)
		body = append(body, strings.Repeat(" ", q.pad)...)
		req.Body, req.ContentLength, req.GetBody = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	}
	go func() { k.end <- c.answer(c.clients[n%len(c.clients)], req, !q.whole, k.got) }()
	return k
}

// answer sends a request and reads what comes of it.
func (c *cluster) answer(client *http.Client, req *http.Request, stream bool, got chan<- struct{}) (o outcome) {
	req.Header.Set("X-Api-Key", clusterKey)
	res, err := client.Do(req)
	if err != nil {
		return outcome{err: err}
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(res.Body)
		return outcome{err: fmt.Errorf("status %d: %s", res.StatusCode, body)}
	}
	var body strings.Builder
	in := bufio.NewReader(res.Body)
	for {
		line, err := in.ReadString('\n')
		body.WriteString(line)
		if text := (reply{body: body.String()}).text(req.URL.Path, stream); got != nil && text != "" {
			close(got)
			got = nil
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			o.err = err
			break
		}
	}
	o.text = reply{body: body.String()}.text(req.URL.Path, stream)
	o.begun = o.text != ""
	o.whole = o.err == nil && (!stream || goodEnd.MatchString(body.String()))
	return o
}

// over reports whether the answer has ended, and how.
func (k *talk) over() (o outcome, over bool) {
	select {
	case o = <-k.end:
		return o, true
	default:
		return o, false
	}
}

// finish opens the gate and checks that the answer comes whole, and is the one asked for.
func (k *talk) finish(t *testing.T, what string) {
	t.Helper()
	k.gate.open()
	if o := <-k.end; !o.whole || o.text != k.want {
		t.Errorf("%s: got %+v, want %q", what, o, k.want)
	}
}
