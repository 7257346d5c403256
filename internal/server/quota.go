package server

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"ocp/internal/quota"
	"ocp/internal/turn"
)

// checkModel refuses a model that the client's key may not ask for.
func checkModel(x *exchange, model string) error {
	if x.limits.Allows(model) {
		return nil
	}
	return &fault{
		status:  http.StatusForbidden,
		code:    "model_not_allowed",
		param:   "model",
		message: "this key may not use the model " + strconv.Quote(clip(model)) + ": GET /v1/models lists those that it may",
	}
}

// models are the names that a client may see: those that its key may ask for, or else the
// server's.
func (s *Server) models(x *exchange) []string {
	if len(x.limits.Models) > 0 {
		return x.limits.Models
	}
	return s.options.Models
}

// count holds a request for a turn against the limits of the client's key, and counts it.
// The error is a *quota.Refused.
func (s *Server) count(x *exchange) error {
	now := time.Now()
	use, standing, err := s.options.Quota.Account(x.key).Begin(x.limits, now)
	x.turn.use = use
	x.dialect.standing(x.w.Header(), standing, now)
	if refused, ok := errors.AsType[*quota.Refused](err); ok && refused.RetryAfter > patience {
		x.w.Header().Set("X-Should-Retry", "false") // which the SDKs of both APIs go by
	}
	return err
}

// patience is the longest wait that an SDK takes upon itself.
const patience = time.Minute

// openaiStanding sets the headers of OpenAI's API, in which times are durations.
func openaiStanding(h http.Header, s quota.Standing, now time.Time) {
	for name, g := range map[string]quota.Gauge{"requests": s.Requests, "tokens": s.Tokens} {
		if g.Limit > 0 {
			h.Set("X-Ratelimit-Limit-"+name, strconv.FormatInt(g.Limit, 10))
			h.Set("X-Ratelimit-Remaining-"+name, strconv.FormatInt(g.Remaining, 10))
			h.Set("X-Ratelimit-Reset-"+name, wholeSeconds(g.Reset.Sub(now)).String())
		}
	}
}

// anthropicStanding sets those of Anthropic's, in which times are times.
func anthropicStanding(h http.Header, s quota.Standing, now time.Time) {
	for name, g := range map[string]quota.Gauge{"Requests": s.Requests, "Tokens": s.Tokens} {
		if g.Limit > 0 {
			prefix := "Anthropic-Ratelimit-" + name
			h.Set(prefix+"-Limit", strconv.FormatInt(g.Limit, 10))
			h.Set(prefix+"-Remaining", strconv.FormatInt(g.Remaining, 10))
			h.Set(prefix+"-Reset", now.Add(wholeSeconds(g.Reset.Sub(now))).UTC().Format(time.RFC3339))
		}
	}
}

// wholeSeconds rounds up: nobody is to come too early.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// spend takes note of what a turn has used, and that its client may send the next request.
func (t *turnRecord) spend(used turn.Usage) {
	t.Usage = used
	t.use.Spend(int64(used.Input) + int64(used.CacheRead) + int64(used.CacheCreation) + int64(used.Output))
	t.use.Done()
}

// brokenOff is what a turn has used that did not finish: nobody says, so it is an estimate,
// which keeps a client from getting by its limits by going before the end. It is nothing if
// the upstream refused the turn, or it never got there.
func (t *turnRecord) brokenOff(outcome string) turn.Usage {
	switch turn.Kind(outcome) {
	case turn.Canceled, turn.Timeout, turn.Shutdown:
		if t.Started.IsZero() {
			return turn.Usage{}
		}
	default:
		if t.DeltaCount == 0 {
			return turn.Usage{}
		}
	}
	return turn.Usage{Input: t.input(), Output: t.answer.Tokens(), Estimated: true}
}
