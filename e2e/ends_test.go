package e2e

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ocp/internal/messagesapi"
)

// endBound is how long a session may take to end once its PTY is closed. Nothing
// announces it; 6.6 s were seen on a loaded machine (facts, section 14).
const endBound = 15 * time.Second

// byWord answers "hang before" with nothing, "hang inside" with a line and then nothing,
// and all else with a line.
func byWord() messagesapi.Script {
	return messagesapi.ByPrompt(func(prompt string) messagesapi.Answer {
		a := messagesapi.TextAnswer("one line\n")
		switch prompt {
		case "hang before":
			a.Fault = messagesapi.Hang(messagesapi.BeforeHeader())
		case "hang inside":
			a.Fault = messagesapi.Hang(messagesapi.InBlock(0, 1))
		}
		return a
	})
}

// sessionsOf are the CLI processes of a proxy.
func (p *proxy) sessionsOf(c cli) []int {
	var pids []int
	for _, found := range p.processes() {
		if strings.HasPrefix(found.cmdline, c.path+" ") {
			pid, _ := strconv.Atoi(found.pid)
			pids = append(pids, pid)
		}
	}
	return pids
}

func (p *proxy) noSessionIsLeft(t *testing.T, c cli) {
	t.Helper()
	eventually(t, endBound, "no session's process is left", func() bool { return len(p.sessionsOf(c)) == 0 })
}

// answers shows that there is a slot, and a session to be had.
func (p *proxy) answers(t *testing.T) {
	t.Helper()
	x, err := p.ask(withPatience(t), true, "go")
	if err == nil {
		err = x.exact("one line\n")
	}
	if err != nil {
		t.Errorf("the next request: %v", err)
	}
}

// A client that goes takes its turn with it, whenever it goes: the session ends, the
// model is not listened to any more, and the slot is free.
func TestClientGone(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{args: []string{"--concurrency", "1"}, script: byWord()})
		for _, row := range []struct {
			name, prompt string
			streamed     bool
		}{
			{"in mid-stream", "hang inside", true},
			{"before the first delta", "hang before", true},
			{"not streamed, before", "hang before", false},
			{"not streamed, inside", "hang inside", false},
		} {
			t.Run(row.name, func(t *testing.T) {
				p.model.Reset()
				ctx, leave := context.WithCancel(withPatience(t))
				defer leave()
				ended := p.askAside(ctx, row.streamed, row.prompt)
				asked := p.asked(t)
				if row.streamed && row.prompt == "hang inside" {
					<-ended.text
				}
				leave()
				<-ended.done
				if outcome, err := asked.Wait(withPatience(t)); err != nil || outcome != messagesapi.Disconnected {
					t.Errorf("the model's answer: %q, %v", outcome, err)
				}
				p.noSessionIsLeft(t, c)
				p.answers(t)
			})
		}
		t.Run("while its session starts", func(t *testing.T) {
			p.model.Reset()
			ctx, leave := context.WithCancel(withPatience(t))
			defer leave()
			ended := p.askAside(ctx, true, "go")
			eventually(t, patience, "a session runs", func() bool { return len(p.sessionsOf(c)) > 0 })
			leave()
			<-ended.done
			p.noSessionIsLeft(t, c)
			p.answers(t)
		})
	})
}

// aside is an exchange that goes on beside the test.
type aside struct {
	text chan struct{} // closed when the first text came, or none will
	done chan struct{} // closed at the end
	*exchange
	err error
}

func (p *proxy) askAside(ctx context.Context, streamed bool, prompt string) *aside {
	a := &aside{text: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(a.done)
		if a.exchange, a.err = p.open(ctx, streamed, prompt, nil); a.err != nil {
			close(a.text)
			return
		}
		defer a.close()
		for streamed && a.streamed() && a.err == nil && a.exchange.text == "" {
			_, a.err = a.line()
		}
		close(a.text)
		if a.err == nil {
			a.err = a.readAll()
		}
	}()
	return a
}

// asked waits for the model's first request.
func (p *proxy) asked(t *testing.T) *messagesapi.Recorded {
	t.Helper()
	r, err := p.model.WaitTurn(withPatience(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkFailed checks that an exchange ended as a failure must: never as a whole answer.
func (a *aside) checkFailed(t *testing.T, what string, status int, code string) {
	t.Helper()
	<-a.done
	switch {
	case a.err != nil:
		t.Errorf("%s: %v", what, a.err)
	case a.status != status || a.code != code || a.finish != "" || a.exchange.done:
		t.Errorf("%s: status %d, code %q, finish_reason %q; want %d, %q: %s", what, a.status, a.code, a.finish, status, code, a.lastBytes())
	}
}

// SIGTERM tells every client, ends every session and is no failure.
func TestTerminated(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{args: []string{"--concurrency", "3"}, script: byWord()})
		sdk := p.stream(withPatience(t), user("hang inside"))
		if _, more := sdk.next(); !more {
			t.Fatal(sdk.Err())
		}
		streamed := p.askAside(withPatience(t), true, "hang inside")
		<-streamed.text
		whole := p.askAside(withPatience(t), false, "hang inside")
		if _, err := p.model.WaitTurn(withPatience(t), 3); err != nil {
			t.Fatal(err)
		}
		queued := p.askAside(withPatience(t), true, "go")
		if code := p.stop(syscall.SIGTERM); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if _, err := sdk.readAll(); err == nil || sdk.finish != "" || !strings.Contains(err.Error(), "shutting down") {
			t.Errorf("SDK: %v, finish_reason %q", err, sdk.finish)
		}
		streamed.checkFailed(t, "streamed", 200, "shutdown")
		whole.checkFailed(t, "not streamed", 503, "shutdown")
		// It may not have come as far as the queue; then there is no connection for it.
		if <-queued.done; queued.err == nil {
			queued.checkFailed(t, "queued", 503, "shutdown")
		}
		if left := p.processes(); len(left) > 0 {
			t.Errorf("processes left: %v", left)
		}
	})
}

