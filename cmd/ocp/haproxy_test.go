package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"ocp/internal/claude/claudetest"
)

// TestHAProxy runs three nodes behind the documented HAProxy, and looks at what clients see
// of a reload, a node that is killed under load, and one that is drained.
func TestHAProxy(t *testing.T) {
	c := startCluster(t)
	t.Run("share", c.share)
	t.Run("reload", c.reload)
	t.Run("client goes", c.clientGoes)
	t.Run("stick", c.stick)
	t.Run("kill", c.kill)
	t.Run("drain", c.drain)
}

// running waits until each node runs so many turns.
func (c *cluster) running(t *testing.T, want ...int) {
	t.Helper()
	var got []int
	if !eventually(t, func() bool {
		got = nil
		for _, n := range c.nodes[:len(want)] {
			got = append(got, n.status().Sessions.Running)
		}
		return fmt.Sprint(got) == fmt.Sprint(want)
	}) {
		t.Fatalf("the nodes run %v turns, want %v", got, want)
	}
}

// onEach begins a request on each node: the next goes to the one that has the least.
func (c *cluster) onEach(t *testing.T, from int, q manner, already int) (talks []*talk) {
	t.Helper()
	for i := range c.nodes {
		talks = append(talks, c.ask(from+i, paths[i%len(paths)], q))
		if !eventually(t, func() bool { return c.turns(running) == already*len(c.nodes)+i+1 }) {
			t.Fatalf("%d turns run", c.turns(running))
		}
	}
	c.running(t, already+1, already+1, already+1)
	return talks
}

// share has each node run a turn, whose first text comes while the rest is not there.
func (c *cluster) share(t *testing.T) {
	talks := c.onEach(t, 100, manner{}, 0)
	for _, k := range talks {
		<-k.got
	}
	for i, k := range talks {
		k.finish(t, fmt.Sprintf("stream %d", i))
	}
	c.ask(110, paths[0], manner{whole: true, early: true}).finish(t, "not streamed")
	c.running(t, 0, 0, 0)

	// Without a key there is the node's own refusal, and every node is ready for HAProxy.
	res, err := c.clients[0].Get(c.url + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a key: status %d", res.StatusCode)
	}
}

