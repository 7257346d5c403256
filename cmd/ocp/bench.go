package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"ocp/internal/bench"
	"ocp/internal/claude"
	"ocp/internal/config"
	"ocp/internal/messagesapi"
)

const (
	// benchLines are the lines of a scripted answer, benchPace the time between two. It
	// is longer than the 100 ms between two hook calls of the CLI, so that each line is
	// a delta of its own and waits for no other.
	benchLines = 8
	benchPace  = 130 * time.Millisecond
	// benchPrompt is plain enough for a session that goes on to take it by its input box.
	benchPrompt = "Turn %d: write the numbers from 1 to 8, each on a line of its own, and nothing else."
)

// warmUps is how many turns a way has at most before it is measured, until one has gone it:
// they bring the CLI's files into memory, show the pool what is asked for, and begin the
// conversation that goes on.
const warmUps = 3

// benchCommand measures turns of a whole proxy from a client's side, and takes the
// stages between from the proxy's own trace and the scripted model's log.
type benchCommand struct {
	N         int    `default:"20" help:"How many turns to measure each way."`
	JSON      bool   `name:"json" help:"One line of JSON a turn and one of figures at the end, instead of a table."`
	Cold      bool   `help:"Measure turns whose session is started for them."`
	Pooled    bool   `help:"Measure turns whose session was started ahead."`
	Continued bool   `help:"Measure turns of a conversation that goes on in its session. Default: all ways."`
	Upstream  string `default:"scripted" enum:"scripted,real" help:"Who answers: scripted, a model inside ocp; or real, your own account, which it costs."`
	Claude    string `placeholder:"PATH" help:"The claude binary. Default: the one on PATH, or ~/.local/bin/claude."`
	Model     string `default:"claude-sonnet-4-6" help:"The model to ask for."`
	Terminal  string `default:"pty" enum:"pty,tmux" help:"What sessions run under, as with serve."`
	SVG       string `name:"svg" placeholder:"FILE" help:"Also draw the stages into this file."`
	LogLevel  string `default:"warn" enum:"debug,info,warn,error" help:"The least severe log lines shown: debug, info, warn or error."`
}

// benchWay is a way to measure, and what of the settings makes turns go it.
type benchWay struct {
	name     string
	settings func(*config.Serve)
	ready    func(*proxy) bool // whether a turn may begin; nil for always
}

var benchWays = []benchWay{
	{name: bench.Cold, settings: func(c *config.Serve) {}},
	{
		name: bench.Pooled, settings: func(c *config.Serve) { c.Pool = 1 },
		ready: func(p *proxy) bool { return p.backend.pool.Stats().Primed > 0 },
	},
	{name: bench.Continued, settings: func(c *config.Serve) { c.Keep = 1 }},
}

// ways are those asked for; all if none is.
func (c *benchCommand) ways() []benchWay {
	wanted := map[string]bool{bench.Cold: c.Cold, bench.Pooled: c.Pooled, bench.Continued: c.Continued}
	all := !c.Cold && !c.Pooled && !c.Continued
	return slices.DeleteFunc(slices.Clone(benchWays), func(way benchWay) bool { return !all && !wanted[way.name] })
}

