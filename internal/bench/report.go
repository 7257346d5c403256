package bench

import (
	"fmt"
	"slices"
)

// Report is all that one run has measured, and under which circumstances.
type Report struct {
	CLI      string // its version
	Upstream string // scripted or real
	Cores    int
	// LoadStart and LoadEnd are the machine's load averages over one minute; negative
	// if they are not known.
	LoadStart, LoadEnd float64
	Turns              []Turn
}

// busyLoad is the load average per core above which the machine itself is measured.
const busyLoad = 1.0

// ways are those of which there are turns.
func (r *Report) ways() []string {
	return slices.DeleteFunc(slices.Clone(ways), func(way string) bool { return len(r.turns(way)) == 0 })
}

// turns are those that went the way they were meant to.
func (r *Report) turns(way string) []Turn {
	var list []Turn
	for _, t := range r.Turns {
		if t.Way == way && t.Wanted == way {
			list = append(list, t)
		}
	}
	return list
}

// Doubts say why figures are not to be trusted, in sentences; none if they are.
func (r *Report) Doubts() []string {
	var list []string
	for _, at := range []struct {
		when string
		load float64
	}{{"start", r.LoadStart}, {"end", r.LoadEnd}} {
		if per := at.load / float64(max(r.Cores, 1)); per > busyLoad {
			list = append(list, fmt.Sprintf("The load average at the %s was %.1f a core: the machine was busy with other things.", at.when, per))
		}
	}
	for _, way := range ways {
		list = append(list, r.doubtsOf(way)...)
	}
	return list
}

func (r *Report) doubtsOf(way string) []string {
	var list []string
	missed := 0
	for _, t := range r.Turns {
		if t.Wanted == way && t.Way != way {
			missed++
		}
	}
	if missed > 0 {
		list = append(list, fmt.Sprintf("%s: turns that are left out, since they went another way: %d.", way, missed))
	}
	switch n := len(r.turns(way)); {
	case n == 0:
	case n < leastTurns:
		list = append(list, fmt.Sprintf("%s: n = %d is too few for a median; %d is enough.", way, n, leastTurns))
	case n < leastForP95:
		list = append(list, fmt.Sprintf("%s: n = %d is too few for p95; %d is enough.", way, n, leastForP95))
	}
	wide, partial := 0, 0
	turns := r.turns(way)
	for _, g := range groups() {
		for _, q := range g.quantities {
			f := figureOf(q.samples(turns))
			if f.Wide {
				wide++
			}
			if q.partial(f, turns) {
				partial++
			}
		}
	}
	if wide > 0 {
		list = append(list, fmt.Sprintf("%s: figures that spread wide (~, the middle half wider than %.0f %% of the median): %d.", way, 100*widestSpread, wide))
	}
	if partial > 0 {
		list = append(list, fmt.Sprintf("%s: figures of some of the turns only (*), the others did not show them: %d.", way, partial))
	}
	return list
}
