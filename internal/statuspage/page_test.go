package statuspage

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html/template"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ocp/internal/server"
	"ocp/internal/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func status() server.Status {
	var s server.Status
	s.Readiness.Status = "ready"
	s.CLI.Version, s.CLI.Tested, s.CLI.Plan = "2.1.332", true, "Claude Max"
	return s
}

// good is a turn that ended well some time after an hour's begin.
func good(id string, begun time.Time) server.Trace {
	at := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
	return server.Trace{
		ID: id, Dialect: "openai", Model: "opus", Key: "editor", Streamed: true, Outcome: "ok", Usage: turn.Usage{Input: 1000, CacheRead: 7, Output: 40},
		Begun: begun, Admitted: at(100), Started: at(400), First: at(600), Stopped: at(1600), Answered: at(1700),
		Finished: turn.Finished{
			Stats:  turn.Stats{Deltas: 12, Reordered: 1, Duplicates: 2, ToppedUp: 50, InputChecks: 5},
			Stages: turn.Stages{Way: turn.Cold, Taken: at(300)},
		},
	}
}

// html is the sections of a page now.
func html(p *Page) string {
	var all strings.Builder
	for _, s := range p.render(time.Now()) {
		all.WriteString(string(s.HTML))
	}
	return all.String()
}

func TestSections(t *testing.T) {
	state := status()
	p := New(Options{Status: func() server.Status { return state }})
	if got := html(p); !strings.Contains(got, "No turn yet") || !strings.Contains(got, "Ready") || !strings.Contains(got, "Claude Max") {
		t.Errorf("of nothing: %s", got)
	}

	now := time.Now()
	running := server.Trace{ID: "r", Model: "<script>alert(1)</script>", Dialect: "anthropic", Begun: now.Add(-time.Second), Admitted: now}
	p.Observe(running)
	p.Observe(good("g", now.Add(-10*time.Second)))
	p.Observe(server.Trace{
		ID: "c", Model: "haiku", Outcome: "canceled", Begun: now.Add(-time.Minute), Admitted: now, Answered: now,
		Usage: turn.Usage{Input: 2000, Estimated: true},
	})
	state.Readiness.Status, state.Readiness.Reasons = "not_ready", []string{"no hooks"}
	state.Turns = map[string]int64{"ok": 1, "diverged": 2, "rate_limited": 1}
	state.LastFailure = &server.Failure{Kind: "rate_limited", Message: "wait a while", At: now}
	state.Warnings = []string{"odd"}
	p.rendered = time.Time{}
	got := html(p)
	for _, want := range []string{
		"Not ready", "no hooks", "odd", // state
		"&lt;script&gt;", `<span class="label">boot</span>`, "queued 100 ms, boot 200 ms, submit 100 ms, first 200 ms, streaming 1.0 s, verifying 100 ms", // turns
		"first 200 ms, the mean of 1 turn",                                                                                                                              // latency
		"rate_limited, at", "wait a while", template.HTMLEscapeString(explanations["rate_limited"].Remedy), template.HTMLEscapeString(explanations["diverged"].Meaning), // failures
		"editor", "1\u202f000", "+ 7 cached", "about 2\u202f000", // usage
		`class="alarm"`, "50 <small>bytes, of 1 turn", // exactness
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "<script") || strings.Contains(got, "style=") {
		t.Error("the page has a script or a style in it, which its policy forbids")
	}
}

// TestHistoryIsBounded has more turns, keys and models than are remembered.
func TestHistoryIsBounded(t *testing.T) {
	p := New(Options{Status: status})
	begun := time.Now().Add(-time.Minute)
	for i := range 500 {
		trace := good(fmt.Sprint("req_", i), begun)
		trace.Model = fmt.Sprint("model-", i)
		trace.Deltas = make([]server.DeltaTrace, 1000)
		ended := trace
		trace.Outcome = ""
		p.Observe(trace)
		p.Observe(ended)
	}
	p.Observe(server.Trace{ID: "refused", Outcome: "refused", Begun: begun, Answered: begun}) // never ran
	for i := range 500 {
		p.Observe(server.Trace{ID: fmt.Sprint("run_", i), Begun: begun.Add(time.Duration(i))})
	}
	h := &p.turns
	if len(h.over) != mostTurns || h.over[mostTurns-1].ID != "req_499" || h.over[0].Deltas != nil {
		t.Errorf("%d turns are remembered, the last is %s", len(h.over), h.over[len(h.over)-1].ID)
	}
	if len(h.usage) != mostUsers+1 || h.usage[user{"others", "others"}].turns != 501-mostUsers {
		t.Errorf("%d users are remembered", len(h.usage))
	}
	v := h.view(time.Now(), status())
	if len(v.Rows) != 2*mostTurns || v.More != 450 || v.Rows[0].ID != "run_49" || v.Rows[mostTurns-1].ID != "run_0" {
		t.Errorf("%d rows, %d more, the last that runs is %s", len(v.Rows), v.More, v.Rows[mostTurns-1].ID)
	}
}

func TestScale(t *testing.T) {
	rows := func(totals ...time.Duration) (list []row) {
		for _, d := range totals {
			list = append(list, row{Total: d})
		}
		return list
	}
	for _, test := range []struct {
		rows []row
		want time.Duration
	}{
		{nil, time.Second},
		{rows(3 * time.Second), 5 * time.Second},
		{rows(1500*time.Millisecond, 10*time.Minute), 2 * time.Second},
		{rows(5 * time.Second), 5 * time.Second},
	} {
		if got := scale(test.rows); got != test.want {
			t.Errorf("%v: got %v, want %v", test.rows, got, test.want)
		}
	}
}

