package bench

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestFigure(t *testing.T) {
	upTo := func(n int) []float64 { // n, n-1, …, 1: the order must not matter
		var list []float64
		for i := range n {
			list = append(list, float64(n-i))
		}
		return list
	}
	for _, row := range []struct {
		name    string
		samples []float64
		want    Figure
	}{
		{"none", nil, Figure{}},
		{"one", []float64{7}, Figure{N: 1, Median: 7, P95: 7}},
		{"two", []float64{3, 1}, Figure{N: 2, Median: 2, P95: 3, IQR: 1}},
		{"odd", []float64{9, 1, 5}, Figure{N: 3, Median: 5, P95: 9, IQR: 4}},
		{"all alike", []float64{4, 4, 4, 4}, Figure{N: 4, Median: 4, P95: 4}},
		{"1 to 5", upTo(5), Figure{N: 5, Median: 3, P95: 5, IQR: 2}},
		{"1 to 20", upTo(20), Figure{N: 20, Median: 10.5, P95: 19, IQR: 9.5}},
		{"1 to 21", upTo(21), Figure{N: 21, Median: 11, P95: 20, IQR: 10}},
		{"1 to 100", upTo(100), Figure{N: 100, Median: 50.5, P95: 95, P99: 99, IQR: 49.5, Wide: true}},
		{"wide, but of little weight", []float64{1, 1, 10, 10}, Figure{N: 4, Median: 5.5, P95: 10, IQR: 9}},
		{"just not wide", []float64{100, 115, 130, 85, 70}, Figure{N: 5, Median: 100, P95: 130, IQR: 30}},
		{"just wide", []float64{100, 116, 130, 85, 70}, Figure{N: 5, Median: 100, P95: 130, IQR: 31, Wide: true}},
		{"negative", []float64{-1, -3}, Figure{N: 2, Median: -2, P95: -1, IQR: 1}},
	} {
		if diff := cmp.Diff(row.want, figureOf(row.samples), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
	}
}

func TestDoubts(t *testing.T) {
	many := func(n int, way, wanted string) []Turn {
		var list []Turn
		for range n {
			list = append(list, Turn{Way: way, Wanted: wanted})
		}
		return list
	}
	for _, row := range []struct {
		name   string
		report Report
		says   []string // what each doubt begins with
	}{
		{"none", Report{Cores: 2, LoadStart: 1, LoadEnd: 2, Turns: many(20, Cold, Cold)}, nil},
		{"nothing measured", Report{Cores: 2}, nil},
		{"busy at the start", Report{Cores: 2, LoadStart: 2.2, LoadEnd: 1, Turns: many(20, Cold, Cold)}, []string{"The load average at the start was 1.1 a core"}},
		{"busy at the end", Report{Cores: 1, LoadStart: 0, LoadEnd: 5, Turns: many(20, Cold, Cold)}, []string{"The load average at the end was 5.0 a core"}},
		{"load not known", Report{Cores: 2, LoadStart: -1, LoadEnd: -1, Turns: many(20, Cold, Cold)}, nil},
		{"too few for p95", Report{Cores: 2, Turns: many(19, Pooled, Pooled)}, []string{"pooled: n = 19 is too few for p95"}},
		{"too few at all", Report{Cores: 2, Turns: many(9, Continued, Continued)}, []string{"continued: n = 9 is too few for a median"}},
		{
			"missed",
			Report{Cores: 2, Turns: append(many(20, Pooled, Pooled), many(2, Cold, Pooled)...)},
			[]string{"pooled: turns that are left out, since they went another way: 2"},
		},
		{
			"not seen of all",
			Report{Cores: 2, Turns: append(many(19, Cold, Cold), Turn{Way: Cold, Wanted: Cold, CLI: time.Second})},
			[]string{"cold: figures of some of the turns only (*), the others did not show them: 1."},
		},
		{"spread", Report{Cores: 2, Turns: spread()}, []string{"cold: figures that spread wide"}},
	} {
		got := row.report.Doubts()
		if len(got) != len(row.says) {
			t.Errorf("%s: got %q, want %d of them", row.name, got, len(row.says))
			continue
		}
		for i, says := range row.says {
			if !strings.HasPrefix(got[i], says) {
				t.Errorf("%s: %q does not begin with %q", row.name, got[i], says)
			}
		}
	}
}

// spread are turns of which half took a tenth of the other half's time.
func spread() []Turn {
	base := time.Unix(0, 0)
	var list []Turn
	for i := range 20 {
		took := 100 * time.Millisecond
		if i%2 == 0 {
			took *= 10
		}
		list = append(list, Turn{Way: Cold, Wanted: Cold, Request: base, Admitted: base.Add(took)})
	}
	return list
}

// sample is a report of 20 turns each way, a little apart, in whole milliseconds.
func sample(upstream string) *Report {
	r := &Report{CLI: "2.1.332", Upstream: upstream, Cores: 2, LoadStart: 0.4, LoadEnd: 0.9}
	for run := 1; run <= 20; run++ {
		for _, way := range ways {
			r.Turns = append(r.Turns, sampleTurn(run, way, upstream))
		}
	}
	return r
}

func sampleTurn(run int, way, upstream string) Turn {
	base := time.Unix(1000*int64(run), 0)
	after := func(ms int) time.Time { return base.Add(time.Duration(ms) * time.Millisecond) }
	taken, asked := 215+run, 600+2*run
	switch way {
	case Pooled:
		taken, asked = 3, 400+run
	case Continued:
		taken, asked = 40, 110+run
	}
	t := Turn{
		Run: run, Way: way, Wanted: way,
		Request: base, Admitted: after(1), Spawned: after(2), Given: after(2), Taken: after(taken), Ready: after(asked - 100),
		First: after(asked + 420), Done: after(asked + 1540), Stopped: after(asked + 1430), Ended: after(asked + 1539),
		CLI: time.Duration(1500+run) * time.Millisecond, SessionRSS: 240 << 20, OwnRSS: 30 << 20,
	}
	if way != Cold {
		t.Spawned = after(-20_000)
	}
	if way == Continued {
		t.Ready = time.Time{}
	}
	d := Delta{Received: after(asked + 419), Written: after(asked + 420), Client: after(asked + 420)}
	if upstream == "scripted" {
		t.Submitted, t.Line, t.Last, t.RequestBytes = after(asked), after(asked+400), after(asked+1400), 1000+run
		d.Line = t.Line
	}
	t.Deltas = []Delta{d}
	return t
}

// busy is a short run on a loaded machine, in which a turn found no session waiting.
func busy() *Report {
	r := sample("scripted")
	r.LoadStart, r.LoadEnd, r.Turns = 5.5, -1, r.Turns[:12]
	r.Turns[1].Way = Cold
	r.Turns[0].CLI = 0
	for i := range r.Turns {
		if i%2 == 0 {
			r.Turns[i].Done = r.Turns[i].Done.Add(3 * time.Second)
		}
	}
	return r
}

func TestGolden(t *testing.T) {
	for name, report := range map[string]*Report{"scripted": sample("scripted"), "real": sample("real"), "busy": busy()} {
		for kind, write := range map[string]func(io.Writer) error{"txt": report.WriteTable, "jsonl": report.WriteJSON, "svg": report.WriteSVG} {
			t.Run(name+"."+kind, func(t *testing.T) {
				var got bytes.Buffer
				if err := write(&got); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join("testdata", name+"."+kind)
				if *update {
					if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got.String()); diff != "" {
					t.Errorf("%s differs (-update writes it anew):\n%s", path, diff)
				}
			})
		}
	}
}

// TestFormsAreSound checks what a golden file would let pass: a table that is too wide,
// lines that are no JSON, a picture that is no XML.
func TestFormsAreSound(t *testing.T) {
	for _, report := range []*Report{sample("scripted"), sample("real"), busy(), {}} {
		var table, lines, picture bytes.Buffer
		if err := errors.Join(report.WriteTable(&table), report.WriteJSON(&lines), report.WriteSVG(&picture)); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(table.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
		for line := range bytes.Lines(lines.Bytes()) {
			if !json.Valid(line) {
				t.Errorf("no JSON: %s", line)
			}
		}
		for decoder := xml.NewDecoder(&picture); ; {
			_, err := decoder.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("no XML: %v", err)
			}
		}
	}
}

// TestSharesAddUp checks that what a turn is said to consist of is the whole of it.
func TestSharesAddUp(t *testing.T) {
	for _, way := range ways {
		for _, upstream := range []string{"scripted", "real"} {
			turn := sampleTurn(3, way, upstream)
			whole, _ := between(turn.Request, turn.Done)
			if got := sum(lengths([]Turn{turn})); got != whole {
				t.Errorf("%s, %s: the segments come to %v of %v ms", way, upstream, got, whole)
			}
		}
		turn := sampleTurn(3, way, "scripted")
		all, _ := overhead(turn)
		cli, _ := alone(turn)
		ocp, _ := ours(turn)
		hook, _ := between(turn.Line, turn.Deltas[0].Received)
		if all != cli+ocp+hook {
			t.Errorf("%s: %v ms are not the CLI's %v, ocp's %v and the first line's %v", way, all, cli, ocp, hook)
		}
	}
}
