package bench

import "slices"

const (
	// leastTurns is below what a median says little, leastForP95 below what the 95th
	// percentile is only the worst sample, and leastForP99 the same of the 99th.
	leastTurns  = 10
	leastForP95 = 20
	leastForP99 = 100
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
	P99    float64 `json:"p99,omitempty"` // of at least 100 samples, as deltas have
	IQR    float64 `json:"iqr"`           // between the quartiles
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
		P95:    nearestRank(sorted, 95),
		IQR:    quantile(sorted, 0.75) - quantile(sorted, 0.25),
	}
	if f.N >= leastForP99 {
		f.P99 = nearestRank(sorted, 99)
	}
	f.Wide = f.IQR > narrowSpread && f.IQR > widestSpread*f.Median
	return f
}

// nearestRank is the sample that the given percentage of them does not exceed.
func nearestRank(sorted []float64, percent int) float64 {
	return sorted[(percent*len(sorted)+99)/100-1]
}

// quantile interpolates between the samples next to it.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}
