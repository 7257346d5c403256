package metrics

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"ocp/internal/server"
	"ocp/internal/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// finished is a turn that has been through everything.
func finished() server.Trace {
	begun := time.Now()
	at := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
	return server.Trace{
		ID: "req_1", Dialect: "openai", Model: "opus", Key: "my editor", Outcome: "ok",
		Begun: begun, Admitted: at(10), Started: at(400), First: at(900), Stopped: at(1900), Answered: at(2000),
		DeltaCount: 3, Bytes: 300, Usage: turn.Usage{Input: 10, CacheRead: 20, CacheCreation: 30, Output: 40},
		Finished: turn.Finished{
			Stats:  turn.Stats{Deltas: 4, Reordered: 1, Duplicates: 1, ToppedUp: 50, InputChecks: 5, InputDiffs: 1},
			Stages: turn.Stages{Way: turn.Cold, Taken: at(200)},
		},
	}
}

func status() server.Status {
	var s server.Status
	s.Readiness.Status = "ready"
	s.CLI.Version, s.CLI.Tested = "2.1.332", true
	s.Sessions.Running, s.Sessions.Waiting, s.Sessions.Started = 1, 2, 9
	s.Limits.Slots, s.Limits.Queue = 3, 4
	s.Pool = server.PoolReport{Primed: 5, Hits: 6, Misses: 7, Renewed: 8, Died: 1}
	s.Kept = server.KeptReport{Waiting: 2, Hits: 3, Evicted: 4, Expired: 5, Died: 6}
	s.HookCalls.Accepted, s.HookCalls.Refused = 100, 1
	s.Warnings = []string{"odd"}
	s.Usage = server.UsageReport{Unwritten: 3, Failures: 2}
	return s
}

func sample() *Metrics {
	m := New(Options{Status: status, Version: "1.2.3", Models: []string{"sonnet"}})
	m.Observe(finished())
	return m
}

// TestCounts checks each figure of one good turn and one that diverged.
func TestCounts(t *testing.T) {
	m := sample()
	running := finished()
	running.Outcome = ""
	m.Observe(running) // counts nothing
	diverged := finished()
	diverged.Outcome, diverged.Finished, diverged.Key, diverged.Model = "diverged", turn.Finished{}, "", "sonnet"
	diverged.Usage = turn.Usage{Output: 3, Estimated: true}
	m.Observe(diverged)
	want := `
		ocp_turns_total{dialect="openai",model="opus",outcome="ok"} 1
		ocp_turns_total{dialect="openai",model="sonnet",outcome="diverged"} 1
		ocp_key_turns_total{key="my editor"} 1
		ocp_key_turns_total{key="none"} 1
		ocp_tokens_total{kind="input",model="opus"} 10
		ocp_tokens_total{kind="cache_read",model="opus"} 20
		ocp_tokens_total{kind="cache_creation",model="opus"} 30
		ocp_tokens_total{kind="output",model="opus"} 40
		ocp_tokens_total{kind="output",model="sonnet"} 3
		ocp_key_tokens_total{key="my editor",kind="output"} 40
		ocp_deltas_total 4
		ocp_deltas_reordered_total 1
		ocp_deltas_duplicate_total 1
		ocp_answer_bytes_total 600
		ocp_topped_up_bytes_total 50
		ocp_topped_up_turns_total 1
		ocp_divergences_total 1
		ocp_input_checks_total 5
		ocp_input_diffs_total 1
		ocp_turn_stage_seconds_sum{stage="queued",way="cold"} 0.01
		ocp_turn_stage_seconds_sum{stage="boot",way="cold"} 0.19
		ocp_turn_stage_seconds_sum{stage="submit",way="cold"} 0.2
		ocp_turn_stage_seconds_sum{stage="first",way="cold"} 0.5
		ocp_turn_stage_seconds_sum{stage="streaming",way="cold"} 1
		ocp_turn_stage_seconds_sum{stage="verifying",way="cold"} 0.1
		ocp_turn_stage_seconds_count{stage="verifying",way="cold"} 1
		ocp_turn_seconds_sum{dialect="openai"} 2
		ocp_ready 1
		ocp_warnings 1
		ocp_queue_length 2
		ocp_queue_limit 4
		ocp_slots_in_use 1
		ocp_slots_limit 3
		ocp_sessions{state="running"} 1
		ocp_sessions{state="primed"} 5
		ocp_sessions{state="kept"} 2
		ocp_sessions_started_total 9
		ocp_sessions_died_total{state="primed"} 1
		ocp_sessions_died_total{state="kept"} 6
		ocp_sessions_closed_total{reason="renewed"} 8
		ocp_sessions_closed_total{reason="evicted"} 4
		ocp_sessions_closed_total{reason="expired"} 5
		ocp_session_takes_total{from="kept"} 3
		ocp_session_takes_total{from="primed"} 6
		ocp_session_takes_total{from="new"} 7
		ocp_hook_calls_total{result="accepted"} 100
		ocp_hook_calls_total{result="refused"} 1
		ocp_usage_unwritten 3
		ocp_usage_write_failures_total 2
		ocp_cli_info{tested="true",version="2.1.332"} 1`
	got := scrape(t, m)
	for line := range strings.Lines(strings.TrimSpace(want)) {
		if line = strings.TrimSpace(line); !slices.Contains(got, line) {
			t.Errorf("there is no line %s", line)
		}
	}
}

