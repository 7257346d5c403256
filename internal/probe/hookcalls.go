package probe

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"ocp/internal/hook"
	"ocp/internal/messagesapi"
	"ocp/internal/prompt"
)

// flowing is an answer of many lines, a little more than one a delta.
var flowing = strings.Repeat("A line of an answer that goes on for a while.\n", 24) + "The end"

// flow is flowing as the model says it.
func flow() messagesapi.Script {
	return messagesapi.Always(messagesapi.Answer{
		Parts: []messagesapi.Part{messagesapi.Text(flowing)}, Pace: messagesapi.Pace{Between: linePace},
	})
}

func hookProbes() []probe {
	return []probe{
		{name: "plain", run: probePlain, claims: []Claim{
			{ID: "hook-fires-plain", Relied: true, Text: "MessageDisplay is called when the CLI is started by hand, with a prompt and nothing else", Use: "needs no way of its own to start a session for it"},
		}},
		{name: "bare", run: probeBare, claims: []Claim{
			{ID: "bare-silent", Text: "under --bare no hook is called", Use: "never uses --bare"},
		}},
		{name: "slow-hook", run: probeSlow, claims: []Claim{
			{ID: "hook-slow", Relied: true, Text: "unanswered calls, three at most, hold the text back and lose none of it; Stop does not wait for them", Use: "answers each call at once, and waits behind Stop until all deltas are there"},
		}},
		{name: "failing-hook", run: probeFailing, claims: []Claim{
			{ID: "hook-failing", Relied: true, Text: "a call that fails or is lost is not made again, and changes nothing of the turn", Use: "tops up from the transcript what a lost call would have said"},
		}},
		{name: "held-stop", run: probeHeldStop, claims: []Claim{
			{ID: "transcript-lag", Text: "the answer's record comes to disk while Stop is still unanswered", Use: "waits for the record, whether it comes before or behind Stop"},
		}},
	}
}

func probePlain(ctx context.Context, e *Env, dir string) (seen, error) {
	shown, asked, err := e.runPlain(ctx, dir)
	if err != nil {
		return nil, err
	}
	text, _ := joined(shown)
	found := seen{}
	found.say("hook-fires-plain", text == flowing, "%d calls with the %d bytes of the answer; %d requests", len(shown), len(text), asked)
	return found, nil
}

func probeBare(ctx context.Context, e *Env, dir string) (seen, error) {
	shown, asked, err := e.runPlain(ctx, dir, "--bare")
	if err != nil {
		return nil, err
	}
	found := seen{}
	found.say("bare-silent", len(shown) == 0 && asked > 0, "%d calls; the answer was on the screen, after %d requests", len(shown), asked)
	return found, nil
}

// runPlain runs a turn that was started by hand and returns its MessageDisplay calls, and
// how often the model was asked.
func (e *Env) runPlain(ctx context.Context, dir string, args ...string) ([]call, int, error) {
	s, err := e.spawn(dir, flow()(nil), append([]string{"--strict-mcp-config"}, args...), nil)
	if err != nil {
		return nil, 0, err
	}
	err = s.answered(ctx, "The end")
	if err == nil && len(named(s.tap.of(""), hook.MessageDisplay)) > 0 {
		err = s.tap.await(ctx, "", ended)
	}
	shown, asked := named(s.tap.of(""), hook.MessageDisplay), len(s.model.Turns())
	return shown, asked, errors.Join(err, s.close())
}

// ended reports whether a message's last delta has come.
func ended(calls []call) bool {
	for _, c := range calls {
		if c.Final {
			return true
		}
	}
	return false
}

// whole reports whether Stop and the last delta have come, which do so in any order.
func whole(calls []call) bool { return ended(calls) && len(named(calls, hook.Stop)) > 0 }

// treated runs a turn of flowing whose hook calls are treated in some manner, in a session
// that outlives it until everything has come.
func (e *Env) treated(ctx context.Context, dir string, m manner, c prompt.Conversation) (answer, error) {
	l, err := e.open(dir, flow(), laneOptions{keep: true})
	if err != nil {
		return answer{}, err
	}
	l.tap.treat(m)
	s, err := l.prime(ctx)
	if err != nil {
		return answer{}, errors.Join(err, l.close())
	}
	a, err := l.give(ctx, s, c, nil)
	if err == nil && a.failed == nil {
		bounded, cancel := context.WithTimeout(ctx, callsBound)
		_ = l.tap.await(bounded, s.ID(), whole) // what is missing shows
		cancel()
	}
	return a, errors.Join(err, l.end(s, &a), l.close())
}

