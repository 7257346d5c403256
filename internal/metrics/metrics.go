// Package metrics counts turns and shows the state of the server to Prometheus. The help
// texts are the manual: docs/metrics.md is made of them. No label holds text of a
// conversation, a secret, or anything else that is not bounded in number.
package metrics

import (
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ocp/internal/server"
	"ocp/internal/turn"
)

const (
	// mostModels and mostKeys bound the values of the labels model and key; what is beyond
	// counts as "other".
	mostModels = 30
	mostKeys   = 100
	// atOnce bounds how many scrapes are answered at the same time.
	atOnce = 4
)

// stageBuckets reach from OCP's own share of a stage to a turn's usual bound, in seconds.
var stageBuckets = []float64{.005, .025, .1, .2, .3, .5, .75, 1, 1.5, 2.5, 5, 10, 30, 60, 120, 300, 600}

// Options configure Metrics.
type Options struct {
	Status  func() server.Status // asked at each scrape; required
	Version string               // of ocp
	Models  []string             // names that the label model always has
}

// Metrics is a registry of its own and what is in it.
type Metrics struct {
	registry *prometheus.Registry
	models   *names
	keys     *names

	turns, keyTurns  *prometheus.CounterVec
	tokens, keyToken *prometheus.CounterVec
	stages           *prometheus.HistogramVec
	total            *prometheus.HistogramVec

	deltas, reordered, duplicates        prometheus.Counter
	answered, toppedUp, toppedUpTurns    prometheus.Counter
	divergences, inputChecks, inputDiffs prometheus.Counter
}

// New makes the metrics, the Go runtime's and the process's among them.
func New(o Options) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), models: newNames(mostModels, o.Models), keys: newNames(mostKeys, nil)}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		m.registry.MustRegister(c)
		return c
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: stageBuckets}, labels)
		m.registry.MustRegister(h)
		return h
	}
	m.turns = counters("ocp_turns_total", "Turns that are over. The outcome is ok, refused (the queue was full), limited (by the key), or the kind of the error; the model is as requested.", "outcome", "dialect", "model")
	m.keyTurns = counters("ocp_key_turns_total", "Turns that are over, by the name of the client's key; none if it has no name.", "key")
	m.tokens = counters("ocp_tokens_total", "Tokens as the upstream counted them. The kind is input (without cached ones), cache_read, cache_creation or output. Of turns that broke off or were stopped at a stop sequence they are estimates.", "kind", "model")
	m.keyToken = counters("ocp_key_tokens_total", "Tokens as in ocp_tokens_total, by the name of the client's key; none if it has no name.", "kind", "key")
	m.stages = histogram("ocp_turn_stage_seconds", "How long turns that ended well spent in each stage: queued, boot, submit, first, streaming, verifying. The way is how the turn came to its session: cold, pooled, continued, or unknown at a stop sequence.", "stage", "way")
	m.total = histogram("ocp_turn_seconds", "How long turns that ended well took, from the request to the end of its answer.", "dialect")
	m.deltas = counter("ocp_deltas_total", "Hook calls with text of an answer.")
	m.reordered = counter("ocp_deltas_reordered_total", "Hook calls that came before the one of an earlier text, and were put in order.")
	m.duplicates = counter("ocp_deltas_duplicate_total", "Hook calls that came twice, of which one was dropped.")
	m.answered = counter("ocp_answer_bytes_total", "Bytes of text that were passed on to clients.")
	m.toppedUp = counter("ocp_topped_up_bytes_total", "Bytes of answers that no hook call brought and the transcript did.")
	m.toppedUpTurns = counter("ocp_topped_up_turns_total", "Turns with bytes that no hook call brought.")
	m.divergences = counter("ocp_divergences_total", "Answers that were broken off because what was streamed was not what the transcript said.")
	m.inputChecks = counter("ocp_input_checks_total", "Messages of clients that were compared with the CLI's record of the request it made.")
	m.inputDiffs = counter("ocp_input_diffs_total", "Messages that differed in that comparison.")
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ocp_build_info", Help: "Always 1; the labels say what was built.",
		ConstLabels: prometheus.Labels{"version": o.Version, "go_version": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(build, state{o.Status}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Observe counts a turn that is over. It is for server.Options.Observers.
func (m *Metrics) Observe(t server.Trace) {
	if t.Outcome == "" {
		return
	}
	ok := t.Outcome == "ok"
	model, key := m.models.label(t.Model, ok), "none"
	if t.Key != "" {
		key = m.keys.label(t.Key, true)
	}
	m.turns.WithLabelValues(t.Outcome, t.Dialect, model).Inc()
	m.keyTurns.WithLabelValues(key).Inc()
	m.answered.Add(float64(t.Bytes))
	if t.Outcome == string(turn.Diverged) {
		m.divergences.Inc()
	}
	for _, tokens := range []struct {
		kind string
		n    int
	}{{"input", t.Usage.Input}, {"cache_read", t.Usage.CacheRead}, {"cache_creation", t.Usage.CacheCreation}, {"output", t.Usage.Output}} {
		m.tokens.WithLabelValues(tokens.kind, model).Add(float64(max(tokens.n, 0)))
		m.keyToken.WithLabelValues(tokens.kind, key).Add(float64(max(tokens.n, 0)))
	}
	if !ok {
		return
	}
	stats := t.Finished.Stats
	m.deltas.Add(float64(stats.Deltas))
	m.reordered.Add(float64(stats.Reordered))
	m.duplicates.Add(float64(stats.Duplicates))
	m.toppedUp.Add(float64(stats.ToppedUp))
	if stats.ToppedUp > 0 {
		m.toppedUpTurns.Inc()
	}
	m.inputChecks.Add(float64(stats.InputChecks))
	m.inputDiffs.Add(float64(stats.InputDiffs))
	way := string(t.Finished.Stages.Way)
	if way == "" {
		way = "unknown"
	}
	for _, span := range t.Spans(t.Answered) {
		m.stages.WithLabelValues(string(span.Stage), way).Observe(span.To.Sub(span.From).Seconds())
	}
	m.total.WithLabelValues(t.Dialect).Observe(t.Answered.Sub(t.Begun).Seconds())
}

// Mount is the route /metrics.
func (m *Metrics) Mount() server.Mount {
	handler := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: atOnce})
	return server.Mount{Path: "/metrics", Serve: func(w http.ResponseWriter, r *http.Request, _ bool) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
		handler.ServeHTTP(w, r)
	}}
}

// writeTimeout bounds a scrape that is not read.
const writeTimeout = 30 * time.Second
