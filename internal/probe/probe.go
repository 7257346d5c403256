package probe

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Env is what a probe may use.
type Env struct {
	CLI  string   // path of the claude binary
	Name string   // its version
	Self []string // the command line of ocp itself, of which `hook` and `editor` are run
	Path string   // PATH of the sessions
	Dir  string   // an empty folder; each probe makes one of its own in it

	// Model is asked for in each session; empty for claude-sonnet-4-6.
	Model string

	// Real, if set, is the operator's own environment, whose account is then used in place
	// of the scripted model: see Options.Live.
	Real []string

	quiet, gate time.Duration // for tests: claude.Options.QuietBound, and gateBound
}

// model is the model to ask for.
func (e *Env) model() string {
	if e.Model != "" {
		return e.Model
	}
	return "claude-sonnet-4-6"
}

// Claim is what a probe can prove.
type Claim struct {
	ID   string // stable
	Text string // what should hold
	// Use is what OCP does about it. If OCP relies on the claim, a CLI that does not hold
	// it is not to be used; otherwise the claim only explains something.
	Use    string
	Relied bool
	// DeadEnd says that the claim is that some other way does not lead to the text while
	// it is being written. It would be good news if it failed.
	DeadEnd bool
}

// Finding is a claim and what was found of it.
type Finding struct {
	Check
	Use     string
	Relied  bool
	DeadEnd bool
}

// Broken reports whether the finding says that OCP cannot work as it should.
func (f Finding) Broken() bool { return f.Relied && f.Status == Fail }

// Alive reports whether a way that was held for closed is open.
func (f Finding) Alive() bool { return f.DeadEnd && f.Status == Warn }

// seen is what a probe has found, by the claims' ids.
type seen map[string]verdict

type verdict struct {
	status   Status
	evidence string
}

// say notes whether a claim holds.
func (s seen) say(id string, holds bool, format string, args ...any) {
	status := Fail
	if holds {
		status = OK
	}
	s[id] = verdict{status, fmt.Sprintf(format, args...)}
}

// skip notes that nothing can be said of a claim.
func (s seen) skip(id, format string, args ...any) {
	s[id] = verdict{Skip, fmt.Sprintf(format, args...)}
}

// probe is one experiment, which proves one claim or several. It judges the CLI and not
// OCP: what it sees of a turn are the hook calls, the transcript's records and the model's
// requests themselves.
type probe struct {
	name   string
	claims []Claim
	bound  time.Duration // of the whole experiment; zero for defaultBound
	run    func(ctx context.Context, e *Env, dir string) (seen, error)
}

// defaultBound is many times what an experiment of a few sessions takes: with sixteen
// processes to a core, one of five sessions was seen to take more than a minute.
const defaultBound = 3 * time.Minute

func all() []probe {
	return slices.Concat(
		streamingProbes(), hookProbes(), endProbes(), exactnessProbes(), isolationProbes(), primedProbes(), boxProbes(),
		deadEndProbes(),
	)
}

// Claims are all claims, in the order in which to show them.
func Claims() []Claim {
	var list []Claim
	for _, p := range all() {
		list = append(list, p.claims...)
	}
	return list
}

// Options say what to run.
type Options struct {
	Live     bool     // LiveTurns of the account in Env.Real, and nothing else
	Only     []string // ids of claims; none for all
	At       int      // experiments at once; at least one
	Progress func(done, total int, name string)
}

// Run runs the probes and returns what was found, in the order of Claims. A probe that
// cannot be carried out fails: its claims are not proven. The error is that of ctx.
func Run(ctx context.Context, e *Env, o Options) ([]Finding, error) {
	probes := wanted(o)
	results := make([]seen, len(probes))
	var running sync.WaitGroup
	var mu sync.Mutex
	done := 0 // guarded by mu
	slots := make(chan struct{}, max(1, o.At))
	for i, p := range probes {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			results[i] = p.carryOut(ctx, e)
			mu.Lock()
			defer mu.Unlock()
			done++
			if o.Progress != nil {
				o.Progress(done, len(probes), p.name)
			}
		})
	}
	running.Wait()
	var findings []Finding
	for i, p := range probes {
		for _, c := range p.claims {
			if len(o.Only) == 0 || slices.Contains(o.Only, c.ID) {
				findings = append(findings, c.finding(results[i]))
			}
		}
	}
	return findings, context.Cause(ctx)
}

// wanted are the probes that prove any of the claims.
func wanted(o Options) []probe {
	probes := all()
	if o.Live {
		probes = []probe{liveProbe()}
	}
	return slices.DeleteFunc(probes, func(p probe) bool {
		return len(o.Only) > 0 && !slices.ContainsFunc(p.claims, func(c Claim) bool { return slices.Contains(o.Only, c.ID) })
	})
}

// carryOut runs the experiment in a folder of its own, which is gone afterwards.
func (p probe) carryOut(ctx context.Context, e *Env) seen {
	bound := p.bound
	if bound == 0 {
		bound = defaultBound
	}
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("it took longer than %s", bound))
	defer cancel()
	found, err := p.inFolder(ctx, e)
	if found == nil {
		found = seen{}
	}
	for _, c := range p.claims {
		if _, ok := found[c.ID]; !ok {
			found[c.ID] = verdict{Fail, fmt.Sprintf("could not be tried: %v", err)}
		}
	}
	return found
}

func (p probe) inFolder(ctx context.Context, e *Env) (found seen, err error) {
	dir := filepath.Join(e.Dir, p.name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	return p.run(ctx, e, dir)
}

func (c Claim) finding(found seen) Finding {
	v := found[c.ID]
	f := Finding{
		Check: Check{ID: c.ID, Claim: c.Text, Status: v.status, Evidence: v.evidence},
		Use:   c.Use, Relied: c.Relied, DeadEnd: c.DeadEnd,
	}
	if v.status == Fail {
		switch {
		case c.DeadEnd:
			f.Status = Warn
			f.Remedy = "good news: this way may be open on this version; tell the project"
		case c.Relied:
			f.Remedy = "use a CLI version that passes: ocp needs this"
		default:
			f.Status = Warn
			f.Remedy = "ocp works without; tell the project"
		}
	}
	return f
}