// reload has HAProxy read its configuration anew while an answer is on its way.
func (c *cluster) reload(t *testing.T) {
	streams := []*talk{c.ask(200, paths[0], manner{}), c.ask(201, paths[2], manner{})}
	for _, k := range streams {
		<-k.got
	}
	if err := c.haproxy.cmd.Process.Signal(syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	c.haproxy.said(`Loading success`, 2)
	c.ask(202, paths[0], manner{early: true}).finish(t, "behind the reload")
	for _, k := range streams {
		k.finish(t, "over the reload")
	}
	c.running(t, 0, 0, 0)
}

// clientGoes has clients go before and behind the first byte: their turns end.
func (c *cluster) clientGoes(t *testing.T) {
	for i, stream := range []bool{true, false} {
		for _, client := range c.clients {
			ctx, cancel := context.WithCancel(t.Context())
			model := c.model(answerThrough(newGate(t), "", "never\n"))
			end := make(chan outcome, 1)
			go func() {
				end <- c.answer(client, c.request(paths[i], model, stream).WithContext(ctx), stream, nil)
			}()
			eventually(t, func() bool { return c.turns(running) == 1 })
			cancel()
			if o := <-end; o.err == nil {
				t.Errorf("got %+v", o)
			}
			c.running(t, 0, 0, 0)
		}
	}
	if n := c.turns(canceled); n != 4 {
		t.Errorf("%d turns were canceled, want 4", n)
	}
}

// turns sums up what all nodes say.
func (c *cluster) turns(of func(state) int) (n int) {
	for _, node := range c.nodes {
		n += of(node.status())
	}
	return n
}

func running(s state) int  { return s.Sessions.Running }
func canceled(s state) int { return s.Turns["canceled"] }

// stick has a conversation that is named go where it was answered, though others have less
// to do.
func (c *cluster) stick(t *testing.T) {
	c.ask(250, paths[0], manner{early: true, conversation: "one"}).finish(t, "that a conversation begins with")
	c.running(t, 0, 0, 0)
	var talks []*talk
	for i := range 3 {
		talks = append(talks, c.ask(251+i, paths[i], manner{early: true, conversation: "one"}))
		if !eventually(t, func() bool { return c.turns(running) == i+1 }) {
			t.Fatal("it does not run")
		}
	}
	most := 0
	for _, n := range c.nodes {
		most = max(most, n.status().Sessions.Running)
	}
	if most != len(talks) {
		t.Errorf("%d of %d turns of a conversation run on one node", most, len(talks))
	}
	for _, k := range talks {
		k.finish(t, "of a conversation")
	}
	c.running(t, 0, 0, 0)
}

// kill kills a node while it has answers on their way, some before their first byte and
// some behind it, and others come and go.
func (c *cluster) kill(t *testing.T) {
	early := c.onEach(t, 300, manner{early: true}, 0)
	begun := c.onEach(t, 310, manner{}, 1)
	for _, k := range begun {
		<-k.got
	}
	large := c.onEach(t, 320, manner{early: true, pad: 300_000}, 2) // more than HAProxy keeps
	stop := c.traffic()
	c.nodes[0].die()
	seen := stop()

	for _, k := range early {
		k.finish(t, "before its first byte")
	}
	broken, failed := 0, 0
	for i := range begun {
		if o, over := begun[i].over(); !over {
			begun[i].finish(t, "of another node")
		} else if broken++; o.err == nil || o.whole || !o.begun || !strings.HasPrefix(begun[i].want, o.text) {
			t.Errorf("the stream of the killed node ended with %+v", o)
		}
		if o, over := large[i].over(); !over {
			large[i].finish(t, "large, of another node")
		} else if failed++; o.begun || !strings.Contains(fmt.Sprint(o.err), `status 502: {"type":"error","error":{`) {
			t.Errorf("the large request of the killed node ended with %+v: %v", o, o.err)
		}
	}
	if broken != 1 || failed != 1 {
		t.Errorf("%d streams broke and %d large requests failed, want the one of the killed node", broken, failed)
	}
	if seen.failed > 0 || seen.wrong > 0 || seen.whole == 0 {
		t.Errorf("of the rest %+v: %v", seen, seen.errs)
	}
	t.Logf("of the rest %d whole, %d broken", seen.whole, seen.broken)
}

// drain ends a node by SIGTERM while it has answers on their way: none is lost.
func (c *cluster) drain(t *testing.T) {
	if !eventually(t, func() bool { return c.turns(running) == 0 }) {
		t.Fatalf("%d turns run", c.turns(running))
	}
	var talks []*talk
	for i := range 8 { // on the two that are left
		talks = append(talks, c.ask(400+i, paths[i%3], manner{early: i%2 == 0}))
		if !eventually(t, func() bool { return c.turns(running) == i+1 }) {
			t.Fatalf("%d turns run", c.turns(running))
		}
	}
	ending := c.nodes[1]
	if n := ending.status().Sessions.Running; n != 4 {
		t.Errorf("%d turns run on the node, want 4", n)
	}
	stop := c.traffic()
	if err := ending.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ending.said("msg=.draining", 1)
	if code, body := ending.ask("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(string(body), "shutting down") {
		t.Errorf("readyz: %d %s", code, body)
	}
	if seen := stop(); seen.failed > 0 || seen.wrong > 0 || seen.broken > 0 || seen.whole == 0 {
		t.Errorf("of the rest %+v: %v", seen, seen.errs)
	}
	for _, k := range talks {
		k.finish(t, "over the end of a node")
	}
	if code := ending.end(0); code != 0 {
		t.Errorf("exit code %d", code)
	}
	c.ask(410, paths[0], manner{early: true}).finish(t, "of the last node")
}

// tally is what clients saw of quick answers that come and go.
type tally struct {
	whole  int
	broken int // begun, and known to be not whole
	failed int // not begun
	wrong  int // other text than asked for, or an end that is no end
	errs   []error
}

// traffic is clients that ask one question after the other, until stop is called and then
// twice more.
func (c *cluster) traffic() (stop func() tally) {
	const clients = 3
	var (
		mu       sync.Mutex
		s        tally
		all      sync.WaitGroup
		stopped  = make(chan struct{})
		answered = make(chan struct{}, clients)
	)
	for i := range clients {
		all.Go(func() {
			for n, more := 0, 2; more > 0; n++ {
				select {
				case <-stopped:
					more--
				default:
				}
				stream, path := n%2 == 0, paths[n%3]
				want := fmt.Sprintf("quick %d %d\n", i, n)
				o := c.answer(c.clients[i%2], c.request(path, c.model(claudetest.Answer(want)), stream), stream, nil)
				mu.Lock()
				switch {
				case o.whole && o.text == want:
					s.whole++
				case o.err == nil || !strings.HasPrefix(want, o.text):
					s.wrong++
				case o.begun:
					s.broken++
				default:
					s.failed++
					s.errs = append(s.errs, o.err)
				}
				mu.Unlock()
				if n == 0 {
					answered <- struct{}{}
				}
			}
		})
	}
	for range clients {
		<-answered
	}
	return func() tally {
		close(stopped)
		all.Wait()
		return s
	}
}
