package probe

import (
	"context"
	"errors"
	"strings"

	"ocp/internal/hook"
	"ocp/internal/messagesapi"
	"ocp/internal/turn"
)

// end is a way in which the upstream fails, and the marks that it must leave.
type end struct {
	id, what string
	answer   messagesapi.Answer
	words    []string // one of them is StopFailure's error
	status   int      // the record's apiErrorStatus
	kind     turn.Kind
}

var failures = []end{
	{"failure-authentication", "upstream status 401", messagesapi.ErrorAnswer(401, "invalid x-api-key"), []string{"authentication_failed"}, 401, turn.Authentication},
	{"failure-rate-limit", "upstream status 429", messagesapi.ErrorAnswer(429, "slow down", "retry-after", "7"), []string{"rate_limit"}, 429, turn.RateLimited},
	{"failure-overloaded", "upstream status 529", messagesapi.ErrorAnswer(529, "Overloaded"), []string{"server_error", "overloaded"}, 529, turn.Overloaded},
	{"failure-too-long", "upstream status 400 for a prompt that is too long", messagesapi.ErrorAnswer(400, "prompt is too long: 250000 tokens > 200000 maximum"), []string{"invalid_request"}, 400, turn.ContextLength},
	{"failure-cut", "a connection that is cut in the middle of the answer", messagesapi.Answer{
		Parts: []messagesapi.Part{messagesapi.Text("This was said.\nThis was said too.\nThis never.\n")},
		Fault: messagesapi.CutFIN(messagesapi.InBlock(0, 2)),
	}, []string{"server_error", "unknown"}, 0, turn.Upstream},
}

func endProbes() []probe {
	p := probe{name: "failures", run: probeFailures}
	for _, f := range failures {
		p.claims = append(p.claims, Claim{
			ID: f.id, Relied: true, Text: "the turn ends with StopFailure and a marked record, after one request, and nothing of it is shown as text: " + f.what,
			Use: "maps the marks to a typed error, never their wording",
		})
	}
	return []probe{p}
}

func probeFailures(ctx context.Context, e *Env, dir string) (seen, error) {
	l, err := e.open(dir, nil, laneOptions{})
	if err != nil {
		return nil, err
	}
	found := seen{}
	for _, f := range failures {
		l.model.SetScript(messagesapi.Always(f.answer))
		a, err := l.ask(ctx, say("Hello?"))
		if err != nil {
			return found, errors.Join(err, l.close())
		}
		f.judge(found, a)
	}
	return found, l.close()
}

func (f end) judge(found seen, a answer) {
	stops, failed := named(a.calls, hook.Stop), named(a.calls, hook.StopFailure)
	word := ""
	if len(failed) > 0 {
		word = failed[0].Error
	}
	shown, _ := joined(named(a.calls, hook.MessageDisplay))
	marked, status := false, 0
	for _, r := range a.records {
		if r.IsAPIErrorMessage {
			marked, status = true, r.APIErrorStatus
		}
	}
	said := strings.HasPrefix(f.answer.Text(), shown) // nothing but what the model has said
	kind := turn.Kind("none")
	if e, ok := errors.AsType[*turn.Error](a.failed); ok {
		kind = e.Kind
	}
	known := false
	for _, w := range f.words {
		known = known || w == word
	}
	found.say(f.id, len(failed) == 1 && len(stops) == 0 && known && status == f.status && said && kind == f.kind && len(a.asked) == 1,
		"StopFailure %q, record marked: %t, its status: %d; %d requests; nothing shown but what the model said: %t; ocp says %s",
		word, marked, status, len(a.asked), said, kind)
}
