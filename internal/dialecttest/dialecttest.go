// Package dialecttest is what the tests of both dialects share: golden files, the tables
// of docs/api.md, and a turn to encode. For tests only.
package dialecttest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/turn"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Golden compares with a file of the test's testdata.
func Golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-update writes it anew):\n%s", path, diff)
	}
}

// Row is a row of a table in docs/api.md, its cells without the marks of code.
type Row struct {
	Name, Example, Handling string // the first three cells
	Cells                   []string
}

// Table returns the rows of the table in docs/api.md whose first column has the heading
// given, in the section given. The test's package is two folders below the root.
func Table(t *testing.T, section, heading string) (rows []Row) {
	t.Helper()
	doc, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(doc), "\n"+section+"\n")
	_, rest, found := strings.Cut(rest, "\n| "+heading+" |")
	if !ok || !found {
		t.Fatalf("docs/api.md has no table %s in %s", heading, section)
	}
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			if rows != nil {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		if len(cells) >= 3 && !strings.HasPrefix(cells[0], "---") {
			rows = append(rows, Row{cells[0], cells[1], cells[2], cells})
		}
	}
	if len(rows) == 0 {
		t.Fatalf("the table %s in %s is empty", heading, section)
	}
	return rows
}

// Finished is the end of a turn with usage as in field report 26.
func Finished() turn.Finished {
	return turn.Finished{
		Model:      "claude-opus-4-6",
		StopReason: turn.EndTurn,
		Usage:      turn.Usage{Input: 3, CacheRead: 1000, CacheCreation: 50, Output: 7},
	}
}

// ThreeDeltas is a turn whose text holds what encoders get wrong.
func ThreeDeltas() []turn.Event {
	return []turn.Event{
		turn.Started{},
		turn.Delta{Text: "# Hi\n"},
		turn.Delta{Text: "a <b> & \"c\" \\ \t\x00\u2028 é😀\n"},
		turn.Delta{Text: "done"},
		Finished(),
	}
}