// halfway is a proxy in the middle of an answer of two lines; the gate holds the second.
func halfway(t *testing.T, c cli, args ...string) (*proxy, *answerStream, *messagesapi.Gate) {
	t.Helper()
	gate := messagesapi.NewGate()
	p := startProxy(t, c, proxyOptions{args: args, script: messagesapi.Always(messagesapi.Answer{
		Parts: []messagesapi.Part{messagesapi.Text("one\ntwo\n")}, Gate: gate,
	})})
	gate.Release()
	s := p.stream(withPatience(t), user("go"))
	if _, more := s.next(); !more {
		t.Fatal(s.Err())
	}
	return p, s, gate
}

// SIGHUP, as at the loss of a terminal, does not stop a service, nor a turn of its.
func TestHangup(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p, s, gate := halfway(t, c)
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		if got := p.get(t, "/readyz"); got.code != 200 {
			t.Errorf("readyz: %s", got.raw)
		}
		gate.Open()
		if text := s.mustReadAll(t); text != "one\ntwo\n" {
			t.Error(difference(text, "one\ntwo\n"))
		}
	})
}

// If ocp is killed no session outlives it, and the next one cleans up behind it.
func TestKilled(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		for _, terminal := range terminals {
			t.Run(terminal, func(t *testing.T) { testKilled(t, c, onTerminal(terminal)) })
		}
	})
}

func testKilled(t *testing.T, c cli, args []string) {
	p := startProxy(t, c, proxyOptions{args: args, script: byWord()})
	streamed := p.askAside(withPatience(t), true, "hang inside")
	<-streamed.text
	asked := p.asked(t)
	starting := p.askAside(withPatience(t), true, "go")
	eventually(t, patience, "two sessions run", func() bool { return len(p.sessionsOf(c)) == 2 })
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.done
	<-streamed.done
	<-starting.done
	if streamed.err == nil || streamed.finish != "" {
		t.Errorf("the client saw a whole response: finish_reason %q", streamed.finish)
	}
	eventually(t, endBound, "no process is left", func() bool { return len(p.processes()) == 0 })
	if outcome, err := asked.Wait(withPatience(t)); err != nil || outcome != messagesapi.Disconnected {
		t.Errorf("the model's answer: %q, %v", outcome, err)
	}
	if len(p.sessionDirs()) == 0 {
		t.Error("no session folder was left to be swept")
	}
	next := startProxy(t, c, proxyOptions{args: args, state: p.state, script: byWord()})
	if left := next.sessionDirs(); len(left) > 0 {
		t.Errorf("not swept: %v", left)
	}
	next.answers(t)
}

// A second ocp on the same state directory goes away and leaves the first one's alone.
func TestSecondOnTheSameState(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p, s, gate := halfway(t, c)
		got := runOcp(t, nil, "serve", "--listen", "127.0.0.1:0", "--claude", c.path, "--state-dir", p.state)
		if got.code != 1 || !strings.Contains(got.stderr, "in use by another ocp") || !strings.Contains(got.stderr, "--state-dir") {
			t.Errorf("the second: %+v", got)
		}
		gate.Open()
		if text := s.mustReadAll(t); text != "one\ntwo\n" {
			t.Error(difference(text, "one\ntwo\n"))
		}
	})
}

// A session that is killed in the middle of its answer is an error, never an answer.
func TestSessionKilled(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{args: []string{"--concurrency", "1"}, script: byWord()})
		for _, row := range []struct {
			prompt   string
			streamed bool
			status   int
		}{
			{"hang inside", true, 200},
			{"hang inside", false, 502},
			{"hang before", true, 502},
		} {
			p.model.Reset()
			a := p.askAside(withPatience(t), row.streamed, row.prompt)
			p.asked(t)
			if row.status == 200 {
				<-a.text
			}
			sessions := p.sessionsOf(c)
			if len(sessions) != 1 {
				t.Fatalf("%d sessions", len(sessions))
			}
			if err := syscall.Kill(sessions[0], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			a.checkFailed(t, row.prompt, row.status, "session_failed")
			p.answers(t)
		}
	})
}
