package server

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ocp/internal/turn"
)

// TestTraceOfATurn checks that a turn's times come in their order, and each delta's with
// it, also when stop sequences are looked for.
func TestTraceOfATurn(t *testing.T) {
	for _, row := range []struct {
		name, body string
		streamed   bool
	}{
		{"streamed", streamedBody, true},
		{"whole", wholeBody, false},
		{"streamed up to a stop sequence", `{"model":"opus","messages":[{"role":"user","content":"a secret"}],"stream":true,"stop":"§"}`, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			traces, observed := traceOptions()
			r := start(t, observed, oneSlot)
			got := r.send(t.Context(), row.body)
			received := time.Now()
			fin := finished
			fin.Stages = turn.Stages{Way: turn.Cold, Spawned: received, CLI: time.Second}
			(<-r.backend.started).say(turn.Started{}, turn.Delta{Text: "the answer", Received: received}, turn.Delta{Text: "é"}, turn.Verifying{}, fin)
			id := (<-got).header.Get("X-Request-Id")
			told := untilOver(traces)
			if len(told) != 6 {
				t.Errorf("told %d times of the stages and the end", len(told))
			}
			trace := told[len(told)-1]
			wantInOrder(t, []time.Time{told[0].Begun, told[1].Admitted, told[2].Started, told[3].First, told[4].Stopped, trace.Answered})
			want := Trace{
				ID: id, Dialect: "openai", Model: "opus", Streamed: row.streamed, Outcome: "ok", DeltaCount: 2, Bytes: len("the answeré"), Usage: fin.Usage, Finished: fin,
				Deltas: []DeltaTrace{{Bytes: len("the answer"), Received: received}, {Bytes: len("é")}},
			}
			if diff := cmp.Diff(want, trace, cmpopts.IgnoreFields(Trace{}, "Begun", "Admitted", "Started", "First", "Stopped", "Answered"), cmpopts.IgnoreFields(DeltaTrace{}, "Written")); diff != "" {
				t.Errorf("the trace differs (-want +got):\n%s", diff)
			}
			order := []time.Time{trace.Begun, trace.Admitted}
			for _, d := range trace.Deltas {
				if d.Written.IsZero() == row.streamed {
					t.Errorf("a delta was written at %v", d.Written)
				}
				if row.streamed {
					order = append(order, d.Written)
				}
			}
			wantInOrder(t, append(order, trace.Answered))
		})
	}
}

func TestTraceOfAFailedTurn(t *testing.T) {
	traces, observed := traceOptions()
	r := start(t, observed, oneSlot)
	got := r.send(t.Context(), streamedBody)
	(<-r.backend.started).steps <- step{err: &turn.Error{Kind: turn.RateLimited, Message: "wait"}}
	if status := (<-got).status; status != http.StatusTooManyRequests {
		t.Errorf("the status is %d", status)
	}
	told := untilOver(traces)
	trace := told[len(told)-1]
	if trace.Outcome != string(turn.RateLimited) || trace.Message != "wait" || trace.Finished != (turn.Finished{}) || len(trace.Deltas) > 0 {
		t.Errorf("got %+v", trace)
	}
	wantInOrder(t, []time.Time{trace.Begun, trace.Admitted, trace.Answered})
}

// traceOptions let a turn's traces be read from the channel.
func traceOptions() (<-chan Trace, Options) {
	traces := make(chan Trace, 10) // more than a turn's stages
	return traces, Options{TraceDeltas: true, Observers: []func(Trace){func(t Trace) { traces <- t }}}
}

// untilOver returns the traces of a turn up to its end.
func untilOver(traces <-chan Trace) (told []Trace) {
	for {
		trace := <-traces
		if told = append(told, trace); trace.Outcome != "" {
			return told
		}
	}
}

func wantInOrder(t *testing.T, times []time.Time) {
	t.Helper()
	for i, at := range times {
		if at.IsZero() || i > 0 && at.Before(times[i-1]) {
			t.Errorf("the times are out of order: %v", times)
		}
	}
}
