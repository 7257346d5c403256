package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Turns are turns that have all of Line in common.
type Turns struct {
	Line
	Count         int64
	Input, Output int64 // tokens, Input without cached ones
	CacheRead     int64
	CacheCreation int64
	Estimated     int64 // of Count, those whose tokens nobody upstream has counted
}

// Line is what usage is told apart by.
type Line struct {
	Day     string // of UTC, on which the turns began, as 2006-01-02
	Key     string // the name of the client's key; empty if it has none
	Model   string // as requested
	Dialect string
	Outcome string // ok, or what went wrong
}

// Day is the Day of a Line.
func Day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func (t *Turns) add(more Turns) {
	t.Count += more.Count
	t.Input += more.Input
	t.Output += more.Output
	t.CacheRead += more.CacheRead
	t.CacheCreation += more.CacheCreation
	t.Estimated += more.Estimated
}

// AddTurns adds to what is there: all of it, or nothing if there is an error.
func (s *Store) AddTurns(ctx context.Context, turns []Turns) error {
	err := s.change(ctx, func(tx *sql.Tx) error {
		for _, t := range turns {
			if _, err := tx.ExecContext(ctx, `INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
				turns = turns + excluded.turns, input = input + excluded.input, output = output + excluded.output,
				cache_read = cache_read + excluded.cache_read, cache_creation = cache_creation + excluded.cache_creation,
				estimated = estimated + excluded.estimated`,
				t.Day, t.Key, t.Model, t.Dialect, t.Outcome,
				t.Count, t.Input, t.Output, t.CacheRead, t.CacheCreation, t.Estimated); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write usage: %w", err)
	}
	return nil
}

// Usage returns all turns of a day and those after it, in the order of Line.
func (s *Store) Usage(ctx context.Context, since string) ([]Turns, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT day, key, model, dialect, outcome, turns, input, output, cache_read, cache_creation, estimated
		FROM usage WHERE day >= ? ORDER BY day, key, model, dialect, outcome`, since)
	if err != nil {
		return nil, fmt.Errorf("read usage in %s: %w", s.path, err)
	}
	defer rows.Close()
	var all []Turns
	for rows.Next() {
		var t Turns
		if err := rows.Scan(&t.Day, &t.Key, &t.Model, &t.Dialect, &t.Outcome,
			&t.Count, &t.Input, &t.Output, &t.CacheRead, &t.CacheCreation, &t.Estimated); err != nil {
			return nil, fmt.Errorf("read usage in %s: %w", s.path, err)
		}
		all = append(all, t)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read usage in %s: %w", s.path, err)
	}
	return all, nil
}

// Prune removes the turns of the days before one.
func (s *Store) Prune(ctx context.Context, before string) error {
	if _, err := s.db.ExecContext(ctx, "DELETE FROM usage WHERE day < ?", before); err != nil {
		return fmt.Errorf("remove old usage: %w", err)
	}
	return nil
}
