package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"ocp/internal/server"
)

// state shows what the server knows of itself at the time of a scrape.
type state struct{ status func() server.Status }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	ready       = desc("ocp_ready", "1 if a turn can be expected to go well, as /readyz says it, else 0.")
	warned      = desc("ocp_warnings", "How many warnings /status has now.")
	queue       = desc("ocp_queue_length", "Requests that wait for a slot.")
	queueLimit  = desc("ocp_queue_limit", "How many requests may wait (--queue).")
	slots       = desc("ocp_slots_in_use", "Slots that are taken by turns, or by sessions that are being closed.")
	slotsLimit  = desc("ocp_slots_limit", "How many slots there are (--concurrency).")
	sessions    = desc("ocp_sessions", "Sessions now: running (with a slot), primed ahead of their request, or kept for their conversation.", "state")
	started     = desc("ocp_sessions_started_total", "Processes of the CLI that were started, for any purpose.")
	died        = desc("ocp_sessions_died_total", "Sessions that ended by themselves while they waited, primed or kept.", "state")
	closed      = desc("ocp_sessions_closed_total", "Sessions that were closed while they waited: renewed for their age, evicted for another, or expired.", "reason")
	taken       = desc("ocp_session_takes_total", "Where turns got their session: kept (their conversation's own), primed, or new.", "from")
	hookCalls   = desc("ocp_hook_calls_total", "Hook calls that were accepted, and that were refused for a wrong secret or session.", "result")
	cliInfo     = desc("ocp_cli_info", "Always 1; the labels have the version of the CLI, and whether ocp is tested with it.", "version", "tested")
	unwritten   = desc("ocp_usage_unwritten", "Turns whose usage is not in the store yet.")
	unwritable  = desc("ocp_usage_write_failures_total", "Writes of usage that failed and were tried again.")
	allOfStatus = []*prometheus.Desc{ready, warned, queue, queueLimit, slots, slotsLimit, sessions, started, died, closed, taken, hookCalls, cliInfo, unwritten, unwritable}
)

// Describe is for prometheus.Collector, as Collect is.
func (state) Describe(c chan<- *prometheus.Desc) {
	for _, d := range allOfStatus {
		c <- d
	}
}

// Collect asks for the state once.
func (s state) Collect(c chan<- prometheus.Metric) {
	now := s.status()
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	counter := func(d *prometheus.Desc, v int64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	isReady, tested := 0, "false"
	if now.Readiness.Status == "ready" {
		isReady = 1
	}
	if now.CLI.Tested {
		tested = "true"
	}
	gauge(ready, isReady)
	gauge(warned, len(now.Warnings))
	gauge(queue, now.Sessions.Waiting)
	gauge(queueLimit, now.Limits.Queue)
	gauge(slots, now.Sessions.Running)
	gauge(slotsLimit, now.Limits.Slots)
	gauge(sessions, now.Sessions.Running, "running")
	gauge(sessions, now.Pool.Primed, "primed")
	gauge(sessions, now.Kept.Waiting, "kept")
	counter(started, now.Sessions.Started)
	counter(died, now.Pool.Died, "primed")
	counter(died, now.Kept.Died, "kept")
	counter(closed, now.Pool.Renewed, "renewed")
	counter(closed, now.Kept.Evicted, "evicted")
	counter(closed, now.Kept.Expired, "expired")
	counter(taken, now.Kept.Hits, "kept")
	counter(taken, now.Pool.Hits, "primed")
	counter(taken, now.Pool.Misses, "new")
	counter(hookCalls, now.HookCalls.Accepted, "accepted")
	counter(hookCalls, now.HookCalls.Refused, "refused")
	gauge(unwritten, int(now.Usage.Unwritten))
	counter(unwritable, now.Usage.Failures)
	gauge(cliInfo, 1, now.CLI.Version, tested)
}
