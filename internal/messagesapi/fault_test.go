package messagesapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// broken is an answer of two blocks, the second of three deltas.
func broken(f Fault) Answer {
	return Answer{Parts: []Part{Thinking("hm", ""), Chunks("a", "b", "c")}, Fault: f}
}

var points = []struct {
	at     Point
	text   string
	events int
}{
	{BeforeStart(), "", 0},
	{AfterStart(), "", 1},
	{InBlock(0, 0), "", 2},
	{AfterBlock(0), "", 4},
	{InBlock(1, 0), "", 5},
	{InBlock(1, 2), "ab", 7},
	{InBlock(1, 3), "abc", 8},
	{AfterBlock(1), "abc", 9},
	{BeforeStop(), "abc", 10},
}

func TestFaultsOfAStream(t *testing.T) {
	for _, f := range []struct {
		name    string
		fault   func(Point) Fault
		err     error
		further int // events beyond the point
	}{
		{"FIN", CutFIN, io.ErrUnexpectedEOF, 0},
		{"RST", CutRST, syscall.ECONNRESET, 0},
		{"end", EndEarly, nil, 0},
		{"error event", func(p Point) Fault { return ErrorEvent(p, Overloaded()) }, nil, 1},
		{"malformed", Malformed, new(json.SyntaxError), 1},
	} {
		for _, p := range points {
			t.Run(f.name+" "+p.at.String(), func(t *testing.T) {
				s, client := start(t, Options{Script: Always(broken(f.fault(p.at)))})
				response := post(t, bound(t), client, s.URL(), streamed)
				g, err := newStreamReader(response.Body).all()
				if syntax := new(json.SyntaxError); !errors.Is(err, f.err) && !(errors.As(f.err, &syntax) && errors.As(err, &syntax)) {
					t.Errorf("error %v, want %v", err, f.err)
				}
				if g.text() != p.text || len(g.names) != p.events+f.further || g.stopped {
					t.Errorf("%q, %v", g.text(), g.names)
				}
				if wantError := f.name == "error event"; wantError != (g.fault != nil) || wantError && g.fault.Type != "overloaded_error" {
					t.Errorf("error event %v", g.fault)
				}
				wantOutcome(t, s, Faulted)
			})
		}
	}
}

