package probe

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Column is what was found on one CLI.
type Column struct {
	CLI      string // its version
	Findings []Finding
}

// Broken is how many findings of all columns say that OCP cannot work as it should.
func Broken(columns []Column) int {
	n := 0
	for _, c := range columns {
		for _, f := range c.Findings {
			if f.Broken() {
				n++
			}
		}
	}
	return n
}

// rows calls f for each claim with what each column has of it.
func rows(columns []Column, f func(row []Finding)) {
	if len(columns) == 0 {
		return
	}
	for i := range columns[0].Findings {
		row := make([]Finding, len(columns))
		for j, c := range columns {
			row[j] = c.Findings[i]
		}
		f(row)
	}
}

// WriteTable writes the findings for people.
func WriteTable(w io.Writer, columns []Column) error {
	var b strings.Builder
	width := 0
	rows(columns, func(row []Finding) { width = max(width, len(row[0].ID)) })
	rows(columns, func(row []Finding) {
		fmt.Fprintf(&b, "%-*s  %s\n", width, row[0].ID, row[0].Claim)
		for i, f := range row {
			mark := strings.ToUpper(string(f.Status))
			if f.Status == OK || f.Status == Skip {
				mark = string(f.Status)
			}
			if f.Alive() {
				mark = "ALIVE"
			}
			fmt.Fprintf(&b, "%*s  %-5s %-9s %s\n", width, "", mark, columns[i].CLI, f.Evidence)
			if f.Remedy != "" {
				fmt.Fprintf(&b, "%*s  → %s\n", width+6, "", f.Remedy)
			}
		}
	})
	b.WriteByte('\n')
	for _, c := range columns {
		fmt.Fprintf(&b, "%s: %s\n", c.CLI, count(c.Findings))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func count(findings []Finding) string {
	n := map[Status]int{}
	broken, alive := 0, 0
	for _, f := range findings {
		n[f.Status]++
		if f.Broken() {
			broken++
		}
		if f.Alive() {
			alive++
		}
	}
	text := fmt.Sprintf("%d ok, %d warnings, %d skipped, %d failed that ocp relies on", n[OK], n[Warn], n[Skip], broken)
	if alive > 0 {
		text += fmt.Sprintf("; %d DEAD ENDS ARE ALIVE", alive)
	}
	return text
}

// WriteJSON writes one object: the findings by CLI.
func WriteJSON(w io.Writer, columns []Column) error {
	type finding struct {
		ID       string `json:"id"`
		Claim    string `json:"claim"`
		Status   Status `json:"status"`
		Evidence string `json:"evidence"`
		Remedy   string `json:"remedy,omitempty"`
		Relied   bool   `json:"relied"`
		DeadEnd  bool   `json:"dead_end"`
		Use      string `json:"use"`
	}
	type column struct {
		CLI      string    `json:"cli"`
		Findings []finding `json:"findings"`
	}
	list := []column{}
	for _, c := range columns {
		out := column{CLI: c.CLI, Findings: []finding{}}
		for _, f := range c.Findings {
			out.Findings = append(out.Findings, finding{f.ID, f.Claim, f.Status, f.Evidence, f.Remedy, f.Relied, f.DeadEnd, f.Use})
		}
		list = append(list, out)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(map[string]any{"clis": list})
}
