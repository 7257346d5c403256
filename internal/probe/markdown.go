package probe

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes docs/contract.md.
func WriteMarkdown(w io.Writer, columns []Column) error {
	var b strings.Builder
	versions := make([]string, len(columns))
	for i, c := range columns {
		versions[i] = c.CLI
	}
	fmt.Fprintf(&b, "# What OCP stands on\n\nMade by `make contract` on Claude Code %s. `ocp probe` proves all of it on\n", strings.Join(versions, " and "))
	b.WriteString("the version that you have, before a scripted model: no account, no tokens. Figures are\nthose of one machine.\n")
	for _, part := range []struct {
		title, intro string
		in           func(Finding) bool
	}{
		{"What is relied on", "If one of these fails, do not use that version.", func(f Finding) bool { return f.Relied }},
		{"What is good to know", "", func(f Finding) bool { return !f.Relied && !f.DeadEnd }},
		{"Dead ends", "Other ways to the text while it is being written, and that none of them leads there.\n`ok` says that the way is closed.", func(f Finding) bool { return f.DeadEnd }},
	} {
		fmt.Fprintf(&b, "\n## %s\n", part.title)
		if part.intro != "" {
			fmt.Fprintf(&b, "\n%s\n", part.intro)
		}
		rows(columns, func(row []Finding) {
			if !part.in(row[0]) {
				return
			}
			fmt.Fprintf(&b, "\n### %s\n\n%s.\nOCP: %s.\n\n", row[0].ID, capital(row[0].Claim), row[0].Use)
			for i, f := range row {
				fmt.Fprintf(&b, "- %s **%s**: %s\n", columns[i].CLI, f.Status, strings.ReplaceAll(f.Evidence, "\n", " "))
			}
		})
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
