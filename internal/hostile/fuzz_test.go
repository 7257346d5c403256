package hostile_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ocp/internal/server"
)

// FuzzRaw sends any bytes as what comes over a connection. The server must not panic, must
// answer nothing but HTTP, and may start a session for a valid request for a turn alone:
// to a turn's route, by a name of this machine, with a body of one JSON object.
func FuzzRaw(f *testing.F) {
	for _, test := range hostile {
		if len(test.request) < 4<<10 {
			f.Add([]byte(test.request))
		}
	}
	f.Add([]byte(post("/v1/messages", "", messages) + post("/v1/chat/completions", "Connection: close\r\n", chat)))
	f.Add([]byte(chunked("/v1/responses", "1d\r\n"+`{"model":"opus","input":"a" }`+"\r\n0\r\n\r\n")))

	b, s, hs := newServer(server.Options{})
	l := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	panics := &complaints{}
	hs.ErrorLog.SetOutput(panics)
	served := make(chan error, 1)
	go func() { served <- hs.Serve(l) }()
	f.Cleanup(func() {
		_ = s.Shutdown(context.Background())
		hs.Close()
		<-served
	})
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := b.started.Load()
		c := &conn{in: bytes.NewReader(raw), done: make(chan struct{})}
		l.conns <- c
		<-c.done
		if got, most := b.started.Load()-before, valid(raw); got > most {
			t.Errorf("%d sessions were started for %d valid requests", got, most)
		}
		if text := panics.take(); strings.Contains(text, "panic") {
			t.Error(text)
		}
		out := bufio.NewReader(&c.out)
		for {
			if _, err := out.Peek(1); err != nil {
				break
			}
			res, err := http.ReadResponse(out, nil)
			if err != nil {
				t.Fatalf("no HTTP was answered: %v", err)
			}
			if res.StatusCode == http.StatusInternalServerError {
				t.Error("an error of its own")
			}
			if res.StatusCode != http.StatusContinue {
				_, _ = io.Copy(io.Discard, res.Body) // those to HEAD have none, which is the end here
			}
		}
	})
}

// valid counts the requests that may start a session.
func valid(raw []byte) (n int64) {
	in := bufio.NewReader(bytes.NewReader(raw))
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return n
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return n
		}
		turns := []string{"/v1/chat/completions", "/v1/responses", "/v1/messages"}
		var object map[string]any
		host := strings.ToLower(r.Host)
		isObject := json.Unmarshal(bytes.TrimPrefix(body, []byte("\ufeff")), &object) == nil
		if r.Method == http.MethodPost && slices.Contains(turns, r.URL.Path) && isObject && (strings.Contains(host, "localhost") || strings.Contains(host, "127.") || strings.Contains(host, ":")) {
			n++
		}
	}
}

// conn is a connection over which some bytes come, and then no more.
type conn struct {
	net.Conn
	in   *bytes.Reader
	once sync.Once
	done chan struct{} // closed with the connection

	mu  sync.Mutex
	out bytes.Buffer // guarded by mu, until done is closed
}

func (c *conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.in.Read(p)
}

func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(p)
}

func (c *conn) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}

func (c *conn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *conn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *conn) SetDeadline(time.Time) error      { return nil }
func (c *conn) SetReadDeadline(time.Time) error  { return nil }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// listener hands out connections.
type listener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }

// complaints is what net/http logs, recovered panics among it.
type complaints struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

func (c *complaints) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, p...)
	return len(p), nil
}

func (c *complaints) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := string(c.text)
	c.text = nil
	return text
}
