package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"ocp/internal/server"
	"ocp/internal/store"
)

// usageCommand shows what was used. A serve of the same state directory may run.
type usageCommand struct {
	stateFlag
	Days int    `env:"-" default:"30" help:"How many days to look back, today included. Days are of UTC."`
	By   string `env:"-" default:"key" enum:"key,model,day,dialect" help:"What to add up by: key, model, day or dialect."`
	JSON bool   `name:"json" env:"-" help:"JSON instead of a table."`
}

// usageReport is the JSON of the command.
type usageReport struct {
	Since string      `json:"since"` // the first day
	Until string      `json:"until"` // the last one
	By    string      `json:"by"`
	Lines []usageLine `json:"lines"`
	Total usageLine   `json:"total"`
}

// usageLine is the sum of some turns.
type usageLine struct {
	Name          string           `json:"name"` // the key, model, day or dialect
	Turns         int64            `json:"turns"`
	Outcomes      map[string]int64 `json:"outcomes"`
	Input         int64            `json:"input_tokens"` // without cached ones
	Output        int64            `json:"output_tokens"`
	CacheRead     int64            `json:"cache_read_tokens"`
	CacheCreation int64            `json:"cache_creation_tokens"`
	Estimated     int64            `json:"estimated_turns"` // whose tokens are an estimate
}

func (l *usageLine) add(t store.Turns) {
	if l.Outcomes == nil {
		l.Outcomes = map[string]int64{}
	}
	l.Outcomes[t.Outcome] += t.Count
	l.Turns += t.Count
	l.Input += t.Input
	l.Output += t.Output
	l.CacheRead += t.CacheRead
	l.CacheCreation += t.CacheCreation
	l.Estimated += t.Estimated
}

// maxDays is far beyond what is kept.
const maxDays = 100_000

func (c *usageCommand) Run(ctx context.Context, p program) error {
	if c.Days < 1 || c.Days > maxDays {
		return fmt.Errorf("--days: %d is not between 1 and %d", c.Days, maxDays)
	}
	now := time.Now().UTC()
	since := store.Day(now.AddDate(0, 0, 1-c.Days))
	turns, err := readStore(ctx, c.StateDir, p.env, func(s *store.Store, ctx context.Context) ([]store.Turns, error) {
		return s.Usage(ctx, since)
	})
	if err != nil {
		return err
	}
	report := addUp(turns, c.By)
	report.Since, report.Until = since, store.Day(now)
	if c.JSON {
		encoder := json.NewEncoder(p.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	if len(turns) == 0 {
		fmt.Fprintf(p.stderr, "Nothing was used since %s.\n", since)
		return nil
	}
	return report.write(p.stdout)
}

// addUp makes a line for each key, model, day or dialect, in their order, and the total.
func addUp(turns []store.Turns, by string) usageReport {
	report := usageReport{By: by, Lines: []usageLine{}, Total: usageLine{Name: "total", Outcomes: map[string]int64{}}}
	lines := map[string]*usageLine{}
	for _, t := range turns {
		name := map[string]string{"key": t.Key, "model": t.Model, "day": t.Day, "dialect": t.Dialect}[by]
		if lines[name] == nil {
			lines[name] = &usageLine{Name: name}
		}
		lines[name].add(t)
		report.Total.add(t)
	}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		report.Lines = append(report.Lines, *lines[name])
	}
	return report
}

func (r usageReport) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\tTURNS\tOK\tLIMITED\tFAILED\tINPUT\tCACHE READ\tCACHE WRITE\tOUTPUT\t\n", strings.ToUpper(r.By))
	for _, l := range append(r.Lines, r.Total) {
		ok, limited := l.Outcomes["ok"], l.Outcomes[server.Limited]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", printable(cmp.Or(l.Name, "-")),
			l.Turns, ok, limited, l.Turns-ok-limited, l.Input, l.CacheRead, l.CacheCreation, l.Output)
	}
	err := w.Flush()
	if r.Total.Estimated > 0 {
		_, failed := fmt.Fprintf(out, "\nTurns that ended before their answer did, whose tokens are estimates: %d\n", r.Total.Estimated)
		err = errors.Join(err, failed)
	}
	return err
}

// printable is a name as a terminal may show it: clients make up names of models.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, name)
}