// scrape returns the lines of /metrics.
func scrape(t *testing.T, m *Metrics) []string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Mount().Serve(w, httptest.NewRequest(http.MethodGet, "/metrics", nil), true)
	if w.Code != http.StatusOK {
		t.Fatalf("the status is %d: %s", w.Code, w.Body)
	}
	return strings.Split(w.Body.String(), "\n")
}

func TestLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(sample().registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestClientsCannotGrowLabels asks for more names than there is room for.
func TestClientsCannotGrowLabels(t *testing.T) {
	m := New(Options{Status: status, Models: []string{"sonnet"}})
	trace := finished()
	for i := range 500 {
		trace.Model, trace.Key = fmt.Sprint("made-up-", i), fmt.Sprint("key-", i)
		trace.Outcome = "model_not_found"
		m.Observe(trace)
	}
	if got := testutil.CollectAndCount(m.turns); got != 1 {
		t.Errorf("models that never answered make %d series", got)
	}
	trace.Outcome = "ok"
	for i := range 500 {
		trace.Model = fmt.Sprint("real-", i)
		m.Observe(trace)
	}
	trace.Model = "bad\xff"
	m.Observe(trace)
	trace.Model = "sonnet"
	m.Observe(trace)
	if got, most := testutil.CollectAndCount(m.turns), mostModels+2; got != most {
		t.Errorf("%d series by model, want %d", got, most)
	}
	if got, most := testutil.CollectAndCount(m.keyTurns), mostKeys+1; got != most {
		t.Errorf("%d series by key, want %d", got, most)
	}
	if got := testutil.ToFloat64(m.turns.WithLabelValues("ok", "openai", "sonnet")); got != 1 {
		t.Errorf("%v turns of a model of the list, want 1", got)
	}
}

// TestEverythingIsSampled checks that the tests that go by the names know all of them.
func TestEverythingIsSampled(t *testing.T) {
	m := sample()
	descs := make(chan *prometheus.Desc, 1000)
	m.registry.Describe(descs)
	close(descs)
	families := gather(t, m)
	for d := range descs {
		_, rest, _ := strings.Cut(d.String(), `fqName: "`)
		name, _, _ := strings.Cut(rest, `"`)
		if _, ok := families[name]; !ok && strings.HasPrefix(name, "ocp_") {
			t.Errorf("%s is not in the sample", name)
		}
	}
}

func gather(t *testing.T, m *Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	list, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	families := map[string]*dto.MetricFamily{}
	for _, f := range list {
		families[f.GetName()] = f
	}
	return families
}

func labels(f *dto.MetricFamily) []string {
	var names []string
	for _, l := range f.Metric[0].Label {
		names = append(names, l.GetName())
	}
	slices.Sort(names)
	return names
}

var update = flag.Bool("update", false, "write the table of docs/metrics.md anew")

const doc = "../../docs/metrics.md"

// TestDocumentedNames checks that docs/metrics.md has the table of what there is.
func TestDocumentedNames(t *testing.T) {
	var table strings.Builder
	table.WriteString("| name | type | labels | |\n|---|---|---|---|\n")
	families := gather(t, sample())
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range families {
			if strings.HasPrefix(name, "ocp_") && !yield(name) {
				return
			}
		}
	}) {
		f := families[name]
		var quoted []string
		for _, l := range labels(f) {
			quoted = append(quoted, "`"+l+"`")
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", name, strings.ToLower(f.GetType().String()), strings.Join(quoted, ", "), f.GetHelp())
	}
	page, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- begin of the table -->\n", "<!-- end of the table -->\n"
	before, rest, ok := strings.Cut(string(page), begin)
	got, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table", doc)
	}
	if got == table.String() {
		return
	}
	if !*update {
		t.Fatalf("the table in %s is not what there is: go test ./internal/metrics -update\nwant:\n%s", doc, table.String())
	}
	if err := os.WriteFile(doc, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkTurn is what a turn costs, all its stages included.
func BenchmarkTurn(b *testing.B) {
	m := New(Options{Status: status})
	trace := finished()
	b.ReportAllocs()
	for b.Loop() {
		for _, outcome := range []string{"", "", "", "", "", "ok"} {
			trace.Outcome = outcome
			m.Observe(trace)
		}
	}
}