// callsBound is how long the last calls of a turn that is over are waited for.
const callsBound = 5 * time.Second

func probeSlow(ctx context.Context, e *Env, dir string) (seen, error) {
	var once sync.Once
	stopped := make(chan struct{})
	var mu sync.Mutex
	early := 0 // calls before Stop; guarded by mu
	a, err := e.treated(ctx, dir, func(ctx context.Context, c call, pass func(context.Context, []byte) (int, []byte)) (int, []byte) {
		switch c.Name {
		case hook.Stop:
			once.Do(func() { close(stopped) })
		case hook.MessageDisplay:
			select {
			case <-stopped:
			default:
				mu.Lock()
				early++
				mu.Unlock()
				select {
				case <-stopped:
				case <-ctx.Done():
				}
			}
		}
		return pass(ctx, nil)
	}, say("Say some lines."))
	if err != nil {
		return nil, err
	}
	mu.Lock()
	defer mu.Unlock()
	shown := named(a.calls, hook.MessageDisplay)
	text, sizes := joined(shown)
	found := seen{}
	found.say("hook-slow", early > 0 && early <= 3 && text == flowing && len(named(a.calls, hook.Stop)) == 1,
		"%d calls before Stop, none of them answered; then deltas to %d of %d bytes (%s)%s", early, len(text), len(flowing), list(sizes), because(a.failed))
	return found, nil
}

func probeFailing(ctx context.Context, e *Env, dir string) (seen, error) {
	a, err := e.treated(ctx, dir, func(ctx context.Context, c call, pass func(context.Context, []byte) (int, []byte)) (int, []byte) {
		if c.Name == hook.MessageDisplay {
			switch c.Index {
			case 0:
				return http.StatusInternalServerError, []byte("no")
			case 1:
				return 0, nil
			case 2:
				return http.StatusOK, []byte("this is not JSON")
			}
		}
		return pass(ctx, nil)
	}, say("Say some lines."))
	if err != nil {
		return nil, err
	}
	shown := named(a.calls, hook.MessageDisplay)
	times := map[int]int{}
	again := 0
	for _, c := range shown {
		if times[c.Index]++; times[c.Index] > 1 {
			again++
		}
	}
	text, _ := joined(shown)
	recorded := textOf(a.records)
	found := seen{}
	found.say("hook-failing", again == 0 && len(times) >= 3 && text == flowing && recorded == flowing && len(named(a.calls, hook.Stop)) == 1,
		"answered with 500, cut off, answered with nonsense: %d of %d calls were made again; %d of %d bytes in the transcript%s",
		again, len(shown), len(recorded), len(flowing), because(a.failed))
	return found, nil
}

// heldStop is how long Stop is left unanswered at most.
const heldStop = 5 * time.Second

func probeHeldStop(ctx context.Context, e *Env, dir string) (seen, error) {
	over := make(chan struct{}) // the turn is, since OCP has found the record
	l, err := e.open(dir, flow(), laneOptions{keep: true})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	held := false // until the record was there; guarded by mu
	l.tap.treat(func(ctx context.Context, c call, pass func(context.Context, []byte) (int, []byte)) (int, []byte) {
		status, answer := pass(ctx, nil)
		if c.Name == hook.Stop {
			bound := time.NewTimer(heldStop)
			defer bound.Stop()
			select {
			case <-over:
				mu.Lock()
				held = true
				mu.Unlock()
			case <-bound.C:
			case <-ctx.Done():
			}
		}
		return status, answer
	})
	s, err := l.prime(ctx)
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	a, err := l.give(ctx, s, say("Say some lines."), nil)
	close(over)
	if err = errors.Join(err, l.end(s, &a), l.close()); err != nil {
		return nil, err
	}
	mu.Lock()
	defer mu.Unlock()
	lag, stops := "unknown", named(a.calls, hook.Stop)
	for _, look := range a.looks {
		if len(stops) > 0 && textOf(ofTurn(look.data)) != "" {
			lag = about(look.at.Sub(stops[0].came))
			break
		}
	}
	found := seen{}
	found.say("transcript-lag", held && a.failed == nil, "the record was seen %s from Stop, which was unanswered: %t%s", lag, held, because(a.failed))
	return found, nil
}
