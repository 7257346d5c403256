package turn

import (
	"strings"
	"testing"
	"time"

	"ocp/internal/hook"
)

// BenchmarkAssembler takes in one long answer: 999 deltas of 80 bytes, in order, and as
// they come when three calls are under way at once and the first of them is the slowest.
func BenchmarkAssembler(b *testing.B) {
	const deltas, size = 999, 80 // in threes
	fires := make([]hook.Event, deltas)
	for i := range fires {
		fires[i] = hook.Event{
			Name: hook.MessageDisplay, MessageID: "m", Index: i, Final: i == deltas-1,
			Delta: strings.Repeat("x", size-1) + "\n", Received: time.Unix(int64(i), 0),
		}
	}
	for name, order := range map[string]func(i int) int{
		"in order":     func(i int) int { return i },
		"out of order": func(i int) int { return i - i%3 + 2 - i%3 },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(deltas * size)
			for b.Loop() {
				t := New(Options{})
				for i := range fires {
					if _, err := t.Hook(fires[order(i)]); err != nil {
						b.Fatal(err)
					}
				}
				if len(t.sent) != deltas*size {
					b.Fatalf("%d bytes came out", len(t.sent))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*deltas), "ns/delta")
		})
	}
}
