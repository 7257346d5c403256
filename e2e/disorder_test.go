package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ocp/internal/hook"
	"ocp/internal/messagesapi"
)

// disorder is one way in which hook calls go astray, and what the log of the turns must
// show to prove that they did.
type disorder struct {
	name   string
	tamper func() tamper
	turns  int
	proof  []string // counters of which the turns' sum must not be zero
}

var disorders = []disorder{
	{name: "shuffled", tamper: shuffled, turns: 6, proof: []string{"reordered"}},
	{name: "doubled", tamper: doubled, turns: 6, proof: []string{"duplicates", "reordered"}},
	{name: "behind Stop", tamper: behindStop, turns: 6, proof: []string{"reordered"}},
	{name: "one lost", tamper: oneLost, turns: 8, proof: []string{"topped_up"}},
	{name: "many lost", tamper: manyLost, turns: 6, proof: []string{"topped_up"}},
	{name: "Stop lost", tamper: losing(isStop), turns: 3},
	{name: "all lost but Stop", tamper: losing(isDelta), turns: 3, proof: []string{"topped_up"}},
	{name: "all lost", tamper: losing(func(c hookCall) bool { return isDelta(c) || isStop(c) }), turns: 4, proof: []string{"topped_up"}},
}

// Whatever becomes of the hook calls on their way, the answer is exact.
func TestDisorder(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		for _, d := range disorders {
			t.Run(d.name, func(t *testing.T) { d.run(t, c, "http", false) })
		}
	})
}

func TestDisorderOfCommandHooks(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		for _, d := range disorders {
			switch d.name {
			case "shuffled", "one lost", "all lost":
				d.turns /= 2
				t.Run(d.name, func(t *testing.T) { d.run(t, c, "command", false) })
			}
		}
	})
}

func TestDisorderOnBusyCores(t *testing.T) {
	onEachCLIAlone(t, func(t *testing.T, c cli) {
		d := disorders[0]
		d.turns = 4
		d.run(t, c, "http", true)
	})
}

// A session whose hooks reach nobody at all, SessionStart included, still answers.
func TestHooksReachNobody(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{ahead: true, script: answerVaried()})
		p.rewriteSettings(t, func(h *hookEntry, event string) {
			h.Command, h.URL = "exit 1", strings.Replace(h.URL, "/hook", "/nothing-there", 1)
		})
		p.askVaried(t, 3, 3, "none")
	})
}

// With both cores loaded, hook calls overlap and records come late by themselves: no
// answer is refused for that, and none is wrong. OCP_SOAK=1 makes it 200 turns.
func TestBusyCores(t *testing.T) {
	turns := 8
	if os.Getenv("OCP_SOAK") != "" {
		turns = 200
	}
	onOneCLIAtATime(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{args: []string{"--concurrency", "4"}, script: answerVaried()})
		keepCoresBusy(t)
		p.askVaried(t, turns, 4, "busy cores")
		p.log.waitFor(t, turns, "msg=turn ")
		t.Logf("%d turns; deltas %d, reordered %d, duplicates %d, topped up %d bytes",
			turns, p.logged("deltas"), p.logged("reordered"), p.logged("duplicates"), p.logged("topped_up"))
	})
}

// If a later message's deltas overtake an earlier one's, or the earlier one's are lost,
// only the transcript can tell. Then the answer is exact or ends in an error; it never
// ends as if the text were whole.
func TestMessagesOvertakeEachOther(t *testing.T) {
	for name, tamper := range map[string]func() tamper{"overtaken": firstMessageLate, "lost": firstMessageLost} {
		t.Run(name, func(t *testing.T) {
			onEachCLI(t, func(t *testing.T, c cli) {
				begun, rest := "Only this much, ", "and\nthis\nis\nthe rest.\n"
				p := startProxy(t, c, proxyOptions{script: messagesapi.ByRequest(func(r messagesapi.Request) messagesapi.Answer {
					if len(r.Messages) > 1 { // no model answers sooner
						return messagesapi.Answer{Parts: []messagesapi.Part{messagesapi.Text(rest)}, Pace: messagesapi.Pace{First: 300 * time.Millisecond}}
					}
					return messagesapi.Answer{Parts: []messagesapi.Part{messagesapi.Text(begun)}, StopReason: "max_tokens"}
				})})
				startRelay(t, p, tamper)
				for _, streamed := range []bool{true, false} {
					x, err := p.ask(withPatience(t), streamed, "go")
					if err != nil {
						t.Fatal(err)
					}
					if err := x.exact(begun + rest); err == nil {
						t.Logf("stream=%v: exact", streamed)
					} else if x.code != "diverged" || x.finish != "" || x.done {
						t.Errorf("stream=%v: %v", streamed, err)
					} else {
						t.Logf("stream=%v: ended in an error", streamed)
					}
				}
			})
		})
	}
}

