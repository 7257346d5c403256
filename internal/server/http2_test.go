package server

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ocp/internal/turn"
)

// startHTTP2 serves HTTP/2 over pipes in memory, as it is spoken over TLS.
func startHTTP2(t *testing.T, o Options) *rig {
	t.Helper()
	r := newRig(t, o, oneSlot)
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	hs := r.server.HTTP()
	hs.Protocols = new(http.Protocols)
	hs.Protocols.SetUnencryptedHTTP2(true)
	go hs.Serve(l) // until Close
	transport := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return l.dial(), nil },
		Protocols:   hs.Protocols,
	}
	r.client, r.url = &http.Client{Transport: transport}, "http://pipe"
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := r.server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		hs.Close()
	})
	return r
}

// TestSilenceOverHTTP2 leaves answers silent for longer than any write or body may take:
// HTTP/2 ends a response when the deadline of a write passes, also if none is under way.
func TestSilenceOverHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startHTTP2(t, Options{KeepAlive: time.Hour, TurnTimeout: time.Hour})
		for _, body := range []string{streamedBody, wholeBody} {
			got := r.send(t.Context(), body)
			s := <-r.backend.started
			for _, text := range []string{"one", "two", "three"} {
				time.Sleep(5 * time.Minute)
				s.say(turn.Delta{Text: text})
			}
			s.say(finished)
			reply := <-got
			if reply.err != nil || reply.status != http.StatusOK || !strings.Contains(reply.body, "three") {
				t.Errorf("got %+v", reply)
			}
			r.wantLine("turn", "ok")
			r.wantFree()
		}
	})
}

// TestClientOfHTTP2Goes checks that a turn ends with its request, though the connection
// stays.
func TestClientOfHTTP2Goes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startHTTP2(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		got := r.send(ctx, streamedBody)
		s := <-r.backend.started
		s.say(turn.Delta{Text: "half"})
		cancel()
		<-s.closing
		<-got
		r.wantLine("turn", "canceled")
		r.wantFree()
		if got := r.do("GET", "/healthz", "", ""); got.status != http.StatusOK {
			t.Errorf("afterwards: %+v", got)
		}
	})
}
