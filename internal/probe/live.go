package probe

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"ocp/internal/hook"
)

// LiveTurns is how many turns a live run spends, each a short one.
const LiveTurns = 1

const livePrompt = "Write the numbers from 1 to 30, each on a line of its own with a few words about it, and nothing else."

// liveClaims are those of a streamed turn that can be judged without knowing what the model
// says: by the transcript.
var liveClaims = []string{"hook-fires", "prefix-stable", "deltas-complete", "index-order", "one-message-id", "final-flag", "stop-once"}

func liveProbe() probe {
	p := probe{name: "live", run: probeLive, bound: 5 * time.Minute}
	for _, c := range streamingProbes()[0].claims {
		if slices.Contains(liveClaims, c.ID) {
			p.claims = append(p.claims, c)
		}
	}
	p.claims = append(p.claims,
		Claim{ID: "live-incremental", Relied: true, Text: "deltas come while the answer is being written", Use: "streams line by line"},
		Claim{ID: "live-entrypoint", Relied: true, Text: "the transcript calls the session interactive: entrypoint cli", Use: "reports it, sets nothing"},
	)
	return p
}

func probeLive(ctx context.Context, e *Env, dir string) (seen, error) {
	l, err := e.open(dir, nil, laneOptions{})
	if err != nil {
		return nil, err
	}
	a, err := l.ask(ctx, say(livePrompt))
	if err := errors.Join(err, l.close()); err != nil {
		return nil, err
	}
	shown, said := named(a.calls, hook.MessageDisplay), textOf(a.records)
	found := seen{}
	found.say("hook-fires", len(shown) > 0, "%d calls%s", len(shown), because(a.failed))
	stops := named(a.calls, hook.Stop)
	found.say("stop-once", len(stops) == 1 && len(named(a.calls, hook.StopFailure)) == 0, "%d Stop%s", len(stops), because(a.failed))
	entry := ""
	for _, r := range a.records {
		entry = cmp.Or(r.Entrypoint, entry)
	}
	found.say("live-entrypoint", entry == "cli", "%q", entry)
	if len(shown) == 0 {
		for _, id := range append(liveClaims[1:len(liveClaims)-1:len(liveClaims)-1], "live-incremental") {
			found.skip(id, "no delta came")
		}
		return found, nil
	}
	text, sizes := joined(shown)
	judgeText(found, text, said, sizes)
	judgeNumbering(found, shown)
	// What comes at once comes in two calls at most: the first line, and the rest.
	found.say("live-incremental", len(shown) > 2, "%d calls over %s", len(shown), about(shown[len(shown)-1].came.Sub(shown[0].came)))
	return found, nil
}
