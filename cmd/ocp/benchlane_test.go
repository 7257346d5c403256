package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTurnDurations checks that each turn gets its own record's measure: in a session of
// one turn, in one that went on, and where the session was ended before the record.
func TestTurnDurations(t *testing.T) {
	dir := t.TempDir()
	user := func(run string) string {
		return `{"type":"user","message":{"role":"user","content":[{"type":"text","text":"Turn ` + run + `: write the numbers."}]}}` + "\n"
	}
	const (
		said     = `{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"1\n"}]}}` + "\n"
		reminder = `{"type":"user","isMeta":true,"message":{"role":"user","content":"Turn 99: not a prompt"}}` + "\n"
		took     = `{"type":"system","subtype":"turn_duration","durationMs":`
	)
	for name, text := range map[string]string{
		"a.jsonl":   user("1") + said + took + "1500}\n",
		"b.jsonl":   user("2") + said + user("3") + reminder + said + took + "1300}\n" + user("4") + said + took + "1400}\n",
		"c.jsonl":   user("5") + said + took, // cut off
		"other.txt": user("6") + took + "1}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := turnDurations(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]time.Duration{1: 1500 * time.Millisecond, 3: 1300 * time.Millisecond, 4: 1400 * time.Millisecond}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the durations differ (-want +got):\n%s", diff)
	}
}
