package turn

import (
	"fmt"
	"time"
)

// Kind says what went wrong with a turn. Dialects map it to a status and an error
// type of their own.
type Kind string

// The kinds of failure.
const (
	Authentication Kind = "authentication"  // the upstream refused the credentials, or there are none
	Permission     Kind = "permission"      // credentials good, access refused
	RateLimited    Kind = "rate_limited"    // 429, usage limits
	Overloaded     Kind = "overloaded"      // 529
	Upstream       Kind = "upstream"        // 5xx, broken connection, answer that breaks off
	InvalidRequest Kind = "invalid_request" // the upstream refused the request
	ContextLength  Kind = "context_length"  // the prompt is too long for the model
	TooLarge       Kind = "too_large"       // the request is too large for the upstream
	ModelNotFound  Kind = "model_not_found" //
	Timeout        Kind = "timeout"         // OCP's own limit on a turn
	SessionFailed  Kind = "session_failed"  // the CLI did not start, or ended before its turn
	Diverged       Kind = "diverged"        // what was sent is not what the transcript says
	Unverified     Kind = "unverified"      // the transcript did not show the answer in time
	Shutdown       Kind = "shutdown"        // OCP is being stopped
	Canceled       Kind = "canceled"        // the client has gone
)

// Error is how a turn fails. Message is safe to show to the client: it holds no
// path, secret or text of the conversation; Err is for the log.
type Error struct {
	Kind       Kind
	Message    string
	RetryAfter time.Duration // zero if not known
	Err        error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Kind, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Kind, e.Message)
}

func (e *Error) Unwrap() error { return e.Err }
