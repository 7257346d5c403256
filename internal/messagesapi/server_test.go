package messagesapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRoutes(t *testing.T) {
	s, client := start(t, Options{MaxBody: 1000})
	for _, c := range []struct {
		method, target, body string
		status               int
		want                 string // in the body
	}{
		{"HEAD", "/", "", 200, ""},
		{"HEAD", "/api/hello", "", 200, ""},
		{"GET", "/api/hello", "", 200, ""},
		{"POST", "/v1/messages", unstreamed, 200, `"text":"Hello! How`},
		{"POST", "/v1/messages?beta=true", unstreamed, 200, `"text":"Hello! How`},
		{"POST", "/v1/messages", streamed, 200, "event: message_stop\n"},
		{"POST", "/v1/messages/count_tokens", "12345", 200, `{"input_tokens":2}`},
		{"GET", "/v1/messages", "", 404, `{"type":"not_found_error","message":"Not found"}`},
		{"GET", "/", "", 404, `"type":"error"`},
		{"POST", "/v1/messages", "{", 400, "invalid_request_error"},
		{"POST", "/v1/messages", strings.Repeat("x", 1001), 413, "request_too_large"},
	} {
		t.Run(c.method+" "+c.target, func(t *testing.T) {
			s.Reset()
			request, err := http.NewRequestWithContext(bound(t), c.method, s.URL()+c.target, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("X-Odd", "kept")
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body := readAll(t, response.Body)
			if response.StatusCode != c.status || !strings.Contains(body, c.want) {
				t.Errorf("%d %s, want %d with %s", response.StatusCode, body, c.status, c.want)
			}
			if id := response.Header.Get("Request-Id"); !strings.HasPrefix(id, "req_") {
				t.Errorf("Request-Id %q", id)
			}
			checkRecord(t, s, request, c.body)
		})
	}
}

// checkRecord compares the only record of a server with the request sent.
func checkRecord(t *testing.T, s *Server, request *http.Request, body string) {
	t.Helper()
	rec, err := s.Wait(bound(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	if outcome, err := rec.Wait(bound(t)); err != nil || outcome != Completed {
		t.Errorf("outcome %q, %v", outcome, err)
	}
	if rec.BodyErr == nil && string(rec.Body) != body {
		t.Errorf("body %q, want %q", rec.Body, body)
	}
	if rec.Method != request.Method || rec.Path != request.URL.Path || rec.Query != request.URL.RawQuery || rec.Header.Get("X-Odd") != "kept" {
		t.Errorf("recorded %+v", rec)
	}
	if rec.FirstByte().Before(rec.Arrived) || rec.LastByte().Before(rec.FirstByte()) {
		t.Errorf("times %v %v %v", rec.Arrived, rec.FirstByte(), rec.LastByte())
	}
	wantTurn := 0
	if request.Method == "POST" && request.URL.Path == "/v1/messages" {
		wantTurn = 1
	}
	if rec.Seq != 1 || rec.Turn != wantTurn || len(s.Requests()) != 1 || len(s.Turns()) != wantTurn {
		t.Errorf("seq %d, turn %d, of %d and %d", rec.Seq, rec.Turn, len(s.Requests()), len(s.Turns()))
	}
}

func TestWait(t *testing.T) {
	s, client := start(t, Options{})
	ctx := bound(t)
	second := make(chan *Recorded, 1)
	go func() {
		rec, err := s.WaitTurn(ctx, 2)
		if err != nil {
			t.Error(err)
		}
		second <- rec
	}()
	response, err := client.Head(s.URL() + "/")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	for range 2 {
		readAll(t, post(t, ctx, client, s.URL(), unstreamed).Body)
	}
	if rec := <-second; rec.Turn != 2 || rec.Seq != 3 {
		t.Errorf("turn %d, request %d", rec.Turn, rec.Seq)
	}

	cause := errors.New("had enough")
	stopped, cancel := context.WithCancelCause(ctx)
	cancel(cause)
	if _, err := s.Wait(stopped, 4); !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.Wait(ctx, 4)
		ended <- err
	}()
	s.Close()
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("error %v", err)
	}
}

// TestHalfBody: a request that breaks off is recorded as such, and not answered.
func TestHalfBody(t *testing.T) {
	s, _ := start(t, Options{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"model"); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	rec := wantOutcome(t, s, Disconnected)
	if string(rec.Body) != `{"model` || rec.BodyErr == nil || !rec.FirstByte().IsZero() {
		t.Errorf("body %q, %v, answered %v", rec.Body, rec.BodyErr, rec.FirstByte())
	}
}

// TestCloseOfSilentConnections: Close waits for no client.
func TestCloseOfSilentConnections(t *testing.T) {
	s, _ := start(t, Options{})
	for _, begun := range []string{"", "POST /v1/mess", "POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, begun); err != nil {
			t.Fatal(err)
		}
	}
	closed := make(chan struct{})
	go func() {
		s.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-bound(t).Done():
		t.Fatal("Close hangs")
	}
}

func TestListenError(t *testing.T) {
	s, _ := start(t, Options{})
	if second, err := Start(Options{Addr: strings.TrimPrefix(s.URL(), "http://")}); err == nil {
		second.Close()
		t.Error("two servers listen on one port")
	}
}

func TestUnstreamed(t *testing.T) {
	answer := Answer{
		Parts: []Part{
			Thinking("hm", "sig"), Text("<a> & \u2028 👨‍👩‍👧"), ToolUse("toolu_1", "Bash", `{"command":"ls"}`),
		},
		Usage: Usage{Input: 1, Output: 2, CacheRead: 3, CacheCreation: 4},
		ID:    "msg_x",
	}
	s, client := start(t, Options{Script: Always(answer)})
	response := post(t, bound(t), client, s.URL(), unstreamed)
	var have, want any
	if err := json.Unmarshal([]byte(readAll(t, response.Body)), &have); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"id":"msg_x","type":"message","role":"assistant","model":"m-1","content":[
		{"type":"thinking","thinking":"hm","signature":"sig"},
		{"type":"text","text":"<a> & \u2028 👨‍👩‍👧"},
		{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"ls"}}],
		"stop_reason":"tool_use","stop_sequence":null,
		"usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":4}}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Error(diff)
	}
}

func TestImpossibleAnswers(t *testing.T) {
	for name, answer := range map[string]Answer{
		"no type":       {Parts: []Part{{Text: "x"}}},
		"not UTF-8":     TextAnswer("\xff"),
		"half a rune":   {Parts: []Part{Chunks("\xc3", "\xa4")}},
		"other chunks":  {Parts: []Part{{Type: "text", Text: "x", Split: func(string) []string { return nil }}}},
		"input no JSON": {Parts: []Part{ToolUse("id", "Bash", "{")}},
		"write size":    {WriteSizes: []int{0}},
		"status":        ErrorAnswer(200, "fine"),
		"no such block": {Parts: []Part{Text("x")}, Fault: CutFIN(AfterBlock(1))},
		"no such delta": {Parts: []Part{Text("x")}, Fault: CutFIN(InBlock(0, 2))},
		"no point":      {Fault: Hang(Point{})},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := start(t, Options{Script: Always(answer)})
			response := post(t, bound(t), client, s.URL(), streamed)
			if body := readAll(t, response.Body); response.StatusCode != 500 || !strings.Contains(body, "impossible answer") {
				t.Errorf("%d %s", response.StatusCode, body)
			}
		})
	}
}
