package transcript

import (
	"strings"
	"testing"
	"unicode/utf16"
)

// The long names are those that 2.1.207 and 2.1.332 made.
func TestProjectDir(t *testing.T) {
	d, x := strings.Repeat("d", 150), strings.Repeat("x", 178)
	tests := map[string]string{
		"/tmp/x/run.é_1/43f01f99/cwd":      "-tmp-x-run---1-43f01f99-cwd",
		"/home/a b/C:9":                    "-home-a-b-C-9",
		"/tmp/e\u0301":                     "-tmp-e-",
		"/tmp/😀":                           "-tmp---",
		"/":                                "-",
		"/tmp/trx/run/8510963a/" + x:       "-tmp-trx-run-8510963a-" + x,
		"/tmp/trx/run/a2716f44/" + x + "x": "-tmp-trx-run-a2716f44-" + x + "-vzgfng",
		"/tmp/trx/run/d5f69aa4/" + x + "x": "-tmp-trx-run-d5f69aa4-" + x + "-5c65np",
		"/tmp/trx/run/a9b227a3/" + d + "/é😀" + strings.Repeat("e", 60): "-tmp-trx-run-a9b227a3-" + d + "----" +
			strings.Repeat("e", 24) + "-csqemr",
	}
	for cwd, name := range tests {
		if got, want := ProjectDir("/c", cwd), "/c/projects/"+name; got != want {
			t.Errorf("ProjectDir(%q) =\n%s, want\n%s", cwd, got, want)
		}
	}
}

func TestHashName(t *testing.T) {
	tests := map[string]string{
		"":                   "0",
		"a":                  "2p",
		"polygenelubricants": "zik0zk", // the least int32
		"\u00e9\U0001f600":   "16sr0",
	}
	for name, want := range tests {
		if got := hashName(utf16.Encode([]rune(name))); got != want {
			t.Errorf("hashName(%q) = %s, want %s", name, got, want)
		}
	}
}
