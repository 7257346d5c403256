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