// Run measures, and reports what it has measured even if a turn fails.
func (c *benchCommand) Run(ctx context.Context, p program) error {
	if c.N < 1 {
		return fmt.Errorf("--n: %d is not a number of turns", c.N)
	}
	ways := c.ways()
	settings, err := complete(config.Serve{
		Listen: "127.0.0.1:0", Claude: c.Claude, StateDir: "-", // each lane has its own
		Concurrency: 1, Queue: 1, Effort: "low", TurnTimeout: demoTimeout, StartTimeout: demoTimeout,
		KeepAlive: 15 * time.Second, HookTransport: "http", Terminal: c.Terminal, KeepFor: time.Hour,
		KeepTranscripts: true, // they hold the CLI's own turn_duration
	}, p.env)
	if err != nil {
		return err
	}
	cli, err := claude.Version(ctx, settings.Claude)
	if err != nil {
		return err
	}
	env, model, err := c.upstream(p)
	if err != nil {
		return err
	}
	if model != nil {
		defer model.Close()
	}
	c.announce(p.stderr, len(ways))
	report := &bench.Report{CLI: cli, Upstream: c.Upstream, Cores: runtime.NumCPU(), LoadStart: loadAverage()}
	lanes, err := c.open(p, ways, settings, cli, env, model)
	if err == nil {
		err = c.measure(ctx, lanes, report)
	}
	report.LoadEnd = loadAverage()
	for _, lane := range lanes {
		err = errors.Join(err, lane.close(report.Turns))
	}
	return errors.Join(err, c.write(p.stdout, report))
}

// upstream starts the scripted model, if it is to answer, and returns the environment of
// the sessions.
func (c *benchCommand) upstream(p program) ([]string, *messagesapi.Server, error) {
	if c.Upstream == "real" {
		return p.env, nil, nil
	}
	var lines strings.Builder
	for n := range benchLines {
		fmt.Fprintf(&lines, "%d. A line of the answer, about as long as lines are, nothing more.\n", n+1)
	}
	model, err := messagesapi.Start(messagesapi.Options{Script: messagesapi.Always(messagesapi.Answer{
		Parts: []messagesapi.Part{messagesapi.Text(lines.String())},
		Pace:  messagesapi.Pace{First: benchPace, Between: benchPace},
	})})
	if err != nil {
		return nil, nil, fmt.Errorf("start the scripted model: %w", err)
	}
	return scriptedEnv(p, model.URL()), model, nil
}

// announce says before anything is spent what will be.
func (c *benchCommand) announce(w io.Writer, ways int) {
	turns := ways * c.N
	if c.Upstream == "real" {
		fmt.Fprintf(w, "ocp: this spends up to %d short turns of %s on your own account, %d of them measured. Ctrl-C ends it.\n",
			turns+ways*warmUps, c.Model, turns)
		return
	}
	fmt.Fprintf(w, "ocp: measuring %d turns of a scripted model; no account is used.\n", turns)
}

// open starts a proxy for each way, so that they can take turns within one run and the
// machine's noise hits all alike.
func (c *benchCommand) open(p program, ways []benchWay, settings config.Serve, cli string, env []string, model *messagesapi.Server) ([]*benchLane, error) {
	var lanes []*benchLane
	for _, way := range ways {
		lane, err := openLane(p, way, settings, cli, env, c.LogLevel)
		if err != nil {
			return lanes, err
		}
		lane.model, lane.ask = model, c.Model
		lanes = append(lanes, lane)
	}
	return lanes, nil
}

// measure takes one turn of each way after the other, N times.
func (c *benchCommand) measure(ctx context.Context, lanes []*benchLane, report *bench.Report) error {
	for _, lane := range lanes {
		if err := lane.warmUp(ctx); err != nil {
			return fmt.Errorf("a first %s turn failed: %w", lane.way.name, err)
		}
	}
	for run := range c.N {
		for _, lane := range lanes {
			turn, err := lane.turn(ctx, run+1)
			if err != nil {
				return fmt.Errorf("%s turn %d failed: %w", lane.way.name, run+1, err)
			}
			report.Turns = append(report.Turns, turn)
		}
	}
	return nil
}

// write writes what was measured, if anything was.
func (c *benchCommand) write(w io.Writer, report *bench.Report) error {
	if len(report.Turns) == 0 {
		return nil
	}
	write := report.WriteTable
	if c.JSON {
		write = report.WriteJSON
	}
	if err := write(w); err != nil || c.SVG == "" {
		return err
	}
	file, err := os.Create(c.SVG)
	if err != nil {
		return fmt.Errorf("--svg: %w", err)
	}
	return errors.Join(report.WriteSVG(file), file.Close())
}
