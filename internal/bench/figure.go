package bench

import (
	"math"
	"slices"
)

const (
	// leastTurns is below what a median says little, leastForP95 below what the 95th
	// percentile is only the worst sample.
	leastTurns  = 10
	leastForP95 = 20
	// widestSpread is the widest interquartile range that is trusted, as a share of the
	// median. Below narrowSpread (ms) it is never too wide: what matters is then small.
	widestSpread = 0.3
	narrowSpread = 10.0
)

// Figure is what the samples of one quantity come to.
type Figure struct {
	N      int     `json:"n"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	IQR    float64 `json:"iqr"` // between the quartiles
	Wide   bool    `json:"wide_spread,omitempty"`
}

// figureOf computes a figure. Without samples it is zero.
func figureOf(samples []float64) Figure {
	if len(samples) == 0 {
		return Figure{}
	}
	sorted := slices.Sorted(slices.Values(samples))
	f := Figure{
		N:      len(sorted),
		Median: quantile(sorted, 0.5),
		P95:    sorted[int(math.Ceil(0.95*float64(len(sorted))))-1], // nearest rank: a sample that was there
		IQR:    quantile(sorted, 0.75) - quantile(sorted, 0.25),
	}
	f.Wide = f.IQR > narrowSpread && f.IQR > widestSpread*f.Median
	return f
}

// quantile interpolates between the samples next to it.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}
