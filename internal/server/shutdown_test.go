package server

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ocp/internal/admission"
	"ocp/internal/turn"
)

func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := startPiped(t, Options{}, admission.Options{Slots: 2, Queue: 1})
		r.backend.hold = true
		streamed := r.send(t.Context(), streamedBody)
		s := <-r.backend.started
		s.say(turn.Delta{Text: "half"})
		whole := r.send(t.Context(), wholeBody)
		s2 := <-r.backend.started
		waiting := r.send(t.Context(), streamedBody)
		synctest.Wait()

		done := make(chan error, 1)
		go func() { done <- r.server.Shutdown(context.Background()) }()
		got := <-streamed
		if got.err != nil || !strings.Contains(got.body, `"code":"shutdown"`) || strings.Contains(got.body, "[DONE]") {
			t.Errorf("the stream ended with %+v", got)
		}
		wantError(t, <-whole, http.StatusServiceUnavailable, "shutdown", "")
		wantError(t, <-waiting, http.StatusServiceUnavailable, "shutdown", "")
		wantError(t, <-r.send(t.Context(), wholeBody), http.StatusServiceUnavailable, "shutdown", "")
		for range 4 {
			r.wantLine("turn", "shutdown")
		}

		synctest.Wait()
		if len(done) > 0 {
			t.Error("Shutdown did not wait for the sessions")
		}
		close(s.hold)
		close(s2.hold)
		if err := <-done; err != nil {
			t.Error(err)
		}
		r.wantFree()
	})
}

func TestShutdownHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := startPiped(t, Options{}, oneSlot)
		r.backend.hold = true
		got := r.send(t.Context(), wholeBody)
		s := <-r.backend.started
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := r.server.Shutdown(ctx); err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		<-got
		close(s.hold)
	})
}

func TestClosedAdmission(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	r.gate.Close()
	wantError(t, <-r.send(t.Context(), wholeBody), http.StatusServiceUnavailable, "shutdown", "")
}

// TestDrain checks that what runs, what waits and what comes meanwhile is answered, that
// /readyz says so, and that it waits for the last of them.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := startPiped(t, Options{}, admission.Options{Slots: 1, Queue: 2})
		running := r.send(t.Context(), streamedBody)
		first := <-r.backend.started
		first.say(turn.Delta{Text: "half"})
		waiting := r.send(t.Context(), wholeBody)
		synctest.Wait()

		done := make(chan error, 1)
		go func() { done <- r.server.Drain(context.Background()) }()
		synctest.Wait()
		r.wantReady(503, "not_ready", "shutting down")
		first.say(finished)
		if got := <-running; !strings.Contains(got.body, "[DONE]") {
			t.Errorf("what ran got %+v", got)
		}
		second := <-r.backend.started
		late := r.send(t.Context(), wholeBody)
		synctest.Wait()
		second.say(finished)
		third := <-r.backend.started
		synctest.Wait()
		if len(done) > 0 {
			t.Error("it did not wait for the last")
		}
		third.say(finished)
		for what, got := range map[string]reply{"what waited": <-waiting, "what came": <-late} {
			if got.status != http.StatusOK {
				t.Errorf("%s got %+v", what, got)
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		later := r.send(t.Context(), wholeBody)
		(<-r.backend.started).say(finished)
		if got := <-later; got.status != http.StatusOK {
			t.Errorf("what came behind all got %+v", got)
		}
	})
}

func TestDrainHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := startPiped(t, Options{}, oneSlot)
		got := r.send(t.Context(), streamedBody)
		s := <-r.backend.started
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := r.server.Drain(ctx); err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		s.say(turn.Delta{Text: "on it goes"}, finished)
		if got := <-got; !strings.Contains(got.body, "[DONE]") {
			t.Errorf("got %+v", got)
		}
	})
}

// TestDrainOfPages checks that a page which is kept up to date does not keep the server up.
func TestDrainOfPages(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	page := Mount{Path: "/page", Serve: func(w http.ResponseWriter, r *http.Request, _ bool) {
		close(begun)
		<-r.Context().Done()
		close(ended)
	}}
	r := start(t, Options{Mounts: []Mount{page}}, oneSlot)
	answered := make(chan reply, 1)
	go func() { answered <- r.do("GET", "/page", "", "") }()
	<-begun
	if err := r.server.Drain(context.Background()); err != nil {
		t.Error(err)
	}
	<-ended
	<-answered
}
