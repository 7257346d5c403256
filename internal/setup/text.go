package setup

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Key is a setting as a settings file shows it.
type Key struct {
	Name    string
	Help    string
	Default string // as TOML; empty if there is none to show
}

// commentWidth is how wide the comments of a settings file are.
const commentWidth = 88

// template is a settings file in which every setting is shown and none is set.
func template(keys []Key) []byte {
	var b strings.Builder
	b.WriteString("# Settings of `ocp serve`. A flag goes before its OCP_ variable, that before this file.\n" +
		"# Take the # off a line to change it, then: ocp doctor, and start the service again.\n")
	for _, key := range keys {
		b.WriteString("\n")
		for line := range strings.Lines(ansi.Wordwrap(key.Help, commentWidth-2, "")) {
			fmt.Fprintf(&b, "# %s\n", strings.TrimRight(line, "\n "))
		}
		fmt.Fprintf(&b, "#%s = %s\n", key.Name, key.Default)
	}
	return []byte(b.String())
}
