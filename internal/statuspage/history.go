package statuspage

import (
	"sync"
	"time"

	"ocp/internal/server"
)

const (
	mostTurns = 50 // that are over and shown
	minutes   = 60 // of which the latency is shown
	mostUsers = 50 // pairs of key and model that are counted apart
)

// history is what is remembered of turns: a bounded part of them.
type history struct {
	mu      sync.Mutex
	running map[string]server.Trace // by id; guarded by mu, as all below
	over    []server.Trace          // the last ones, oldest first
	latency [minutes]minute
	usage   map[user]*used
	total   totals
}

// minute is the good turns that ended within one.
type minute struct {
	number int64 // since the epoch
	turns  int
	spent  map[server.Stage]time.Duration
}

// user is whom usage is counted for.
type user struct{ key, model string }

type used struct {
	turns, failed, input, cached, output int
	estimated                            bool // some of it
}

// totals are figures of all good turns.
type totals struct{ Deltas, Reordered, Duplicates, ToppedUp, ToppedUpTurns, Checks int }

func newHistory() history {
	return history{running: map[string]server.Trace{}, usage: map[user]*used{}}
}

func (h *history) observe(t server.Trace) {
	t.Deltas = nil
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.Outcome == "" {
		h.running[t.ID] = t
		return
	}
	delete(h.running, t.ID)
	h.count(t)
	if t.Outcome == "refused" || t.Outcome == server.Limited {
		return // a client that asks again and again must not push out what ran
	}
	if len(h.over) == mostTurns {
		copy(h.over, h.over[1:])
		h.over = h.over[:mostTurns-1]
	}
	h.over = append(h.over, t)
}

// count takes note of a turn that is over. mu is held.
func (h *history) count(t server.Trace) {
	who := user{t.Key, t.Model}
	if h.usage[who] == nil && len(h.usage) >= mostUsers {
		who = user{"others", "others"}
	}
	u := h.usage[who]
	if u == nil {
		u = &used{}
		h.usage[who] = u
	}
	u.turns++
	u.input += t.Usage.Input
	u.cached += t.Usage.CacheRead + t.Usage.CacheCreation
	u.output += t.Usage.Output
	u.estimated = u.estimated || t.Usage.Estimated
	if t.Outcome != "ok" {
		u.failed++
		return
	}
	stats := t.Finished.Stats
	h.total.Deltas += stats.Deltas
	h.total.Reordered += stats.Reordered
	h.total.Duplicates += stats.Duplicates
	h.total.ToppedUp += stats.ToppedUp
	h.total.Checks += stats.InputChecks
	if stats.ToppedUp > 0 {
		h.total.ToppedUpTurns++
	}
	number := t.Answered.Unix() / 60
	m := &h.latency[number%minutes]
	if m.number != number {
		*m = minute{number: number, spent: map[server.Stage]time.Duration{}}
	}
	m.turns++
	for _, span := range t.Spans(t.Answered) {
		m.spent[span.Stage] += span.To.Sub(span.From)
	}
}
