package server

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"ocp/internal/admission"
	"ocp/internal/prompt"
	"ocp/internal/turn"
)

// BenchmarkStream takes deltas of 80 bytes from a session to an SSE response that drops
// them: all that is between but the network.
func BenchmarkStream(b *testing.B) {
	session := &script{b: b, next: turn.Delta{Text: string(bytes.Repeat([]byte("x"), 79)) + "\n", Received: time.Now()}}
	s := New(Options{
		Backend: session, Admission: admission.New(admission.Options{Slots: 1}),
		FirstByteTimeout: 5 * time.Minute, IdleTimeout: 5 * time.Minute,
	})
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", bytes.NewReader([]byte(streamedBody)))
	r.Header.Set("Content-Type", "application/json")
	b.ReportAllocs()
	s.Handler().ServeHTTP(&dropped{header: http.Header{}}, r)
	if err := s.Shutdown(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// script is a backend whose one session says the same delta until the benchmark ends.
type script struct {
	b    *testing.B
	next turn.Event
}

func (s *script) Start(context.Context, prompt.Request) (Session, error) { return s, nil }
func (s *script) Close() error                                           { return nil }

func (s *script) Next(context.Context) (turn.Event, error) {
	if s.b.Loop() {
		return s.next, nil
	}
	return finished, nil
}

// dropped is a response that nobody reads.
type dropped struct{ header http.Header }

func (d *dropped) Header() http.Header              { return d.header }
func (d *dropped) Write(p []byte) (int, error)      { return len(p), nil }
func (d *dropped) WriteHeader(int)                  {}
func (d *dropped) Flush()                           {}
func (d *dropped) SetWriteDeadline(time.Time) error { return nil }
func (d *dropped) SetReadDeadline(time.Time) error  { return nil }
