// Package hook is what the CLI's hooks say and the private receiver they say it to.
// It does not interpret events: it checks where they come from and hands them on.
package hook

import "time"

// The hook events OCP listens to.
const (
	SessionStart     = "SessionStart"
	UserPromptSubmit = "UserPromptSubmit"
	MessageDisplay   = "MessageDisplay"
	PreToolUse       = "PreToolUse"
	Stop             = "Stop"
	StopFailure      = "StopFailure"
	SessionEnd       = "SessionEnd"
)

// Event is one hook call. Fields that an event does not have are empty. The field
// names are those of the CLI's payload (measured on 2.1.207 and 2.1.332).
type Event struct {
	Name           string `json:"hook_event_name"`
	SessionID      string `json:"session_id"`
	TranscriptPath string `json:"transcript_path"`
	PromptID       string `json:"prompt_id"` // absent for a turn that was resumed

	// SessionStart and SessionEnd.
	Source string `json:"source"`
	Reason string `json:"reason"`

	// UserPromptSubmit: the text that was submitted, as the model would get it.
	Prompt string `json:"prompt"`

	// MessageDisplay: one delta.
	TurnID    string `json:"turn_id"`
	MessageID string `json:"message_id"` // made up by the CLI, not the API's id
	Index     int    `json:"index"`      // from 0 within a message
	Final     bool   `json:"final"`      // the message's last delta
	Delta     string `json:"delta"`

	// Stop and StopFailure. LastAssistantMessage is the last text block, trimmed; nil
	// if the answer had no visible text.
	LastAssistantMessage *string `json:"last_assistant_message"`
	Error                string  `json:"error"`
	ErrorDetails         string  `json:"error_details"`

	// Received is when the receiver had read the whole call.
	Received time.Time `json:"-"`
	// Blocked says that the receiver has answered a UserPromptSubmit with a block.
	Blocked bool `json:"-"`
}
