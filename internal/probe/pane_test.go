package probe

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// drawn is what 2.1.332 draws of both sources, below its banner.
const drawn = ` ▐▛███▜▌   Claude Code v2.1.332
▝▜█████▛▘  Sonnet 4.6 · API Usage Billing

❯ Say some lines.

● Heading

  Some bold text, slanted.

  x := 1

  - one
  - two

  The end
`

// The stand-in draws nothing, so the screens are given.
func TestEachScreenFailsItsCheck(t *testing.T) {
	source := drawn[:strings.Index(drawn, "● ")] + "● " + twoSources[0] + "\n"
	for _, tt := range []struct {
		name    string
		screens [2]string
		fails   []string
	}{
		{"as they are", [2]string{drawn, drawn}, nil},
		{"no banner", [2]string{strings.Replace(drawn, " · ", " ", 1), drawn}, []string{"banner"}},
		{"the source", [2]string{source, source}, []string{"pane-lossy"}},
		{"a language", [2]string{drawn, strings.Replace(drawn, "  x := 1", "  python\n  x := 1", 1)}, []string{"pane-ambiguous"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := judgePane(tt.screens)
			var fails []string
			for _, id := range []string{"banner", "pane-lossy", "pane-ambiguous"} {
				if found[id].status == Fail {
					fails = append(fails, id)
				}
			}
			if diff := cmp.Diff(tt.fails, fails); diff != "" {
				t.Errorf("-want +failed:\n%s", diff)
			}
		})
	}
}
