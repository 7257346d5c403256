package e2e

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ocp/internal/messagesapi"
)

// benchLine is a line of `ocp bench --json`: a turn, or the summary at the end.
type benchLine struct {
	Run          int
	Way, Wanted  string
	Admitted     *float64 `json:"admitted_ms"`
	Taken        *float64 `json:"taken_ms"`
	Submitted    *float64 `json:"submitted_ms"`
	Line         *float64 `json:"line_ms"`
	First        *float64 `json:"first_ms"`
	Last         *float64 `json:"last_ms"`
	Ended        *float64 `json:"ended_ms"`
	Done         *float64 `json:"done_ms"`
	RequestBytes int      `json:"request_bytes"`
	Deltas       []struct {
		Received *float64 `json:"received_ms"`
		Written  *float64 `json:"written_ms"`
		Client   *float64 `json:"client_ms"`
	}

	Summary bool
	CLI     string `json:"cli_version"`
	Figures map[string]map[string]struct{ N int }
}

// The bench's lines are well formed, and a turn's stages are in the order in which they
// must come, whatever time they took.
func TestBench(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		svg := filepath.Join(t.TempDir(), "bench.svg")
		got := runOcp(t, nil, "bench", "--claude="+c.path, "--n=2", "--json", "--cold", "--svg="+svg)
		if got.code != 0 || !strings.Contains(got.stderr, "no account is used") {
			t.Fatalf("ended with %d: %s", got.code, got.stderr)
		}
		lines := strings.Split(strings.TrimSuffix(got.stdout, "\n"), "\n")
		if len(lines) != 3 {
			t.Fatalf("%d lines, want one a turn and the summary:\n%s", len(lines), got.stdout)
		}
		for i, text := range lines {
			var line benchLine
			decoder := json.NewDecoder(strings.NewReader(text))
			if err := decoder.Decode(&line); err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			if i < 2 {
				line.check(t, i+1)
				continue
			}
			figures := line.Figures["cold"]
			if !line.Summary || line.CLI != c.version || figures["overhead_ms"].N != 2 || figures["tail_ms"].N != 2 {
				t.Errorf("the summary is %s", text)
			}
		}
		checkXML(t, svg)
	})
}

func (l benchLine) check(t *testing.T, run int) {
	t.Helper()
	if l.Run != run || l.Way != "cold" || l.Wanted != "cold" || l.RequestBytes == 0 || len(l.Deltas) == 0 {
		t.Errorf("the line is %+v", l)
	}
	// The model notes a line once it is written, and may be late to: what the CLI makes of
	// it is not compared with that.
	inOrder(t, "of the client", l.Admitted, l.Taken, l.Submitted, l.First, l.Ended, l.Done)
	inOrder(t, "of the model", l.Submitted, l.Line, l.Last, l.Done)
	for _, d := range l.Deltas {
		if d.Received != nil { // the hook brought it, not the transcript
			inOrder(t, "of a delta, for the client", d.Received, d.Client)
			inOrder(t, "of a delta, for ocp", d.Received, d.Written)
		}
	}
}

// inOrder checks that times are all known and do not go back.
func inOrder(t *testing.T, what string, times ...*float64) {
	t.Helper()
	for i, at := range times {
		switch {
		case at == nil:
			t.Errorf("times %s: the %d. is not known", what, i+1)
			return
		case i > 0 && *at < *times[i-1]:
			t.Errorf("times %s: %v ms comes after %v ms", what, *at, *times[i-1])
		}
	}
}

func checkXML(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for decoder := xml.NewDecoder(file); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// Without a way named, turns of all ways take turns.
func TestBenchMeasuresAllWays(t *testing.T) {
	t.Parallel()
	got := runOcp(t, nil, "bench", "--claude="+clis[len(clis)-1].path, "--n=1", "--json")
	if got.code != 0 {
		t.Fatalf("ended with %d: %s", got.code, got.stderr)
	}
	var wanted []string
	for text := range strings.Lines(got.stdout) {
		var line benchLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if line.Summary {
			continue
		}
		wanted = append(wanted, line.Wanted)
		inOrder(t, "of the client", line.Admitted, line.Taken, line.Submitted, line.First, line.Ended, line.Done)
	}
	if got := strings.Join(wanted, " "); got != "cold pooled continued" {
		t.Errorf("the ways measured are %q", got)
	}
}

// With the operator's own account the bench says first what it may spend, keeps to it, and
// does without what only a scripted model tells.
func TestBenchOfTheOperatorsOwnModel(t *testing.T) {
	t.Parallel()
	model, err := messagesapi.Start(messagesapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	env := []string{"ANTHROPIC_BASE_URL=" + model.URL(), "ANTHROPIC_API_KEY=" + apiKey}
	got := runOcp(t, env, "bench", "--claude="+clis[len(clis)-1].path, "--n=1", "--cold", "--json", "--upstream=real", "--model=claude-haiku-4-5")
	if got.code != 0 || !strings.Contains(got.stderr, "spends up to 4 short turns of claude-haiku-4-5 on your own account, 1 of them measured") {
		t.Fatalf("ended with %d: %s", got.code, got.stderr)
	}
	if turns := len(model.Turns()); turns > 4 {
		t.Errorf("%d turns were spent", turns)
	}
	var line benchLine
	if err := json.NewDecoder(strings.NewReader(got.stdout)).Decode(&line); err != nil {
		t.Fatalf("%v in %s", err, got.stdout)
	}
	if line.Submitted != nil || line.Line != nil || line.Last != nil {
		t.Errorf("nobody can have told this: %s", got.stdout)
	}
	inOrder(t, "of the client", line.Admitted, line.Taken, line.First, line.Ended, line.Done)
}

// What cannot be measured is refused before anything is started.
func TestBenchRefuses(t *testing.T) {
	for _, args := range [][]string{{"--n=0"}, {"--upstream=somebody"}} {
		got := runOcp(t, nil, append([]string{"bench", "--claude=" + clis[0].path}, args...)...)
		if got.code == 0 || got.stdout != "" || !strings.Contains(got.stderr, strings.Split(args[0], "=")[0]) {
			t.Errorf("%q ended with %d: %s%s", args, got.code, got.stdout, got.stderr)
		}
	}
}