// run has the turns, with both cores busy if loaded.
func (d disorder) run(t *testing.T, c cli, transport string, loaded bool) {
	p := startProxy(t, c, proxyOptions{
		ahead: true,
		args:  []string{"--hook-transport", transport, "--concurrency", "3"},
		state: shortStateDir(t), script: answerVaried(),
	})
	r := startRelay(t, p, d.tamper)
	if loaded {
		keepCoresBusy(t)
	}
	p.askVaried(t, d.turns, 3, d.name)
	p.log.waitFor(t, d.turns, "msg=turn ")
	for _, counter := range d.proof {
		if p.logged(counter) == 0 {
			t.Errorf("%s: no turn's log line counts any: the hook calls went straight", counter)
		}
	}
	t.Logf("%d calls came, %d were delivered; deltas %d, reordered %d, duplicates %d, topped up %d bytes",
		r.came.Load(), r.delivered.Load(), p.logged("deltas"), p.logged("reordered"), p.logged("duplicates"), p.logged("topped_up"))
}

// answerVaried says to "turn N": an answer of the N-th kind.
func answerVaried() messagesapi.Script {
	return messagesapi.ByRequest(func(r messagesapi.Request) messagesapi.Answer {
		n := -1
		for _, b := range r.Messages[0].Content { // the CLI may put a reminder before the prompt
			if _, err := fmt.Sscanf(b.Text, "turn %d", &n); err == nil {
				break
			}
		}
		return variedAnswer(n, len(r.Messages) > 1) // asked to continue what was cut
	})
}

// variedAnswer takes its time, so that there are several deltas. Its lines are all
// different: a lost, doubled or misplaced one shows.
func variedAnswer(n int, continued bool) messagesapi.Answer {
	var lines strings.Builder
	from, to := 0, 28
	pace := messagesapi.Pace{Between: 15 * time.Millisecond}
	if continued {
		from, to = 28, 40
		pace.First = 300 * time.Millisecond // no model answers sooner
	}
	for i := from; i < to; i++ {
		fmt.Fprintf(&lines, "turn %d, line %d.\n%s", n, i, strings.Repeat("\n", i%3))
	}
	text := messagesapi.Text(lines.String())
	a := messagesapi.Answer{Parts: []messagesapi.Part{text}, Pace: pace}
	switch n % 4 {
	case 1: // a last line without a line feed
		a.Parts = []messagesapi.Part{messagesapi.Text(text.Text + "the end")}
	case 2: // blocks, and thinking between them
		a.Parts = []messagesapi.Part{messagesapi.Thinking("hm", "c2ln"), text, messagesapi.Thinking("so", "c2ln"), messagesapi.Text("Another block.\nIts end.")}
	case 3: // two messages, one answer
		if !continued {
			a.StopReason = "max_tokens"
		}
	}
	return a
}

func variedText(n int) string {
	text := variedAnswer(n, false).Text()
	if n%4 == 3 {
		text += variedAnswer(n, true).Text()
	}
	return text
}

// askVaried has n turns, so many at once, half of them streamed, and checks each answer.
func (p *proxy) askVaried(t *testing.T, n, atOnce int, what string) {
	inParallel(n, atOnce, func(i int) {
		x, err := p.ask(withPatience(t), i%8 < 4, fmt.Sprintf("turn %d", i))
		if err == nil {
			err = x.exact(variedText(i))
		}
		if err != nil {
			t.Errorf("%s, turn %d: %v", what, i, err)
		}
	})
}

// logged is the sum of a counter over the log lines of all turns.
func (p *proxy) logged(counter string) int {
	field := regexp.MustCompile(` ` + counter + `=(\d+)`)
	sum := 0
	for line := range strings.SplitSeq(p.log.text(), "\n") {
		if found := field.FindStringSubmatch(line); found != nil && strings.Contains(line, "msg=turn ") {
			n, _ := strconv.Atoi(found[1])
			sum += n
		}
	}
	return sum
}

