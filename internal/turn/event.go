package turn

import (
	"encoding/json"
	"time"
)

// Event is something a turn tells its client. After Finished, or after an error of
// type *Error, there are no more. The events are Started, Delta, Verifying, ToolCall and
// Finished.
type Event interface{ event() }

// Started says that the session is up and the turn is running.
type Started struct{}

// Delta is text of the answer, to be appended to what came before.
type Delta struct {
	Text     string
	Received time.Time // of the hook call that completed it; zero for text of the transcript's
}

// Verifying says that the CLI has called the answer over: what remains is to check it
// against the transcript. Text may still follow.
type Verifying struct{}

// ToolCall is a call of one of the client's tools, taken from the transcript. All calls of
// an answer come at its end, each behind the text that stands before it.
type ToolCall struct {
	ID, Name string
	Input    json.RawMessage // an object, as the CLI has written down what the model gave
	At       int             // how many bytes of the answer's text stand before it
}

// Finished ends a turn whose answer is whole and was checked against the transcript.
type Finished struct {
	Model        string     // the model that answered, as the upstream names it
	StopReason   StopReason // why the model stopped
	StopSequence string     // the sequence that stopped it, if StopReason is StopSequence
	Usage        Usage
	Session      SessionInfo
	Stats        Stats
	Stages       Stages // filled in by the session
}

func (Started) event()   {}
func (Delta) event()     {}
func (Verifying) event() {}
func (ToolCall) event()  {}
func (Finished) event()  {}

// StopReason is the Messages API's stop_reason.
type StopReason string

// The stop reasons a finished turn can have. Others are passed on as they are.
const (
	EndTurn       StopReason = "end_turn"
	MaxTokens     StopReason = "max_tokens"
	StopSequence  StopReason = "stop_sequence"
	Refusal       StopReason = "refusal"
	ToolUse       StopReason = "tool_use"
	ContextWindow StopReason = "model_context_window_exceeded"
)

// Usage is what the upstream counted, summed over the messages of the turn, in tokens.
type Usage struct {
	Input         int // without cached tokens
	CacheRead     int
	CacheCreation int
	Output        int
	// Estimated says that nobody upstream has counted: the turn was stopped before its
	// end, at a stop sequence of the client's.
	Estimated bool
}

// SessionInfo is what the CLI says of itself in the transcript.
type SessionInfo struct {
	Entrypoint string // "cli" for an interactive session
	CLIVersion string
}

// Stats are figures for logs and metrics.
type Stats struct {
	Deltas      int // hook fires taken into account
	Reordered   int // fires that came before an earlier one
	Duplicates  int // fires seen twice and dropped
	ToppedUp    int // bytes filled in from the transcript
	TextBytes   int // length of the answer
	InputChecks int // messages compared between client and the request the CLI records
	InputDiffs  int // of these, how many differed
}

// Way is how a turn came to its session.
type Way string

// The ways, from the slowest to the fastest.
const (
	Cold      Way = "cold"      // the session was started for the request
	Pooled    Way = "pooled"    // the session was primed before the request came
	Continued Way = "continued" // the session had answered the conversation so far
)

// Stages are when a turn passed its stages; zero for one that it has not passed.
type Stages struct {
	Way     Way
	Spawned time.Time     // the process was started
	Given   time.Time     // the session was given the request
	Taken   time.Time     // the CLI had taken it: read its system text, or accepted its prompt
	Ready   time.Time     // SessionStart was received; zero for a continued turn
	First   time.Time     // the first delta was received
	Stopped time.Time     // Stop or StopFailure was received
	Ended   time.Time     // the turn was over, its answer checked against the transcript
	CLI     time.Duration // the CLI's own turn_duration; 0 if its record came too late to be seen
}
