// Package prompt is what a client asks, in the form the session is given it: a
// conversation of messages with roles, a system text, and what is fixed when a
// session is launched. It is pure: it knows no dialect and starts nothing.
package prompt

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode"
)

// Role is who speaks in a message.
type Role string

// The roles of a conversation. System text is not a message: see Conversation.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Block is one piece of a message's content; it marshals to the Messages API's
// own form.
type Block struct {
	Type string
	Text string // of a text block
	// Raw is the whole block as JSON in the Messages API's form, for every other type:
	// image, document, tool_use, tool_result. Its dialect has checked it.
	Raw json.RawMessage
}

// Text makes a text block.
func Text(s string) Block { return Block{Type: "text", Text: s} }

// MarshalJSON gives the Messages API's form.
func (b Block) MarshalJSON() ([]byte, error) {
	if b.Raw != nil {
		return b.Raw, nil
	}
	return json.Marshal(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{b.Type, b.Text})
}

// blank reports whether the block is a text of nothing but what JavaScript's trim
// takes for white space.
func (b Block) blank() bool {
	return b.Raw == nil && strings.TrimFunc(b.Text, func(r rune) bool {
		return r != '\u0085' && unicode.IsSpace(r) || r == '\ufeff'
	}) == ""
}

// Message is one entry of a conversation.
type Message struct {
	Role    Role
	Content []Block
}

// Conversation is everything the model is to see of a client's request.
type Conversation struct {
	// System is the client's system text, byte for byte; empty for none.
	System   string
	Messages []Message
	// Tools are the client's, which the model may call and the client runs.
	Tools []Tool
}

// Tool is what the model is told of a tool. Its dialect has checked it.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // of its input: a JSON Schema of type object
}

// Request is a conversation, whose it is, and what is fixed when its session is launched.
type Request struct {
	Caller string // tells callers apart that must not share a session; not for people
	Model  string // as the client gave it; the CLI knows aliases such as "sonnet"
	Effort string // low, medium, high, …; empty for the operator's default
	// MaxTokens is the most tokens that the answer may have, thinking included; 0 for
	// no limit of the client's. An answer that reaches it ends there.
	MaxTokens int
	OneCall   bool // of several tool calls in an answer only the first is wanted
	Conversation
}

// Errors of Validate. Their texts are meant for the client.
var (
	ErrNoMessages    = errors.New("the conversation is empty: send at least one user message")
	ErrLastAssistant = errors.New("the conversation ends with an assistant message: the last message must be a user message, prefilling an answer is not possible")
	ErrLastEmpty     = errors.New("the last message is empty: it must have some text")
)

// Builder collects a client's messages in order and joins what the Messages API
// would not keep apart.
type Builder struct {
	system   []string
	messages []Message
	last     Role
	blank    bool // the last message added had no text
}

// AddSystem appends a system text. Several are joined by one blank line.
func (b *Builder) AddSystem(text string) {
	if text != "" {
		b.system = append(b.system, text)
	}
}

// Add appends a message of the given text blocks: see AddBlocks.
func (b *Builder) Add(role Role, texts ...string) {
	blocks := make([]Block, len(texts))
	for i, text := range texts {
		blocks[i] = Text(text)
	}
	b.AddBlocks(role, blocks...)
}

// AddBlocks appends a message. Consecutive messages of one role become one message of
// several blocks, each exact: the CLI would join them itself, with a newline added
// (facts, section 17). A text of white space alone cannot be a block, since the Messages
// API refuses it and the CLI drops it: it becomes part of the text before it in the
// message, or else of the one behind, and a message of nothing else is left out.
func (b *Builder) AddBlocks(role Role, blocks ...Block) {
	b.last, b.blank = role, true
	for _, block := range joinBlanks(blocks) {
		b.blank = false
		if n := len(b.messages); n > 0 && b.messages[n-1].Role == role {
			b.messages[n-1].Content = append(b.messages[n-1].Content, block)
			continue
		}
		b.messages = append(b.messages, Message{Role: role, Content: []Block{block}})
	}
}

// joinBlanks returns the blocks with the blank ones joined to their neighbours.
func joinBlanks(blocks []Block) []Block {
	var joined []Block
	before := "" // blank text that waits for the next text block
	for _, block := range blocks {
		switch n := len(joined) - 1; {
		case block.Raw != nil:
			joined = append(joined, block)
		case !block.blank():
			joined = append(joined, Text(before+block.Text))
			before = ""
		case n >= 0 && joined[n].Raw == nil:
			joined[n].Text += block.Text
		default:
			before += block.Text
		}
	}
	return joined
}

// Conversation returns what was added, or ErrNoMessages, ErrLastAssistant or
// ErrLastEmpty.
func (b *Builder) Conversation() (Conversation, error) {
	switch {
	case b.last == "":
		return Conversation{}, ErrNoMessages
	case b.last == Assistant:
		return Conversation{}, ErrLastAssistant
	case b.blank:
		return Conversation{}, ErrLastEmpty
	}
	return Conversation{System: strings.Join(b.system, "\n\n"), Messages: b.messages}, nil
}