// shortStateDir is a state directory in which a Unix socket's path is short enough.
func shortStateDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "ocp-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// keepCoresBusy takes twice as many processes as there are cores until the test ends.
func keepCoresBusy(t *testing.T) {
	for range 2 * runtime.NumCPU() {
		busy := exec.Command("sh", "-c", "while :; do :; done")
		busy.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = busy.Process.Kill()
			_ = busy.Wait()
		})
	}
}

// tamper decides what becomes of a session's hook calls: it is given each as it comes
// and returns those to be delivered now, in this order. It has no clock: what it holds
// back it gives out when later calls come.
type tamper func(rng *rand.Rand, c hookCall) []hookCall

func isDelta(c hookCall) bool { return c.event.Name == hook.MessageDisplay }
func isStop(c hookCall) bool  { return c.event.Name == hook.Stop || c.event.Name == hook.StopFailure }

// shuffled holds up to four calls and gives them out in another order, Stop among them.
// What is held of one message is given out before the next one's: a call does not take
// longer than a model to answer again. TestMessagesOvertakeEachOther has them overtake.
func shuffled() tamper {
	var held []hookCall
	stopped, room := false, 2
	return func(rng *rand.Rand, c hookCall) []hookCall {
		var now []hookCall
		if n := len(held); n > 0 && isDelta(c) && isDelta(held[n-1]) && c.event.MessageID != held[n-1].event.MessageID {
			now, held = mixed(rng, held), nil
		}
		held = append(held, c)
		stopped = stopped || isStop(c)
		if stopped || len(held) >= room {
			now = append(now, mixed(rng, held)...)
			held, room = nil, 2+rng.IntN(3)
		}
		return now
	}
}

// mixed returns calls in another order, if there is one.
func mixed(rng *rand.Rand, calls []hookCall) []hookCall {
	order := rng.Perm(len(calls))
	if slices.IsSorted(order) {
		slices.Reverse(order)
	}
	now := make([]hookCall, len(calls))
	for i, from := range order {
		now[i] = calls[from]
	}
	return now
}

// doubled delivers every call twice, the second time somewhere behind the first.
func doubled() tamper {
	mix := shuffled()
	return func(rng *rand.Rand, c hookCall) []hookCall {
		return append(mix(rng, c), mix(rng, c)...)
	}
}

// behindStop holds all deltas until Stop was delivered; then they come in any order.
func behindStop() tamper {
	var held []hookCall
	stopped := false
	return func(rng *rand.Rand, c hookCall) []hookCall {
		switch {
		case isDelta(c) && !stopped:
			held = append(held, c)
			return nil
		case isStop(c):
			stopped = true
			rng.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
			return append([]hookCall{c}, held...)
		}
		return []hookCall{c}
	}
}

// oneLost loses one delta of each message: the first, one in the middle, or the last.
func oneLost() tamper {
	which := -1
	return func(rng *rand.Rand, c hookCall) []hookCall {
		if which < 0 {
			which = rng.IntN(5)
		}
		if isDelta(c) && (c.event.Index == which || which == 4 && c.event.Final) {
			return nil
		}
		return []hookCall{c}
	}
}

// manyLost loses about half of the deltas and shuffles the rest.
func manyLost() tamper {
	mix := shuffled()
	return func(rng *rand.Rand, c hookCall) []hookCall {
		if isDelta(c) && rng.IntN(2) == 0 {
			return nil
		}
		return mix(rng, c)
	}
}

// firstMessageLate delivers the first message's deltas behind the second's first.
func firstMessageLate() tamper {
	first := ""
	var held []hookCall
	return func(_ *rand.Rand, c hookCall) []hookCall {
		if isDelta(c) && (first == "" || c.event.MessageID == first) {
			first = c.event.MessageID
			held = append(held, c)
			return nil
		}
		now := append([]hookCall{c}, held...)
		held = nil
		return now
	}
}

// firstMessageLost loses all of the first message's deltas.
func firstMessageLost() tamper {
	first := ""
	return func(_ *rand.Rand, c hookCall) []hookCall {
		if isDelta(c) && (first == "" || c.event.MessageID == first) {
			first = c.event.MessageID
			return nil
		}
		return []hookCall{c}
	}
}

// losing loses what is named.
func losing(lost func(hookCall) bool) func() tamper {
	return func() tamper {
		return func(_ *rand.Rand, c hookCall) []hookCall {
			if lost(c) {
				return nil
			}
			return []hookCall{c}
		}
	}
}