// TestMinutesPass checks that the chart shows the last hour, and none before it.
func TestMinutesPass(t *testing.T) {
	h := newHistory()
	now := time.Now().Truncate(time.Hour).Add(30 * time.Minute)
	h.observe(good("old", now.Add(-2*time.Hour)))
	h.observe(good("a", now.Add(-30*time.Minute)))
	h.observe(good("b", now.Add(-30*time.Minute)))
	c := h.view(now, status()).Chart
	if c.Turns != 2 || c.Most != time.Second || len(c.Bars) != 5 || c.Bars[0].X != 29*columnWidth || c.Bars[0].Y != chartHeight-c.Bars[0].Height {
		t.Errorf("the chart is %+v", c)
	}
	if c := h.view(now.Add(2*time.Hour), status()).Chart; c.Turns != 0 {
		t.Errorf("two hours later the chart is %+v", c)
	}
}

// TestEveryFailureIsExplained reads the kinds of errors that there are.
func TestEveryFailureIsExplained(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../turn/error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	kinds := []string{"refused", "bad_request", "internal", server.Limited}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "Kind" {
			kind, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Error(err)
			}
			kinds = append(kinds, kind)
		}
		return true
	})
	if len(kinds) != len(explanations) || len(kinds) < 15 {
		t.Errorf("%d kinds, %d explanations", len(kinds), len(explanations))
	}
	for _, kind := range kinds {
		if e := explanations[kind]; e.Meaning == "" || e.Remedy == "" {
			t.Errorf("%s is not explained", kind)
		}
	}
}

func TestPage(t *testing.T) {
	p := New(Options{Status: status, Models: []string{"opus"}})
	p.Observe(good("g", time.Now()))
	for _, test := range []struct {
		name    string
		method  string
		allowed bool
		status  int
		has     []string
		hasNot  []string
	}{
		{"open", "GET", true, 200, []string{"2.1.332", "opus", "http-equiv", `id="try-key"`}, []string{"unlock"}},
		{"open by a form", "POST", true, 200, []string{"2.1.332"}, []string{"http-equiv"}}, // to load it again has no key
		{"locked", "GET", false, 200, []string{"unlock"}, []string{"2.1.332", "opus", "http-equiv", "not one that"}},
		{"wrong key", "POST", false, 401, []string{"not one that"}, []string{"2.1.332", "opus"}},
	} {
		w := httptest.NewRecorder()
		p.serve(w, httptest.NewRequest(test.method, "/", nil), test.allowed)
		if w.Code != test.status || !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got %d, %v", test.name, w.Code, w.Header())
		}
		for _, want := range test.has {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: there is no %q", test.name, want)
			}
		}
		for _, secret := range test.hasNot {
			if strings.Contains(w.Body.String(), secret) {
				t.Errorf("%s: there is %q", test.name, secret)
			}
		}
	}
}

// TestMountsAreGuarded checks that only what has no figures is open.
func TestMountsAreGuarded(t *testing.T) {
	open := map[string]bool{"/{$}": true, "/status/page.css": true, "/status/page.js": true, "/status/icon.svg": true, "/status/events": false}
	mounts := New(Options{Status: status}).Mounts()
	for _, m := range mounts {
		if want, ok := open[m.Path]; !ok || m.Open != want {
			t.Errorf("%s: open %v", m.Path, m.Open)
		}
		if !strings.HasPrefix(m.Path, "/status/page") && m.Path != "/status/icon.svg" {
			continue
		}
		w := httptest.NewRecorder()
		m.Serve(w, httptest.NewRequest(http.MethodGet, m.Path, nil), false)
		if w.Code != http.StatusOK || w.Body.Len() == 0 || strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
			t.Errorf("%s: got %d %v", m.Path, w.Code, w.Header())
		}
		if body := w.Body.String(); strings.Contains(strings.ReplaceAll(body, "http://www.w3.org/2000/svg", ""), "//") && strings.Contains(body, "http:") {
			t.Errorf("%s names another place", m.Path)
		}
	}
	if len(mounts) != len(open) {
		t.Errorf("there are %d mounts", len(mounts))
	}
}

// frame is what one event says.
func frame(t *testing.T, data string) (id, html string) {
	t.Helper()
	var event struct{ ID, HTML string }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), &event); err != nil {
		t.Fatalf("%v in %q", err, data)
	}
	return event.ID, event.HTML
}

// BenchmarkTurn is what a turn costs that nobody looks at.
func BenchmarkTurn(b *testing.B) {
	p := New(Options{Status: status})
	end := good("g", time.Now())
	running := end
	running.Outcome = ""
	b.ReportAllocs()
	for b.Loop() {
		for range 5 {
			p.Observe(running)
		}
		p.Observe(end)
	}
}

// BenchmarkRender is what a look at a full page costs, however many look.
func BenchmarkRender(b *testing.B) {
	p := New(Options{Status: status})
	for i := range 2 * mostTurns {
		p.Observe(good(fmt.Sprint(i), time.Now().Add(-time.Duration(i)*time.Minute/2)))
	}
	size := 0
	b.ReportAllocs()
	for b.Loop() {
		p.rendered = time.Time{}
		size = len(html(p))
	}
	b.ReportMetric(float64(size), "bytes")
}
