package server

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ocp/internal/turn"
)

// TestKeepAlive leaves a stream silent, first in the queue, then before and after its
// first delta.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := startPiped(t, Options{}, oneSlot)
		release, err := r.gate.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		res := make(chan *http.Response, 1)
		go func() {
			got, err := r.post(t.Context(), streamedBody)
			if err != nil {
				t.Error(err)
			}
			res <- got
		}()
		f := readFrames(t, <-res)
		defer f.body.Close()
		wantAt := func(want string, seconds int) {
			t.Helper()
			got := f.next()
			if at := time.Since(begun); !strings.Contains(got, want) || at != time.Duration(seconds)*time.Second {
				t.Errorf("got %q after %s, want %q after %ds", got, at, want, seconds)
			}
		}
		wantAt(": keep-alive", 15)
		wantAt(": keep-alive", 30)
		release()
		s := <-r.backend.started
		wantAt(": keep-alive", 45)
		time.Sleep(10 * time.Second)
		go s.say(turn.Delta{Text: "a"})
		wantAt(`"role":"assistant"`, 55)
		wantAt(`"content":"a"`, 55)
		wantAt(": keep-alive", 70)
		go s.say(finished)
		wantAt(`"finish_reason":"stop"`, 70)
		wantAt("data: [DONE]", 70)
		wantAt("", 70)
		time.Sleep(time.Minute) // no keep-alive after the end
	})
}

func TestTurnTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := startPiped(t, Options{TurnTimeout: 7 * time.Second}, oneSlot)
		for _, body := range []string{streamedBody, wholeBody} {
			begun := time.Now()
			got := <-r.send(t.Context(), body)
			wantError(t, got, http.StatusGatewayTimeout, "timeout", "")
			if took := time.Since(begun); took != 7*time.Second {
				t.Errorf("it took %s", took)
			}
			<-(<-r.backend.started).closing
			r.wantLine("turn", "timeout")
			r.wantFree()
		}

		got := r.send(t.Context(), streamedBody)
		(<-r.backend.started).say(turn.Delta{Text: "half"})
		if got := <-got; got.status != http.StatusOK || !strings.Contains(got.body, `"code":"timeout"`) || strings.Contains(got.body, "[DONE]") {
			t.Errorf("got %+v", got)
		}
		r.wantFree()
	})
}

// TestWaitTimeout pins that the wait for a slot is bounded, and not taken off the turn.
func TestWaitTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := startPiped(t, Options{TurnTimeout: 7 * time.Second}, oneSlot)
		release, err := r.gate.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := <-r.send(t.Context(), wholeBody)
		wantError(t, got, http.StatusGatewayTimeout, "timeout", "")
		if !strings.Contains(got.body, "no slot") {
			t.Errorf("got %s", got.body)
		}

		later := r.send(t.Context(), wholeBody)
		time.Sleep(6 * time.Second)
		release()
		s := <-r.backend.started
		time.Sleep(6 * time.Second)
		s.say(finished)
		if got := <-later; got.status != http.StatusOK {
			t.Errorf("got %+v", got)
		}
		r.wantFree()
	})
}

// TestClientThatDoesNotRead must not hold its slot for ever.
func TestClientThatDoesNotRead(t *testing.T) {
	for _, test := range []struct {
		name string
		body string
		took time.Duration
		run  func(s *fakeSession)
	}{
		// The first write, of a delta larger than all buffers, blocks.
		{"in a delta", streamedBody, 30 * time.Second, func(s *fakeSession) { s.say(turn.Delta{Text: strings.Repeat("x", 100_000)}) }},
		{"in a keep-alive", streamedBody, 45 * time.Second, func(*fakeSession) {}},
		{"in a whole answer", wholeBody, 30 * time.Second, func(s *fakeSession) { s.say(turn.Delta{Text: strings.Repeat("x", 100_000)}, finished) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, dial := startPiped(t, Options{}, oneSlot)
				conn := dial()
				defer conn.Close()
				begun := time.Now()
				fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(test.body), test.body)
				s := <-r.backend.started
				test.run(s)
				<-s.closing
				r.wantLine("turn", "canceled")
				if took := time.Since(begun); took != test.took {
					t.Errorf("it took %s, want %s", took, test.took)
				}
				r.wantFree()
			})
		})
	}
}

// TestSlowBody must not hold a connection for ever.
func TestSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dial := startPiped(t, Options{}, oneSlot)
		conn := dial()
		defer conn.Close()
		begun := time.Now()
		fmt.Fprint(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
		got, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 408 ") || time.Since(begun) != 30*time.Second {
			t.Errorf("got %q (%v) after %s", got, err, time.Since(begun))
		}
		r.wantLine("request", "bad_request")
	})
}

// TestConnectionIsReused pins that net/http lifts the deadlines set here: that of a
// body when it was read, that of a write when the response is done. A client that
// expects to be told to send its body is told before another deadline is set. Each turn
// takes six minutes, longer than most servers' bounds.
func TestConnectionIsReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dial := startPiped(t, Options{}, oneSlot)
		conn := dial()
		defer conn.Close()
		in := bufio.NewReader(conn)
		for _, body := range []string{streamedBody, wholeBody, streamedBody} {
			fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body))
			res, err := http.ReadResponse(in, nil)
			if err != nil || res.StatusCode != http.StatusContinue {
				t.Fatalf("got %+v (%v)", res, err)
			}
			fmt.Fprint(conn, body)
			s := <-r.backend.started
			go func() {
				time.Sleep(3 * time.Minute)
				s.say(turn.Delta{Text: "a"})
				time.Sleep(3 * time.Minute)
				s.say(finished)
			}()
			if res, err = http.ReadResponse(in, nil); err != nil {
				t.Fatal(err)
			}
			if got := read(res); got.err != nil || got.status != http.StatusOK {
				t.Errorf("got %+v", got)
			}
			r.wantLine("turn", "ok")
			time.Sleep(time.Minute)
		}
	})
}
