package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ocp/internal/turn"
)

func TestSpans(t *testing.T) {
	begun := time.Now()
	at := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
	whole := Trace{Outcome: "ok", Admitted: at(1), Started: at(20), First: at(30), Stopped: at(50), Answered: at(60)}
	whole.Finished.Stages = turn.Stages{Way: turn.Cold, Taken: at(10)}
	change := func(f func(*Trace)) Trace {
		trace := whole
		f(&trace)
		return trace
	}
	for _, test := range []struct {
		name  string
		trace Trace
		want  string
	}{
		{"whole", whole, "queued 0-1, boot 1-10, submit 10-20, first 20-30, streaming 30-50, verifying 50-60"},
		{"in a session that goes on", change(func(t *Trace) { t.Finished.Stages.Way = turn.Continued }), "queued 0-1, boot 1-20, first 20-30, streaming 30-50, verifying 50-60"},
		{"without text", change(func(t *Trace) { t.First = time.Time{} }), "queued 0-1, boot 1-10, submit 10-20, first 20-50, verifying 50-60"},
		{"stopped at a sequence", change(func(t *Trace) { t.Stopped, t.Finished = time.Time{}, turn.Finished{} }), "queued 0-1, boot 1-20, first 20-30, streaming 30-60"},
		{"failed in the boot", Trace{Outcome: "session_failed", Admitted: at(1), Answered: at(9)}, "queued 0-1, boot 1-9"},
		{"refused", Trace{Outcome: "refused", Answered: at(1)}, "queued 0-1"},
		{"queued", Trace{}, "queued 0-99"},
		{"streaming", Trace{Admitted: at(1), Started: at(20), First: at(30)}, "queued 0-1, boot 1-20, first 20-30, streaming 30-99"},
		{"times that overlap", Trace{Admitted: at(5), Started: at(4), First: at(30)}, "queued 0-5, boot 5-5, first 5-30, streaming 30-99"},
	} {
		test.trace.Begun = begun
		var got []string
		for _, s := range test.trace.Spans(at(99)) {
			got = append(got, fmt.Sprintf("%s %d-%d", s.Stage, s.From.Sub(begun).Milliseconds(), s.To.Sub(begun).Milliseconds()))
		}
		if got := strings.Join(got, ", "); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, got, test.want)
		}
	}
}
