package server

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ocp/internal/turn"
)

// TestFirstByteTimeout checks that neither keep-alives nor the session's start count as
// text, and that the wait for a slot is not counted.
func TestFirstByteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := startPiped(t, Options{FirstByteTimeout: 40 * time.Second, IdleTimeout: time.Second}, oneSlot)
		release, err := r.gate.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		whole := r.send(t.Context(), wholeBody)
		time.Sleep(time.Minute)
		begun := time.Now()
		release()
		s := <-r.backend.started
		time.Sleep(30 * time.Second)
		s.say(turn.Started{})
		got := <-whole
		wantError(t, got, http.StatusGatewayTimeout, "timeout", "")
		if took := time.Since(begun); took != 40*time.Second || !strings.Contains(got.body, "40s (--first-byte-timeout)") {
			t.Errorf("after %s: %s", took, got.body)
		}
		<-s.closing
		r.wantLine("turn", "timeout")
		r.wantFree()

		streamed := <-r.send(t.Context(), streamedBody) // its keep-alives have begun the response
		<-r.backend.started
		if streamed.status != http.StatusOK || !strings.Contains(streamed.body, ": keep-alive") || strings.Contains(streamed.body, "[DONE]") ||
			!strings.Contains(streamed.body, "--first-byte-timeout") {
			t.Errorf("got %+v", streamed)
		}
		r.wantLine("turn", "timeout")
		r.wantFree()
	})
}

func TestIdleTimeout(t *testing.T) {
	for name, post := range map[string]func(r *rig) <-chan reply{
		"openai":    func(r *rig) <-chan reply { return r.send(r.t.Context(), streamedBody) },
		"anthropic": func(r *rig) <-chan reply { return r.message(r.t.Context(), streamedMessage) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := startPiped(t, Options{FirstByteTimeout: time.Second, IdleTimeout: 40 * time.Second}, oneSlot)
				got := post(r)
				s := <-r.backend.started
				s.say(turn.Delta{Text: "a"})
				time.Sleep(39 * time.Second)
				s.say(turn.Delta{Text: "b"})
				begun := time.Now()
				reply := <-got
				if took := time.Since(begun); took != 40*time.Second {
					t.Errorf("it took %s", took)
				}
				if reply.status != http.StatusOK || !strings.Contains(reply.body, "40s (--idle-timeout)") ||
					strings.Contains(reply.body, "[DONE]") || strings.Contains(reply.body, "message_stop") {
					t.Errorf("got %+v", reply)
				}
				r.wantLine("turn", "timeout")
				r.wantFree()
			})
		})
	}
}

// TestFailureBehindSilence has a turn fail after a long silence: the stream is kept alive,
// and then ends with the error and no other end.
func TestFailureBehindSilence(t *testing.T) {
	for _, api := range apis {
		t.Run(api.path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := startPiped(t, Options{}, oneSlot)
				got := make(chan reply, 1)
				go func() { got <- r.do("POST", api.path, "", strings.Replace(api.body, "{", `{"stream":true,`, 1)) }()
				s := <-r.backend.started
				time.Sleep(91 * time.Second)
				s.steps <- step{err: &turn.Error{Kind: turn.Overloaded, Message: "the upstream is overloaded"}}
				reply := <-got
				alive := max(strings.Count(reply.body, ": keep-alive\n"), strings.Count(reply.body, "event: ping\n"))
				frames := strings.Split(strings.TrimSpace(reply.body), "\n\n")
				last := frames[len(frames)-1]
				if reply.status != http.StatusOK || alive != 6 || !strings.Contains(last, "the upstream is overloaded") {
					t.Errorf("got %d, kept alive %d times: %s", reply.status, alive, reply.body)
				}
				r.wantFree()
			})
		})
	}
}

// TestNoSilenceTimeouts checks that zero is no bound, and that a turn within its bounds
// ends well.
func TestNoSilenceTimeouts(t *testing.T) {
	for _, o := range []Options{
		{TurnTimeout: 24 * time.Hour},
		{TurnTimeout: 24 * time.Hour, FirstByteTimeout: 3*time.Hour + 1, IdleTimeout: 3*time.Hour + 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, _ := startPiped(t, o, oneSlot)
			got := r.send(t.Context(), wholeBody)
			s := <-r.backend.started
			for _, event := range []turn.Event{turn.Delta{Text: "a"}, turn.Delta{Text: "b"}, finished} {
				time.Sleep(3 * time.Hour)
				s.say(event)
			}
			if got := <-got; got.status != http.StatusOK {
				t.Errorf("got %+v", got)
			}
			r.wantFree()
		})
	}
}
