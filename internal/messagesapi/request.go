package messagesapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Request is the part of a Messages API request that tests compare. Strings are as
// JSON decodes them; Recorded.Body has the bytes.
type Request struct {
	Model     string
	MaxTokens int
	Stream    bool
	// System is nil if there is none; a plain string becomes one text block.
	System   []Block
	Messages []Message
	// Tools are the tool definitions as sent.
	Tools []json.RawMessage
}

// Message is one message of the conversation.
type Message struct {
	Role string
	// Content has one text block if the message's content was a plain string.
	Content []Block
}

// Block is one content block of a request.
type Block struct {
	Type string
	// Text is that of a text block.
	Text string
	// Source is that of an image or document block, as sent.
	Source json.RawMessage
	// Raw is the whole block as sent; the JSON string where the block stands for
	// plain string content.
	Raw json.RawMessage
}

// Text joins the message's text blocks without a separator.
func (m Message) Text() string {
	var b bytes.Buffer
	for _, block := range m.Content {
		if block.Type == "text" {
			b.WriteString(block.Text)
		}
	}
	return b.String()
}

// Prompt is the text of the last text block of the last user message, which is
// where the Claude Code CLI puts a prompt; empty if there is none.
func (r Request) Prompt() string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role != "user" {
			continue
		}
		content := r.Messages[i].Content
		for j := len(content) - 1; j >= 0; j-- {
			if content[j].Type == "text" {
				return content[j].Text
			}
		}
		return ""
	}
	return ""
}

// Decode reads the body as a Messages API request. Unknown fields are ignored; a
// known field of another shape, an untyped block or a message without a role is an
// error.
func (r *Recorded) Decode() (Request, error) { return decodeRequest(r.Body) }

func decodeRequest(body []byte) (Request, error) {
	var wire struct {
		Model     string            `json:"model"`
		MaxTokens int               `json:"max_tokens"`
		Stream    bool              `json:"stream"`
		System    json.RawMessage   `json:"system"`
		Tools     []json.RawMessage `json:"tools"`
		Messages  []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return Request{}, fmt.Errorf("decode request: %w", err)
	}
	system, err := decodeContent(wire.System)
	if err != nil {
		return Request{}, fmt.Errorf("system: %w", err)
	}
	request := Request{
		Model:     wire.Model,
		MaxTokens: wire.MaxTokens,
		Stream:    wire.Stream,
		System:    system,
		Tools:     wire.Tools,
	}
	for i, m := range wire.Messages {
		if m.Role == "" {
			return Request{}, fmt.Errorf("messages.%d: no role", i)
		}
		content, err := decodeContent(m.Content)
		if err != nil {
			return Request{}, fmt.Errorf("messages.%d.content: %w", i, err)
		}
		request.Messages = append(request.Messages, Message{Role: m.Role, Content: content})
	}
	return request, nil
}

// decodeContent reads a string or an array of blocks; absent and null are nil.
func decodeContent(raw json.RawMessage) ([]Block, error) {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil, nil
	}
	if raw[0] == '"' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, err
		}
		return []Block{{Type: "text", Text: text, Raw: raw}}, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, errors.New("neither a string nor an array of blocks")
	}
	blocks := make([]Block, 0, len(items))
	for i, item := range items {
		var block struct {
			Type   string          `json:"type"`
			Text   string          `json:"text"`
			Source json.RawMessage `json:"source"`
		}
		if err := json.Unmarshal(item, &block); err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
		if block.Type == "" {
			return nil, fmt.Errorf("block %d: no type", i)
		}
		blocks = append(blocks, Block{Type: block.Type, Text: block.Text, Source: block.Source, Raw: item})
	}
	return blocks, nil
}
