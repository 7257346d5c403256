package messagesapi

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestGate: chunk n+1 leaves only when released, after chunk n was seen.
func TestGate(t *testing.T) {
	gate := NewGate()
	answer := Answer{Parts: []Part{Chunks("a", "b"), Text("c")}, Gate: gate}
	s, client := start(t, Options{Script: Always(answer)})
	ctx := bound(t)
	stream := newStreamReader(post(t, ctx, client, s.URL(), streamed).Body)
	if err := stream.until("content_block_start"); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"a", "ab", "abc"} {
		if err := gate.Arrived(ctx, i+1); err != nil {
			t.Fatal(err)
		}
		// The answer stands at step i+1, so nothing of it can have been sent.
		if n := count(s.Turns()[0], "content_block_delta"); n != i {
			t.Errorf("%d deltas before step %d", n, i+1)
		}
		gate.Release()
		if err := stream.until("content_block_delta"); err != nil {
			t.Fatal(err)
		}
		if stream.got.text() != want {
			t.Errorf("%q, want %q", stream.got.text(), want)
		}
	}
	if err := gate.Arrived(ctx, answer.Steps()); err != nil {
		t.Fatal(err)
	}
	if n := count(s.Turns()[0], "message_delta"); n != 0 {
		t.Error("the end came without a step")
	}
	gate.Release()
	if g, err := stream.all(); err != nil || !g.stopped {
		t.Errorf("%+v, %v", g, err)
	}
}

func count(rec *Recorded, event string) int {
	n := 0
	for _, e := range rec.Events() {
		if e.Name == event {
			n++
		}
	}
	return n
}

// TestGateHoldsBuffers: what precedes a step is sent even where events coalesce.
func TestGateHoldsBuffers(t *testing.T) {
	gate := NewGate()
	gate.Release()
	s, client := start(t, Options{Script: Always(Answer{
		Parts: []Part{Chunks("a", "b")}, Gate: gate, Coalesce: true,
	})})
	stream := newStreamReader(post(t, bound(t), client, s.URL(), streamed).Body)
	if err := stream.until("content_block_delta"); err != nil {
		t.Fatal(err)
	}
	gate.Open()
	if g, err := stream.all(); err != nil || g.text() != "ab" {
		t.Errorf("%q, %v", g.text(), err)
	}
}

func TestGateEndsWithTheClient(t *testing.T) {
	gate := NewGate()
	s, client := start(t, Options{Script: Always(Answer{Parts: []Part{Text("a")}, Gate: gate})})
	ctx, cancel := context.WithCancel(bound(t))
	post(t, ctx, client, s.URL(), streamed)
	if err := gate.Arrived(bound(t), 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	wantOutcome(t, s, Disconnected)
}

func TestGateEndsAtClose(t *testing.T) {
	gate := NewGate()
	s, client := start(t, Options{Script: Always(Answer{Gate: gate})})
	go func() {
		if response, err := tryPost(bound(t), client, s.URL(), unstreamed); err == nil {
			response.Body.Close()
		}
	}()
	if err := gate.Arrived(bound(t), 1); err != nil {
		t.Fatal(err)
	}
	s.Close()
	wantOutcomeAfterClose(t, s, Closed)
}

func wantOutcomeAfterClose(t *testing.T, s *Server, want Outcome) {
	t.Helper()
	if turns := s.Turns(); len(turns) != 1 || turns[0].Outcome() != want {
		t.Errorf("turns %v", turns)
	}
}

func TestGateArrivedGivesUp(t *testing.T) {
	cause := errors.New("had enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := NewGate().Arrived(ctx, 1); !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
}

// TestPace: no event is sooner than the pace allows, and each is recorded.
func TestPace(t *testing.T) {
	const first, between = 20 * time.Millisecond, 5 * time.Millisecond
	s, client := start(t, Options{Script: Always(Answer{
		Parts: []Part{Chunks("a", "b")}, Pace: Pace{First: first, Between: between}, Coalesce: true,
	})})
	readAll(t, post(t, bound(t), client, s.URL(), streamed).Body)
	rec := wantOutcome(t, s, Completed)
	if d := rec.FirstByte().Sub(rec.Arrived); d < first {
		t.Errorf("first byte after %v", d)
	}
	events := rec.Events()
	var names []string
	for i, e := range events {
		names = append(names, e.Name)
		if i > 0 && e.At.Sub(events[0].At) < time.Duration(i)*between {
			t.Errorf("event %d after %v", i, e.At.Sub(events[0].At))
		}
	}
	if diff := cmp.Diff([]string{
		"message_start", "content_block_start", "content_block_delta", "content_block_delta",
		"content_block_stop", "message_delta", "message_stop",
	}, names); diff != "" {
		t.Error(diff)
	}
}

func TestPaceEndsWithTheClient(t *testing.T) {
	s, client := start(t, Options{Script: Always(Answer{Pace: Pace{First: time.Hour}})})
	ctx, cancel := context.WithCancel(bound(t))
	failed := make(chan error, 1)
	go func() {
		response, err := tryPost(ctx, client, s.URL(), streamed)
		if err == nil {
			response.Body.Close()
		}
		failed <- err
	}()
	if _, err := s.WaitTurn(bound(t), 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	wantOutcome(t, s, Disconnected)
}
