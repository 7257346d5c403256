package probe

import "testing"

func TestParseMemInfo(t *testing.T) {
	for text, want := range map[string]int64{
		"MemTotal:  100 kB\nMemAvailable:    12 kB\n": 12 << 10,
		"MemTotal:  100 kB\n":                         -1,
		"":                                            -1,
	} {
		if got := parseMemInfo(text); got != want {
			t.Errorf("%q: got %d", text, got)
		}
	}
	if availableMemory() <= 0 {
		t.Error("no memory is available")
	}
}
