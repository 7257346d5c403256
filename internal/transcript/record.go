// Package transcript reads and writes the CLI's JSONL transcript: it writes a
// conversation in the form the CLI resumes, and follows what the CLI appends as typed
// records. It knows the file's form and nothing about turns.
package transcript

import (
	"encoding/json"
	"strings"
)

// Record is one line of a transcript. Fields that a record does not have are empty.
// Field names are the CLI's (measured on 2.1.207 and 2.1.332).
type Record struct {
	Type       string `json:"type"`    // user, assistant, system, attachment, api-request-blob, …
	Subtype    string `json:"subtype"` // of system records: turn_duration, stop_hook_summary, …
	Entrypoint string `json:"entrypoint"`
	Version    string `json:"version"`

	PromptID   string `json:"promptId"`   // of the user entry that a typed prompt makes
	DurationMS int    `json:"durationMs"` // of a turn_duration, in milliseconds

	Message     *Message `json:"message"`
	IsMeta      bool     `json:"isMeta"`      // a user entry that the CLI made up
	IsSidechain bool     `json:"isSidechain"` // of a sub-agent

	Attachment     json.RawMessage `json:"attachment"` // of an attachment: what the CLI tells the model besides
	AttachmentType string          `json:"-"`          // its type

	// The CLI's own error entries.
	IsAPIErrorMessage bool   `json:"isApiErrorMessage"`
	Error             string `json:"error"`
	ErrorDetails      string `json:"errorDetails"`
	APIErrorStatus    int    `json:"apiErrorStatus"` // the upstream's HTTP status, 0 if there was none
	ResetsAt          int    `json:"-"`              // quotaLimits.resetsAt (2.1.332): when a usage limit ends, in Unix seconds; 0 if unknown

	// What 2.1.332 records of its requests.
	ID   string   `json:"id"`   // of an api-request
	Base string   `json:"base"` // of an api-request: the id of the one before
	Hash string   `json:"hash"` // of an api-request-blob's message
	Tail []string `json:"tail"` // of an api-request: the hashes of its messages behind the first Keep
	Keep int      `json:"keep"` // of an api-request: messages that it shares with the one before

	// Tools are the definitions in an api-request-shape, as they were sent; not nil if it
	// has none.
	Tools []json.RawMessage `json:"-"`
}

// Message is the message inside a user, assistant or api-request-blob record.
type Message struct {
	ID           string  `json:"id"` // the API's; a UUID in the CLI's own error entries
	Role         string  `json:"role"`
	Model        string  `json:"model"` // Synthetic in the CLI's own entries
	StopReason   string  `json:"stop_reason"`
	StopSequence string  `json:"stop_sequence"`
	Content      Content `json:"content"`
	Usage        Usage   `json:"usage"`
}

// Synthetic is the model name of assistant entries that no model made.
const Synthetic = "<synthetic>"

// Text returns the message's text: its text blocks joined without a separator.
func (m *Message) Text() string {
	if m == nil {
		return ""
	}
	var b strings.Builder
	for _, block := range m.Content {
		if block.Type == "text" {
			b.WriteString(block.Text)
		}
	}
	return b.String()
}

// Content is a message's blocks; a plain string is read as one text block.
type Content []Block

// Block is one content block. Raw is the whole block as it stands in the file.
type Block struct {
	Type string          `json:"type"`
	Text string          `json:"text"`
	Raw  json.RawMessage `json:"-"`
}

// Usage is the upstream's count of tokens for one API message.
type Usage struct {
	InputTokens              int `json:"input_tokens"`
	CacheCreationInputTokens int `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int `json:"cache_read_input_tokens"`
	OutputTokens             int `json:"output_tokens"`
}
