package main

import (
	"fmt"
	"math/bits"
	"strings"
	"sync/atomic"
	"time"
)

// windows are the parts of a run that are told apart, to see whether it gets slower.
const windows = 6

// series are durations by when in a run they were measured.
type series struct{ Windows [windows]histogram }

func (s *series) add(at, run, d time.Duration) {
	if i := int(windows * at / run); i >= 0 && i < windows {
		s.Windows[i].add(d)
	}
}

// String leaves the first window out, in which the load grows.
func (s *series) String() string {
	var b strings.Builder
	for i := 1; i < windows; i++ {
		h := &s.Windows[i]
		fmt.Fprintf(&b, "  %s/%s", h.quantile(0.5), h.quantile(0.99))
	}
	return "p50/p99" + b.String()
}

// histogram counts durations in steps of 6 %, so that it takes no memory by their number.
type histogram struct {
	Counts [64 * steps]int64 // atomic
}

const steps = 16 // in each doubling

func (h *histogram) add(d time.Duration) {
	n := uint64(max(d, steps))
	exponent := bits.Len64(n) - 1
	atomic.AddInt64(&h.Counts[exponent*steps+int(n>>(exponent-4))%steps], 1)
}

// quantile is the middle of the step that q of the durations end in.
func (h *histogram) quantile(q float64) time.Duration {
	var all, below int64
	for i := range h.Counts {
		all += atomic.LoadInt64(&h.Counts[i])
	}
	for i := range h.Counts {
		if below += atomic.LoadInt64(&h.Counts[i]); below > int64(q*float64(all-1)) && all > 0 {
			low := time.Duration(1) << (i / steps)
			return (low + low*time.Duration(2*(i%steps)+1)/(2*steps)).Round(time.Microsecond)
		}
	}
	return 0
}
