package probe

import (
	"context"
	"errors"
	"time"

	"ocp/internal/messagesapi"
)

// holdFor is how long a session is held half-booted. What it must not do, it would have
// done by then: a boot takes about a second.
const holdFor = 1500 * time.Millisecond

func primedProbes() []probe {
	return []probe{{name: "primed", run: probePrimed, claims: []Claim{
		{ID: "primed-waits", Relied: true, Text: "held at the FIFO of its system text, a session asks nothing of the model and calls no hook", Use: "starts sessions before they are needed"},
		{ID: "primed-exact", Relied: true, Text: "let go, it takes the conversation and the system text that it is given only then, byte for byte", Use: "gives any conversation to any session that waits"},
	}}}
}

func probePrimed(ctx context.Context, e *Env, dir string) (seen, error) {
	l, err := e.open(dir, messagesapi.Always(messagesapi.TextAnswer("Yes.\n")), laneOptions{})
	if err != nil {
		return nil, err
	}
	s, err := l.prime(ctx)
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	hold := time.NewTimer(holdFor)
	defer hold.Stop()
	select {
	case <-hold.C:
	case <-s.Ended():
	case <-ctx.Done():
	}
	asked, called := len(l.model.Turns()), l.launcher.Health().Hooks.Accepted
	found := seen{}
	found.say("primed-waits", asked == 0 && called == 0, "held for %s: %d requests, %d hook calls", holdFor, asked, called)

	late := row{id: "primed-exact", conversation: say(oddText)}
	late.conversation.System = "A system text,\n\tgiven late.\n"
	a, err := l.give(ctx, s, late.conversation, nil)
	if err = errors.Join(err, l.end(s, &a), l.close()); err != nil {
		return found, err
	}
	late.judge(found, a)
	return found, nil
}
