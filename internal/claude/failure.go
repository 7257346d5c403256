package claude

import (
	"time"

	"ocp/internal/turn"
)

// classify makes a typed error of what the CLI says of a failed turn. It goes by the
// CLI's own marks (facts, section 4), never by the wording of a text: that tells at most
// when a usage limit ends.
func classify(f turn.Failure) *turn.Error {
	kind, message := kindOf(f)
	if kind == turn.InvalidRequest && f.Message != "" {
		message += ": " + f.Message
	}
	failed := &turn.Error{Kind: kind, Message: message}
	if kind == turn.RateLimited {
		failed.RetryAfter = retryAfter(f, time.Now())
	}
	return failed
}

func kindOf(f turn.Failure) (turn.Kind, string) {
	switch f.Status {
	case 400:
		// The CLI gives this word to a 400 only if the prompt is too long.
		if f.Error == "invalid_request" {
			return turn.ContextLength, "the prompt is too long for the model"
		}
		return turn.InvalidRequest, "the upstream refused the request"
	case 401:
		return turn.Authentication, "the upstream refused the credentials: check the key or token given to ocp, or log in again with the Claude Code CLI"
	case 403:
		return turn.Permission, "the upstream denied access: check what the account or key may use"
	case 404:
		return turn.ModelNotFound, "the upstream does not know the model, or the account may not use it"
	case 413:
		return turn.TooLarge, "the request is too large for the upstream"
	case 429:
		return turn.RateLimited, "the upstream's rate or usage limit is reached"
	case 529:
		return turn.Overloaded, "the upstream is overloaded"
	}
	switch f.Error {
	case "authentication_failed":
		return turn.Authentication, "Claude Code is not logged in, or its key was rejected: give ocp a key or token, or log in with the Claude Code CLI"
	case "rate_limit":
		return turn.RateLimited, "the upstream's rate or usage limit is reached"
	case "model_not_found":
		return turn.ModelNotFound, "the upstream does not know the model, or the account may not use it"
	case "invalid_request":
		return turn.InvalidRequest, "the upstream refused the request"
	}
	return turn.Upstream, "the upstream failed or the connection to it broke"
}
