package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"ocp/internal/claude"
	"ocp/internal/probe"
)

// probeAt is how many experiments run at once, each with a session or two.
const probeAt = 3

// probeCommand proves on the CLI that is there what OCP stands on.
type probeCommand struct {
	Claude   []string `placeholder:"PATH" help:"A claude binary to probe; several are shown side by side. Default: the one on PATH, or ~/.local/bin/claude."`
	Only     []string `placeholder:"ID" help:"Only these checks."`
	JSON     bool     `name:"json" xor:"form" help:"Print JSON."`
	Markdown bool     `xor:"form" help:"Print what docs/contract.md holds."`
	Live     bool     `help:"Probe with your own account, which it costs one short turn for each CLI, what can be seen of a streamed answer."`
	Model    string   `default:"claude-sonnet-4-6" help:"The model to ask for with --live."`
	List     bool     `help:"List the checks and run none."`
}

// Run prints what was found. A check that OCP relies on and that fails is an error.
func (c *probeCommand) Run(ctx context.Context, p program) error {
	if c.List {
		return listClaims(p.stdout)
	}
	for _, id := range c.Only {
		if !slices.ContainsFunc(probe.Claims(), func(claim probe.Claim) bool { return claim.ID == id }) {
			return fmt.Errorf("--only: there is no check %q; 'ocp probe --list' lists them", id)
		}
	}
	paths := c.Claude
	if len(paths) == 0 {
		paths = []string{""}
	}
	var columns []probe.Column
	for _, path := range paths {
		column, err := c.probe(ctx, p, path)
		if err != nil {
			return err
		}
		columns = append(columns, column)
	}
	write := probe.WriteTable
	switch {
	case c.JSON:
		write = probe.WriteJSON
	case c.Markdown:
		write = probe.WriteMarkdown
	}
	if err := write(p.stdout, columns); err != nil {
		return err
	}
	if n := probe.Broken(columns); n > 0 {
		return fmt.Errorf("%d checks failed that ocp relies on", n)
	}
	return nil
}

// probe probes one CLI.
func (c *probeCommand) probe(ctx context.Context, p program, named string) (column probe.Column, err error) {
	path, err := claude.Find(named, p.env)
	if err != nil {
		return column, err
	}
	version, err := claude.Version(ctx, path)
	if err != nil {
		return column, err
	}
	self, err := os.Executable()
	if err != nil {
		return column, fmt.Errorf("find ocp's own binary: %w", err)
	}
	dir, err := os.MkdirTemp("", "ocp-probe-")
	if err != nil {
		return column, fmt.Errorf("make a folder for the probes: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	progress := func(done, total int, name string) {
		fmt.Fprintf(p.stderr, "ocp: probing %s: %d of %d experiments done (%s)\n", version, done, total, name)
	}
	env := &probe.Env{CLI: path, Name: version, Self: []string{self}, Path: claude.Variable(p.env, "PATH"), Dir: dir}
	if c.Live {
		env.Real, env.Model = p.env, c.Model
		fmt.Fprintf(p.stderr, "ocp: this spends %d short turn of %s on your own account. Ctrl-C ends it.\n", probe.LiveTurns, c.Model)
	}
	findings, err := probe.Run(ctx, env, probe.Options{Live: c.Live, Only: c.Only, At: probeAt, Progress: progress})
	return probe.Column{CLI: version, Findings: findings}, err
}

func listClaims(w io.Writer) error {
	for _, c := range probe.Claims() {
		if _, err := fmt.Fprintf(w, "%-20s %s\n", c.ID, c.Text); err != nil {
			return err
		}
	}
	return nil
}
