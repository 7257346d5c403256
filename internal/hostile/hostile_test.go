// Package hostile_test sends the server what no client of the APIs would: over a real
// socket, byte by byte. It is apart from the server's own tests because the official
// clients, which those use, take minutes to compile for fuzzing.
package hostile_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ocp/internal/admission"
	"ocp/internal/prompt"
	"ocp/internal/server"
	"ocp/internal/turn"
)

// net/http gives a connection that it closes half a second to be read to its end.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// backend counts the sessions it starts. Each answers at once.
type backend struct{ started atomic.Int64 }

func (b *backend) Start(context.Context, prompt.Request) (server.Session, error) {
	b.started.Add(1)
	return &session{}, nil
}

type session struct{ said bool }

func (s *session) Next(context.Context) (turn.Event, error) {
	if !s.said {
		s.said = true
		return turn.Delta{Text: "fine"}, nil
	}
	return turn.Finished{Model: "opus", StopReason: turn.EndTurn}, nil
}

func (s *session) Close() error { return nil }

// newServer makes a server with the bounds of a test: short, as far as anything is to run
// into them.
func newServer(o server.Options) (*backend, *server.Server, *http.Server) {
	b := &backend{}
	o.Backend, o.Admission = b, admission.New(admission.Options{Slots: 4, Queue: 1 << 16})
	o.Loopback, o.MaxBody = true, 1<<20
	s := server.New(o)
	return b, s, s.HTTP()
}

// door is a server on a socket.
type door struct {
	t       *testing.T
	backend *backend
	address string
}

func open(t *testing.T, o server.Options) *door {
	t.Helper()
	b, s, hs := newServer(o)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- hs.Serve(listener) }()
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		hs.Close()
		<-served
	})
	return &door{t, b, listener.Addr().String()}
}

// reply is what came back: the responses, and what became of the connection.
type reply struct {
	responses []response
	closed    bool // by the server, behind the last response
}

type response struct {
	status int
	header http.Header
	body   string
}

// patience is how long the server may leave a connection open that it has nothing more to
// say on. No test waits for it that ends well, but to see that it stays open.
const patience = 30 * time.Second

// send sends bytes over a connection of its own, and reads as many responses as come until
// the server closes it or, with keep, until there are that many.
func (d *door) send(request string, keep int) reply {
	d.t.Helper()
	conn, err := net.Dial("tcp", d.address)
	if err != nil {
		d.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	go io.WriteString(conn, request) // the server may answer, and close, before it is all sent
	in := bufio.NewReader(conn)
	var r reply
	for keep == 0 || len(r.responses) < keep {
		res, err := http.ReadResponse(in, &http.Request{Method: strings.SplitN(request, " ", 2)[0]})
		if err != nil {
			r.closed = true
			if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
				d.t.Errorf("%s: the connection stays open", brief(request))
			}
			break
		}
		body, _ := io.ReadAll(res.Body) // a connection closed with bytes unread may be reset
		res.Body.Close()
		r.responses = append(r.responses, response{res.StatusCode, res.Header, string(body)})
	}
	return r
}

// last is the only response that matters.
func (r reply) last() response {
	if len(r.responses) == 0 {
		return response{}
	}
	return r.responses[len(r.responses)-1]
}

func brief(request string) string {
	if len(request) > 120 {
		request = request[:120] + "…"
	}
	return fmt.Sprintf("%q", request)
}

// shape is in whose words a refusal is to be.
type shape int

const (
	openai    shape = iota
	anthropic       // {"type":"error",…}
	plain           // net/http's own: no JSON
	nothing         // no answer: the connection is closed
)

func (s shape) check(got response) error {
	var e struct {
		Type  string
		Error struct{ Type, Message string }
	}
	err := json.Unmarshal([]byte(got.body), &e)
	isJSON := err == nil && e.Error.Type != "" && e.Error.Message != "" && got.header.Get("Content-Type") == "application/json" && got.header.Get("X-Request-Id") != ""
	switch {
	case s == openai && (!isJSON || e.Type != ""):
		return fmt.Errorf("not in the shape of OpenAI: %q", got.body)
	case s == anthropic && (!isJSON || e.Type != "error" || got.header.Get("Request-Id") == ""):
		return fmt.Errorf("not in the shape of Anthropic: %q", got.body)
	case s == plain && (!strings.HasPrefix(got.header.Get("Content-Type"), "text/plain") || len(got.body) > 200):
		return fmt.Errorf("not plain: %v %q", got.header, got.body)
	}
	return nil
}

// Bodies that would start a session.
const (
	chat     = `{"model":"opus","messages":[{"role":"user","content":"a"}]}`
	messages = `{"model":"opus","max_tokens":9,"messages":[{"role":"user","content":"a"}]}`
)