func wantOutcome(t *testing.T, s *Server, want Outcome) *Recorded {
	t.Helper()
	rec, err := s.WaitTurn(bound(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	if outcome, err := rec.Wait(bound(t)); err != nil || outcome != want {
		t.Errorf("outcome %q, %v; want %q", outcome, err, want)
	}
	return rec
}

func TestCutBeforeHeader(t *testing.T) {
	for name, want := range map[string]struct {
		fault Fault
		err   error
	}{
		"FIN": {CutFIN(BeforeHeader()), io.EOF},
		"RST": {CutRST(BeforeHeader()), syscall.ECONNRESET},
	} {
		for _, body := range []string{streamed, unstreamed} {
			t.Run(name, func(t *testing.T) {
				s, client := start(t, Options{Script: Always(broken(want.fault))})
				response, err := tryPost(bound(t), client, s.URL(), body)
				if err == nil {
					response.Body.Close()
				}
				if !errors.Is(err, want.err) {
					t.Errorf("error %v, want %v", err, want.err)
				}
				if rec := wantOutcome(t, s, Faulted); !rec.FirstByte().IsZero() {
					t.Errorf("a byte at %v", rec.FirstByte())
				}
			})
		}
	}
}

// TestHang: a hanging answer has sent all that precedes its point, and ends when
// the client goes or the server closes.
func TestHang(t *testing.T) {
	for _, p := range points {
		for _, coalesce := range []bool{false, true} {
			t.Run(p.at.String(), func(t *testing.T) {
				answer := broken(Hang(p.at))
				answer.Coalesce = coalesce
				s, client := start(t, Options{Script: Always(answer)})
				ctx, cancel := context.WithCancel(bound(t))
				stream := newStreamReader(post(t, ctx, client, s.URL(), streamed).Body)
				for range p.events {
					if _, err := stream.next(); err != nil {
						t.Fatal(err)
					}
				}
				if stream.got.text() != p.text {
					t.Errorf("%q, want %q", stream.got.text(), p.text)
				}
				if o := s.Turns()[0].Outcome(); o != Pending {
					t.Errorf("outcome %q while hanging", o)
				}
				cancel()
				wantOutcome(t, s, Disconnected)
			})
		}
	}
}

func TestHangEndsAtClose(t *testing.T) {
	for _, fault := range []Fault{Hang(BeforeHeader()), Hang(InBlock(1, 1))} {
		s, client := start(t, Options{Script: Always(broken(fault))})
		failed := make(chan error, 1)
		go func() {
			response, err := tryPost(bound(t), client, s.URL(), streamed)
			if err == nil {
				_, err = io.ReadAll(response.Body)
				response.Body.Close()
			}
			failed <- err
		}()
		rec, err := s.WaitTurn(bound(t), 1)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		if err := <-failed; err == nil {
			t.Error("the client saw a proper end")
		}
		select {
		case <-rec.Done():
		default:
			t.Error("Close did not wait for the answer")
		}
		if rec.Outcome() != Closed {
			t.Errorf("outcome %q", rec.Outcome())
		}
	}
}

func TestFaultsOfAWhole(t *testing.T) {
	for name, c := range map[string]struct {
		fault  Fault
		status int
		err    error
	}{
		"FIN":         {CutFIN(InBlock(1, 1)), 200, io.ErrUnexpectedEOF},
		"RST":         {CutRST(AfterStart()), 200, syscall.ECONNRESET},
		"end":         {EndEarly(AfterStart()), 200, nil},
		"malformed":   {Malformed(AfterStart()), 200, nil},
		"error event": {ErrorEvent(AfterStart(), Overloaded()), 529, nil},
		"no status":   {ErrorEvent(AfterStart(), APIError{Message: "x"}), 500, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := start(t, Options{Script: Always(broken(c.fault))})
			response := post(t, bound(t), client, s.URL(), unstreamed)
			body, err := io.ReadAll(response.Body)
			if !errors.Is(err, c.err) || response.StatusCode != c.status {
				t.Errorf("%d, error %v; want %d, %v", response.StatusCode, err, c.status, c.err)
			}
			if json.Valid(body) != (c.status != 200) {
				t.Errorf("body %q", body)
			}
			wantOutcome(t, s, Faulted)
		})
	}
}

func TestHangOfAWhole(t *testing.T) {
	s, client := start(t, Options{Script: Always(broken(Hang(InBlock(1, 1))))})
	ctx, cancel := context.WithCancel(bound(t))
	response := post(t, ctx, client, s.URL(), unstreamed)
	if _, err := io.ReadFull(response.Body, make([]byte, response.ContentLength/2)); err != nil {
		t.Fatal(err)
	}
	cancel()
	wantOutcome(t, s, Disconnected)
}

func TestHTTPErrors(t *testing.T) {
	for status, kind := range map[int]string{
		400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
		404: "not_found_error", 413: "request_too_large", 418: "invalid_request_error", 429: "rate_limit_error",
		500: "api_error", 503: "api_error", 504: "timeout_error", 529: "overloaded_error",
	} {
		for _, body := range []string{streamed, unstreamed} {
			s, client := start(t, Options{Script: Always(ErrorAnswer(status, "<no> & no", "Retry-After", "2"))})
			response := post(t, bound(t), client, s.URL(), body)
			have := readAll(t, response.Body)
			want := `{"type":"error","error":{"type":"` + kind + `","message":"<no> & no"},"request_id":"` + response.Header.Get("Request-Id") + `"}`
			if diff := cmp.Diff(want, have); diff != "" || response.StatusCode != status || response.Header.Get("Retry-After") != "2" {
				t.Errorf("%d %v %s", response.StatusCode, response.Header, diff)
			}
			wantOutcome(t, s, Completed)
		}
	}
}

// TestOneOfTwoDisconnects: answers of one client end without regard to another's.
func TestOneOfTwoDisconnects(t *testing.T) {
	gate := NewGate()
	s, client := start(t, Options{Script: Sequence(
		Answer{Parts: []Part{Text("a\n")}, Fault: Hang(InBlock(0, 1))},
		Answer{Parts: []Part{Text("b\n")}, Gate: gate},
	)})
	firstCtx, cancel := context.WithCancel(bound(t))
	first := newStreamReader(post(t, firstCtx, client, s.URL(), streamed).Body)
	second := newStreamReader(post(t, bound(t), client, s.URL(), streamed).Body)
	if err := first.until("content_block_delta"); err != nil {
		t.Fatal(err)
	}
	cancel()
	wantOutcome(t, s, Disconnected)
	gate.Open()
	if g, err := second.all(); err != nil || g.text() != "b\n" {
		t.Errorf("%q, %v", g.text(), err)
	}
	if o, err := s.Turns()[1].Wait(bound(t)); o != Completed {
		t.Errorf("outcome %q, %v", o, err)
	}
}
