package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ocp/internal/claude/claudetest"
	"ocp/internal/config"
)

// authority is a certificate for 127.0.0.1 in files, and the clients that trust it.
type authority struct {
	cert, key string
	roots     *x509.CertPool
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	lender := httptest.NewTLSServer(nil)
	defer lender.Close()
	pair, dir := lender.TLS.Certificates[0], t.TempDir()
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	a := authority{cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"), roots: x509.NewCertPool()}
	a.roots.AddCert(lender.Certificate())
	for file, block := range map[string]*pem.Block{
		a.cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, a.key: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// client speaks HTTP/2 if it may, and a connection for each request otherwise.
func (a authority) client(t *testing.T, http2 bool) *http.Client {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: a.roots}, ForceAttemptHTTP2: http2, DisableKeepAlives: !http2,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// TestTLS streams over TLS: the first text while the rest is not there yet, and in the end
// all of it, over both protocols.
func TestTLS(t *testing.T) {
	a := newAuthority(t)
	r := serveStandin(t, func(c *config.Serve) { c.TLSCert, c.TLSKey = a.cert, a.key })
	if !strings.HasPrefix(r.url, "https://") {
		t.Fatalf("it serves on %s", r.url)
	}
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		client := a.client(t, proto == "HTTP/2.0")
		gate := newGate(t)
		text := []string{"naïve ☕\n", strings.Repeat("more ", 5000) + "\n", "end 👨‍👩‍👧‍👦\n"}
		model := r.model(answerThrough(gate, text[0], text[1:]...))
		res, err := client.Do(r.request(paths[0], model, true))
		if err != nil {
			t.Fatal(err)
		}
		if res.Proto != proto {
			t.Errorf("it speaks %s, want %s", res.Proto, proto)
		}
		begin := readUntil(t, res.Body, "☕")
		gate.open()
		rest, err := io.ReadAll(res.Body)
		res.Body.Close()
		if got := (reply{body: begin + string(rest)}).text(paths[0], true); err != nil || got != strings.Join(text, "") {
			t.Errorf("%s: got %d bytes (%v), want %d: %.100q", proto, len(got), err, len(strings.Join(text, "")), got)
		}
	}
	plain, err := r.client.Get("http" + strings.TrimPrefix(r.url, "https") + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Body.Close()
	if plain.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS: status %d", plain.StatusCode)
	}
	r.client = a.client(t, false) // that looks at the end
}

// gate holds sessions at a step until it is opened, once for each.
type gate struct {
	t    *testing.T
	path string
}

func newGate(t *testing.T) gate {
	t.Helper()
	g := gate{t, filepath.Join(t.TempDir(), "gate")}
	if err := syscall.Mkfifo(g.path, 0o600); err != nil {
		t.Fatal(err)
	}
	return g
}

// open lets the session through that is at the gate or comes there.
func (g gate) open() {
	g.t.Helper()
	in, err := os.OpenFile(g.path, os.O_RDWR|syscall.O_NONBLOCK, 0) // it waits for nobody
	if err != nil {
		g.t.Error(err)
		return
	}
	defer in.Close()
	_ = in.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		g.t.Errorf("no session has come to the gate: %v", err)
	}
}

// answerThrough is a session whose answer stops behind its first text until the gate is
// opened. The first text may be empty.
func answerThrough(g gate, first string, rest ...string) []claudetest.Step {
	deltas := rest
	if first != "" {
		deltas = append([]string{first}, rest...)
	}
	steps := claudetest.Answer(deltas...)
	at := len(claudetest.Boot()) + 1 // behind the records of the request
	if first != "" {
		at++
	}
	return slices.Concat(steps[:at], []claudetest.Step{{Do: claudetest.Tell, Text: g.path}}, steps[at:])
}

// readUntil reads a stream until it has shown a word.
func readUntil(t *testing.T, in io.Reader, word string) string {
	t.Helper()
	var read strings.Builder
	buf := make([]byte, 1)
	for !strings.Contains(read.String(), word) {
		if _, err := io.ReadFull(in, buf); err != nil {
			t.Fatalf("the stream ended before %q: %v: %q", word, err, read.String())
		}
		read.Write(buf)
	}
	return read.String()
}