// post is a request for a turn with the headers given, each with its line's end.
func post(target, headers, body string) string {
	return "POST " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// TestGood checks that the requests which the others spoil are good ones.
func TestGood(t *testing.T) {
	d := open(t, server.Options{})
	for i, request := range []string{
		post("/v1/chat/completions", "", chat),
		post("/v1/messages", "Content-Type: application/json\r\n", messages),
		post("http://localhost/v1/messages", "", messages),
		post("/%76%31/messages?x=../..", "", messages),
		"POST /v1/messages HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: keep-alive\r\n" + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(messages), messages),
	} {
		if got := d.send(request, 1); got.last().status != http.StatusOK || !strings.Contains(got.last().body, "fine") {
			t.Errorf("%s got %+v", brief(request), got)
		}
		if n := d.backend.started.Load(); n != int64(i+1) {
			t.Errorf("%s: %d sessions were started, want %d", brief(request), n, i+1)
		}
	}
}

// hostile are requests that are to be refused.
var hostile = []struct {
	name, request string
	status        int
	shape         shape
	closed        bool // the connection is closed behind it
}{
	// Who is called.
	{"foreign Host", "POST /v1/messages HTTP/1.1\r\nHost: evil.example\r\n" + rest(messages), 403, anthropic, false},
	{"foreign Host of health", "GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403, openai, false},
	{"no Host", "POST /v1/messages HTTP/1.1\r\n" + rest(messages), 400, plain, true},
	{"empty Host", "POST /v1/messages HTTP/1.1\r\nHost:\r\n" + rest(messages), 403, anthropic, false},
	{"no Host in HTTP/1.0", "POST /v1/messages HTTP/1.0\r\n" + rest(messages), 403, anthropic, true},
	{"two Hosts", "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n" + rest(messages), 400, plain, true},
	{"two Hosts in one", "POST /v1/messages HTTP/1.1\r\nHost: localhost, evil.example\r\n" + rest(messages), 400, plain, true},
	{"folded Host", "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n evil.example\r\n" + rest(messages), 400, plain, true},
	{"absolute target of another", post("http://evil.example/v1/messages", "", messages), 403, anthropic, false},
	{"X-Forwarded-Host alone", "POST /v1/messages HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: localhost\r\n" + rest(messages), 403, anthropic, false},
	{"foreign Origin", post("/v1/chat/completions", "Origin: http://evil.example\r\n", chat), 403, openai, false},
	{"Origin null", post("/v1/messages", "Origin: null\r\n", messages), 403, anthropic, false},
	{"own Origin and a foreign one", post("/v1/messages", "Origin: http://localhost\r\nOrigin: http://evil.example\r\n", messages), 403, anthropic, false},
	{"plain text", post("/v1/chat/completions", "Content-Type: text/plain\r\n", chat), 415, openai, false},
	{"two Content-Types", post("/v1/chat/completions", "Content-Type: application/json\r\nContent-Type: text/plain\r\n", chat), 415, openai, false},
	{"a form", post("/v1/messages", "Content-Type: application/x-www-form-urlencoded\r\n", messages), 415, anthropic, false},

	// Where the request ends.
	{"two lengths", post("/v1/messages", "Content-Length: 3\r\n", messages), 400, plain, true},
	{"two lengths in one", "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3, 4\r\n\r\nabcd", 400, plain, true},
	{"length with a sign", "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: +4\r\n\r\nabcd", 400, plain, true},
	{"negative length", "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: -4\r\n\r\nabcd", 400, plain, true},
	{"endless length", "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\nabcd", 400, plain, true},
	{"unknown coding", post("/v1/messages", "Transfer-Encoding: xchunked\r\n", messages), 501, plain, true},
	{"two codings", post("/v1/messages", "Transfer-Encoding: gzip, chunked\r\n", messages), 501, plain, true},
	{"coding twice", post("/v1/messages", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", messages), 501, plain, true},
	{"space before the colon", post("/v1/messages", "Transfer-Encoding : chunked\r\n", messages), 400, plain, true},
	{"chunks of nothing", chunked("/v1/messages", "ZZ\r\n"), 400, anthropic, true},
	{"chunk of negative size", chunked("/v1/chat/completions", "-1\r\nx\r\n0\r\n\r\n"), 400, openai, true},
	{"chunk of endless size", chunked("/v1/chat/completions", "fffffffffffffffff\r\nx\r\n"), 400, openai, true},
	{"chunk longer than it says", chunked("/v1/messages", "2\r\n{}}}\r\n0\r\n\r\n"), 400, anthropic, true},
	{"chunk with a bare line feed", chunked("/v1/messages", "2\n{}\r\n0\r\n\r\n"), 400, anthropic, true},
	{"chunk with a long extension", chunked("/v1/messages", "2;"+strings.Repeat("x", 9000)+"\r\n{}\r\n0\r\n\r\n"), 400, anthropic, true},
	{"chunks with endless extensions", chunked("/v1/messages", strings.Repeat("1;"+strings.Repeat("x", 2000)+"\r\n \r\n", 100)+"0\r\n\r\n"), 400, anthropic, true},

	// Too much.
	{"long request line", "GET /v1/models/" + strings.Repeat("x", 70_000) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 431, openai, false},
	{"endless request line", "GET /" + strings.Repeat("x", 400_000) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 431, plain, true},
	{"large header", post("/v1/messages", "X-Long: "+strings.Repeat("x", 70_000)+"\r\n", messages), 431, anthropic, false},
	{"endless header", post("/v1/messages", "X-Long: "+strings.Repeat("x", 400_000)+"\r\n", messages), 431, plain, true},
	{"many headers", post("/v1/messages", strings.Repeat("A: b\r\n", 35_000), messages), 431, anthropic, false},
	{"endless headers", post("/v1/messages", strings.Repeat("A: b\r\n", 80_000), messages), 431, plain, true},
	{"large body", post("/v1/messages", "", messages+strings.Repeat(" ", 1<<20)), 413, anthropic, true},
	{"large body in chunks", chunked("/v1/chat/completions", fmt.Sprintf("%x\r\n%s\r\n", 1<<21, strings.Repeat(" ", 1<<21))), 413, openai, true},
	{"announced body", "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 999999999\r\n\r\n", 413, openai, true},

	// Which path.
	{"two slashes", post("//v1/messages", "", messages), 404, anthropic, false},
	{"two slashes within", post("/v1//chat/completions", "", chat), 404, openai, false},
	{"a slash behind", post("/v1/chat/completions/", "", chat), 404, openai, false},
	{"dots", post("/v1/../v1/messages", "", messages), 404, anthropic, false},
	{"coded dots", post("/v1/%2e%2e/v1/messages", "", messages), 404, openai, false},
	{"coded slash", post("/v1/chat%2fcompletions", "", chat), 404, openai, false},
	{"coded slash and dots", post("/healthz/..%2fv1/messages", "", messages), 404, openai, false},
	{"coded NUL", post("/v1/messages%00", "", messages), 404, openai, false},
	{"coded line end", post("/v1/models%0d%0aX:%20y", "", chat), 404, openai, false},
	{"semicolon", post("/v1/messages;a=b", "", messages), 404, openai, false},
	{"semicolon within", post("/v1;x/chat/completions", "", chat), 404, openai, false},
	{"backslashes", post(`/v1\..\v1\messages`, "", messages), 404, openai, false},
	{"other letters", post("/V1/Messages", "", messages), 404, openai, false},
	{"bad code", post("/v1/%zz", "", chat), 400, plain, true},
	{"no slash", post("v1/messages", "", messages), 400, plain, true},
	{"NUL", post("/v1/\x00", "", messages), 400, plain, true},

	// Which method.
	{"overridden method", "GET /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nX-HTTP-Method-Override: POST\r\n" + rest(chat), 405, openai, false},
	{"small letters", "post /v1/messages HTTP/1.1\r\nHost: localhost\r\n" + rest(messages), 405, anthropic, false},
	{"TRACE", "TRACE /v1/messages HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: secret\r\n\r\n", 405, anthropic, false},
	{"CONNECT elsewhere", "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", 403, openai, false},
	{"CONNECT", "CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n", 404, openai, false},
	{"OPTIONS of all", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, openai, false},
	{"method of nobody", "X(Y /v1/messages HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, plain, true},

	// Which protocol.
	{"HTTP/0.9", "GET /\r\n\r\n", 400, plain, true},
	{"HTTP/2.0 as a line", "POST /v1/messages HTTP/2.0\r\nHost: localhost\r\n" + rest(messages), 505, plain, true},
	{"HTTP/3", "POST /v1/messages HTTP/3.0\r\nHost: localhost\r\n" + rest(messages), 505, plain, true},
	{"preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\n", 403, openai, false},
	{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, plain, true},
	{"no HTTP", "EHLO localhost\r\n\r\n", 400, plain, true},
	{"what nobody expects", post("/v1/messages", "Expect: miracles\r\n", messages), 417, nothing, true},

	// Within headers.
	{"NUL in a header", post("/v1/messages", "X-A: a\x00b\r\n", messages), 400, plain, true},
	{"control character in a header", post("/v1/messages", "X-A: a\x01b\r\n", messages), 400, plain, true},
	{"carriage return in a header", post("/v1/messages", "X-A: a\rX-B: c\r\n", messages), 400, plain, true},
	{"space in a name", post("/v1/messages", "X A: b\r\n", messages), 400, plain, true},
	{"no name", post("/v1/messages", ": b\r\n", messages), 400, plain, true},
	{"a header before all", "POST /v1/messages HTTP/1.1\r\n X: y\r\nHost: localhost\r\n" + rest(messages), 400, plain, true},

	// No JSON of a request.
	{"no body", post("/v1/messages", "", ""), 400, anthropic, false},
	{"half a body", post("/v1/chat/completions", "", chat[:20]), 400, openai, false},
	{"two bodies", post("/v1/messages", "", messages+messages), 400, anthropic, false},
	{"NUL behind the body", post("/v1/chat/completions", "", chat+"\x00"), 400, openai, false},
}

func rest(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

func chunked(target, body string) string {
	return "POST " + target + " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + body
}

// TestHostile checks that each of them is refused, in the words of the API where net/http
// lets us, and starts nothing; and that the server is as good as before.
func TestHostile(t *testing.T) {
	d := open(t, server.Options{})
	for _, test := range hostile {
		keep := 1
		if test.closed {
			keep = 0
		}
		got := d.send(test.request, keep)
		if len(got.responses) != 1 || got.last().status != test.status || got.closed != test.closed {
			t.Errorf("%s: got %+v, want %d, closed: %v", test.name, got, test.status, test.closed)
			continue
		}
		if err := test.shape.check(got.last()); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if n := d.backend.started.Load(); n > 0 {
		t.Errorf("%d sessions were started", n)
	}
	if got := d.send(post("/v1/messages", "", messages), 1); got.last().status != http.StatusOK {
		t.Errorf("afterwards: %+v", got)
	}
}

// TestSmuggling checks that nothing behind a request is taken for another one, where
// somebody in front could take it for a part of the first.
func TestSmuggling(t *testing.T) {
	d := open(t, server.Options{})
	behind := post("/v1/messages", "", messages)
	length := fmt.Sprintf("Content-Length: %d\r\n", len("0\r\n\r\n"+behind))
	for name, request := range map[string]string{
		"length, then chunks": "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n" + length + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + behind,
		"chunks, then length": "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n" + length + "\r\n0\r\n\r\n" + behind,
		"no body wanted":      "GET /v1/models/none HTTP/1.1\r\nHost: localhost\r\n" + length + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + behind,
		"HTTP/1.0":            "POST /v1/chat/completions HTTP/1.0\r\nHost: localhost\r\n" + length + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + behind,
		"too large":           "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n" + strings.Repeat(" ", 2_000_000) + behind,
		"a broken chunk":      chunked("/v1/chat/completions", "2\n{}\r\n0\r\n\r\n") + behind,
		"two lengths":         "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n" + length + "\r\n" + behind,
		"an upgrade":          "GET /v1/models/none HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + behind,
	} {
		got := d.send(request, 0)
		if len(got.responses) != 1 || got.last().status < 400 || got.last().status > 499 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if n := d.backend.started.Load(); n > 0 {
		t.Errorf("%d sessions were started", n)
	}
}

// TestSlowloris checks that a connection which sends too little for too long is closed:
// with an answer, if what it was to be could be told.
func TestSlowloris(t *testing.T) {
	const soon = 50 * time.Millisecond
	d := open(t, server.Options{HeaderTimeout: soon, ReadTimeout: soon})
	for _, test := range []struct {
		name, request string
		status        int // 0 for none
		shape         shape
	}{
		{"nothing", "", 0, nothing},
		{"half a line", "POST /v1/mess", 400, plain},
		{"half the headers", "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nX-A: b", 0, nothing},
		{"half a body", "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", 408, anthropic},
		{"half a chunk", chunked("/v1/chat/completions", "5\r\n{"), 408, openai},
		{"no body though asked for", "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n", 408, anthropic},
		{"half a body behind a refusal", "POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", 404, openai},
	} {
		got := d.send(test.request, 0)
		if got.last().status != test.status || !got.closed {
			t.Errorf("%s: got %+v, want %d", test.name, got, test.status)
			continue
		}
		if err := test.shape.check(got.last()); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if n := d.backend.started.Load(); n > 0 {
		t.Errorf("%d sessions were started", n)
	}
}

// TestUpgrade checks that nothing but HTTP/1 is spoken without TLS, whatever is asked for.
func TestUpgrade(t *testing.T) {
	d := open(t, server.Options{})
	for _, upgrade := range []string{
		"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
		"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
	} {
		got := d.send("GET /v1/models HTTP/1.1\r\nHost: localhost\r\n"+upgrade+"\r\n", 1)
		if got.last().status != http.StatusOK || got.last().header.Get("Upgrade") != "" {
			t.Errorf("%q got %+v", upgrade, got)
		}
	}
}
