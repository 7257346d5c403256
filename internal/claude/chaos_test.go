package claude

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ocp/internal/claude/claudetest"
	"ocp/internal/hook"
	"ocp/internal/turn"
)

// chaosSeed is what the faults are drawn from; OCP_CHAOS_SEED overrides it.
const chaosSeed = 20261130

// TestChaos runs many turns at once whose hooks, records and processes misbehave at
// random. Every turn is exact or fails with a type that fits; no text ends up in another
// turn's; and in the end all is as in the beginning. OCP_SOAK=1 makes it long.
func TestChaos(t *testing.T) {
	turns, parallel := 300, 16
	if os.Getenv("OCP_SOAK") == "1" {
		turns, parallel = 10_000, 32
	}
	seed := uint64(chaosSeed)
	if given := os.Getenv("OCP_CHAOS_SEED"); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d turns, %d at once, seed %d", turns, parallel, seed)

	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	ignoreOthers := goleak.IgnoreCurrent()
	inputs := t.TempDir()
	l := standinLauncher(t, func(o *Options) { o.QuietBound = time.Second })
	c := &chaos{launcher: l, seed: seed, inputs: inputs, outcomes: map[string]int{}}

	atOnce(parallel, parallel, func(i int) { c.turn(t, -1-i) }) // what is made once, and kept
	before := inventory(t)
	atOnce(turns, parallel, func(i int) { c.turn(t, i) })
	after := inventory(t)

	for _, outcome := range slices.Sorted(maps.Keys(c.outcomes)) {
		t.Logf("%6d %s", c.outcomes[outcome], outcome)
	}
	t.Logf("before %+v, after %+v", before, after)
	if after.descriptors > before.descriptors || after.goroutines > before.goroutines {
		t.Errorf("before %+v, after %+v", before, after)
	}
	const bound = 32 << 20
	if grown := after.heap - before.heap; grown > bound {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	if keys, err := filepath.Glob(filepath.Join(inputs, "*")); err != nil || len(keys) > 0 {
		t.Errorf("%d sessions were sent keys, %v", len(keys), err)
	}
	for _, secret := range c.secrets {
		if err := hook.Forward(t.Context(), l.hooks.Socket(), secret, strings.NewReader("{}"), io.Discard); err == nil || !strings.Contains(err.Error(), "403") {
			t.Fatalf("a closed session's secret is still known: %v", err)
		}
	}
	closeLauncher(t, l)
	if left, err := filepath.Glob(filepath.Join(temp, "*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %q, %v", left, err)
	}
	goleak.VerifyNone(t, ignoreOthers)
}

// atOnce calls do for 0 to n-1, so many at a time.
func atOnce(n, parallel int, do func(i int)) {
	next := make(chan int)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
}

// stock is what this process holds.
type stock struct{ goroutines, descriptors, heap int }

// inventory counts it, once what is about to go has gone: the ends of connections that
// the dead have left take a moment, and nothing announces them.
func inventory(t *testing.T) stock {
	t.Helper()
	count := func() stock {
		descriptors, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return stock{runtime.NumGoroutine(), len(descriptors), int(memory.HeapAlloc)}
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	last := count()
	for still := 0; still < 10; {
		<-tick.C
		now := count()
		if now.goroutines == last.goroutines && now.descriptors == last.descriptors {
			still++
		} else {
			still = 0
		}
		last = now
	}
	return last
}

type chaos struct {
	launcher *Launcher
	seed     uint64
	inputs   string // folder: a file for each session that got keys

	mu       sync.Mutex
	outcomes map[string]int // guarded by mu
	secrets  []string       // of some sessions; guarded by mu
}

// turn runs the turn of that number and judges it.
func (c *chaos) turn(t *testing.T, number int) {
	random := rand.New(rand.NewPCG(c.seed, uint64(number)))
	name := fmt.Sprintf("«%d-%08x»", number, random.Uint32())
	p := draw(random)
	p.script.Input = filepath.Join(c.inputs, fmt.Sprint(number))
	s, err := startTurn(c.launcher, question(p.script, name))
	if err != nil {
		t.Errorf("turn %d: %v", number, err)
		return
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	seen := 0
	r := receive(ctx, t, s, func(turn.Event) {
		if seen++; seen == p.leaves {
			leave()
		}
	})
	if err := s.Close(); err != nil {
		t.Errorf("turn %d: close: %v", number, err)
	}
	if wrong := p.judge(r, name); wrong != "" {
		t.Errorf("turn %d (%s): %s\ngot %q, error %v\nscript %+v", number, p.fault, wrong, r.text, r.err, p.script.Steps)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	outcome := "exact"
	if r.err != nil {
		outcome = "failed: " + string(r.err.Kind)
	}
	c.outcomes[outcome]++
	c.outcomes["fault: "+p.fault]++
	if number%20 == 0 {
		c.secrets = append(c.secrets, s.route.Secret)
	}
}

// plan is what a session of the chaos does and what may come of it.
type plan struct {
	fault  string
	script claudetest.Script
	text   string // the exact answer, with {prompt} in it

	exact  bool        // it may end well
	kinds  []turn.Kind // it may fail with one of these
	loose  bool        // what was sent need not be a beginning of text
	leaves int         // the client leaves at its event of that number, if not 0
}

var names = regexp.MustCompile(`«[^»]*»`)

// judge returns what is wrong with a result, or nothing.
func (p plan) judge(r result, name string) string {
	want := strings.ReplaceAll(p.text, "{prompt}", name)
	for _, found := range names.FindAllString(r.text, -1) {
		if found != name {
			return "MIXED: text of " + found
		}
	}
	switch {
	case (r.finished == nil) == (r.err == nil):
		return "neither ended nor failed"
	case r.finished != nil && !p.exact:
		return "it ended well"
	case r.finished != nil && r.text != want:
		return fmt.Sprintf("not exact, want %q", want)
	case r.finished != nil && (r.finished.Stats.InputDiffs != 0 || r.finished.Stats.TextBytes != len(want)):
		return fmt.Sprintf("wrong figures: %+v", r.finished.Stats)
	case r.err != nil && !slices.Contains(p.kinds, r.err.Kind):
		return "the kind of error does not fit"
	case !p.loose && !strings.HasPrefix(want, r.text):
		return fmt.Sprintf("what was sent is no beginning of %q", want)
	}
	return ""
}

// draw makes a plan. Most sessions answer, with whatever happens to their hook calls and
// records; the others do something worse as well.
func draw(random *rand.Rand) plan {
	a := drawAnswer(random)
	p := plan{fault: "none but hooks and records", text: a.text(), exact: true, loose: a.mixed}
	if a.mixed {
		p.kinds = []turn.Kind{turn.Diverged, turn.Unverified}
	}
	boot, end := claudetest.Boot(), a.steps(random)
	cut := random.IntN(len(end) + 1)
	middle := slices.Clone(end[:cut])
	instead := func(fault string, kinds []turn.Kind, steps ...[]claudetest.Step) {
		p.fault, p.kinds = fault, append(p.kinds, kinds...)
		p.script.Steps = slices.Concat(steps...)
		p.exact = false
	}
	one := func(do claudetest.Action) []claudetest.Step { return []claudetest.Step{{Do: do, N: 1}} }
	dead := []turn.Kind{turn.SessionFailed}
	switch random.IntN(100) {
	case 0, 1:
		instead("exit in the boot", dead, boot[:random.IntN(len(boot))], one(claudetest.Exit))
	case 2, 3, 4:
		instead("exit in the answer", dead, boot, middle, one(claudetest.Exit))
		p.exact = true // if it was near enough to the end
	case 5, 6, 7:
		instead("killed in the answer", dead, boot, middle, one(claudetest.Kill))
		p.exact = true
	case 8:
		instead("dialog", []turn.Kind{turn.SessionFailed, turn.Authentication}, boot[:1],
			[]claudetest.Step{{Do: claudetest.Dialog, Text: []string{claudetest.Trust207, claudetest.Trust332, claudetest.Theme332, claudetest.Login}[random.IntN(4)]}})
	case 9:
		instead("limit menu", []turn.Kind{turn.RateLimited}, boot,
			[]claudetest.Step{{Do: claudetest.Dialog, Text: []string{claudetest.LimitStop, claudetest.LimitUpgrade}[random.IntN(2)]}})
	case 10:
		instead("another transcript", []turn.Kind{turn.Unverified}, boot, one(claudetest.Stray), end, []claudetest.Step{a.stop()})
	case 11, 12, 13, 14, 15:
		words := []string{"rate_limit", "server_error", "authentication_failed", "unknown"}
		instead("error of the upstream", []turn.Kind{turn.RateLimited, turn.Upstream, turn.Authentication}, boot, a.calls[:random.IntN(len(a.calls)+1)],
			[]claudetest.Step{
				{Do: claudetest.StopFailure, Reason: words[random.IntN(4)], Text: "API Error «banner»"},
				{Do: claudetest.BannerRecord, Reason: words[random.IntN(4)], Text: "API Error «banner»", After: pause(random, 100)},
			})
	case 16, 17, 18:
		instead("hang, deaf, with a child", []turn.Kind{turn.Canceled}, one(claudetest.Deaf), one(claudetest.Fork), boot)
		p.leaves = 1
	case 19, 20, 21, 22, 23:
		instead("the client leaves", []turn.Kind{turn.Canceled}, boot, end)
		p.exact, p.leaves = true, 1+random.IntN(3)
	case 24, 25:
		p.fault = "flood"
		p.script.Steps = slices.Concat(boot, middle, []claudetest.Step{{Do: claudetest.Flood, N: 256 << 10}}, end[cut:])
	default:
		p.script.Steps = slices.Concat(boot, end)
	}
	return p
}

// pause draws a duration of at most so many milliseconds.
func pause(random *rand.Rand, most int) time.Duration {
	return time.Duration(random.IntN(most+1)) * time.Millisecond
}

// answer is what a session has to say, in one or two messages.
type answer struct {
	messages []claudetest.Step // a record each
	joint    string
	calls    []claudetest.Step // the hook calls, as they are made
	mixed    bool              // calls of two messages may be lost, or arrive mixed
}

func drawAnswer(random *rand.Rand) answer {
	var a answer
	n := 1
	if random.IntN(5) == 0 {
		n = 2
		a.joint = []string{"", "\n\n"}[random.IntN(2)]
	}
	for i := range n {
		message := strconv.Itoa(i)
		deltas := make([]string, 1+random.IntN(6))
		for j := range deltas {
			deltas[j] = fmt.Sprintf("{prompt} %d.%d é👩‍👧\t\n", i, j)
		}
		record := claudetest.Record(message, strings.Join(deltas, ""))
		if i < n-1 {
			record.Reason = map[string]string{"": "max_tokens", "\n\n": "tool_use"}[a.joint]
		}
		a.messages = append(a.messages, record)
		a.calls = append(a.calls, misdeliver(random, claudetest.Deltas(message, deltas...), &a.mixed)...)
	}
	a.mixed = a.mixed && n > 1
	return a
}

// misdeliver loses, doubles, shuffles and delays a message's hook calls, or not.
func misdeliver(random *rand.Rand, calls []claudetest.Step, mixed *bool) []claudetest.Step {
	var made []claudetest.Step
	loss, doubling := random.IntN(4) == 0, random.IntN(4) == 0
	for _, call := range calls {
		if loss && random.IntN(4) == 0 {
			*mixed = true
			continue
		}
		made = append(made, call)
		if doubling && random.IntN(3) == 0 {
			made = append(made, call)
		}
	}
	if random.IntN(3) == 0 {
		random.Shuffle(len(made), func(i, j int) { made[i], made[j] = made[j], made[i] })
	}
	if random.IntN(3) == 0 {
		*mixed = true
		for i := range made {
			made[i].Async, made[i].After = true, pause(random, 150)
		}
	}
	if random.IntN(10) == 0 { // a call that is none of the session's
		made = append(made, claudetest.Step{Do: claudetest.Display, Message: "stray", Text: "«stray»", Session: newID()})
	}
	return made
}

func (a answer) text() string {
	texts := make([]string, len(a.messages))
	for i, m := range a.messages {
		texts[i] = m.Text
	}
	return strings.Join(texts, a.joint)
}

func (a answer) stop() claudetest.Step {
	return claudetest.Step{Do: claudetest.Stop, Text: a.messages[len(a.messages)-1].Text}
}

// steps are the turn behind the boot: hook calls, Stop and records, each of which may
// be missing where something else says the same.
func (a answer) steps(random *rand.Rand) []claudetest.Step {
	var steps []claudetest.Step
	if random.IntN(2) == 0 {
		steps = append(steps, claudetest.Step{Do: claudetest.RequestRecords})
	}
	steps = append(steps, a.calls...)
	if random.IntN(20) > 0 {
		at := len(steps)
		if random.IntN(5) == 0 {
			at = random.IntN(at + 1) // before some of the deltas
		}
		steps = slices.Insert(steps, at, a.stop())
	}
	steps = append(steps, claudetest.Step{Do: claudetest.Wait, After: pause(random, 250)})
	for i, record := range a.messages {
		if i > 0 && a.joint == "" {
			steps = append(steps, claudetest.Step{Do: claudetest.MetaRecord, Text: "go on"})
		}
		if random.IntN(5) == 0 {
			record.Halves = pause(random, 100)
		}
		if random.IntN(5) == 0 {
			steps = append(steps, claudetest.Step{Do: claudetest.ThinkingRecord, Message: record.Message, Text: "«thinking»", Reason: record.Reason})
		}
		steps = append(steps, record)
	}
	if random.IntN(10) > 0 {
		steps = append(steps, claudetest.End()...)
	}
	return steps
}
