package messagesapi

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Answer is what the server does with one request. The zero value is a message
// without content that ends with end_turn, sent as fast as the client reads.
type Answer struct {
	// Parts are the message's content blocks, in order.
	Parts []Part
	// StopReason is "end_turn" if empty, or "tool_use" if a part is one.
	StopReason string
	// StopSequence is null if empty.
	StopSequence string
	// Usage is an estimate from the sizes if zero.
	Usage Usage
	// Model is the requested one if empty.
	Model string
	// ID is a new unique one if empty.
	ID string

	// Error, if set, is the whole answer; of the other fields only Pace.First counts.
	Error *APIError

	// Pace is how long to wait.
	Pace Pace
	// Split cuts every part that has no Split of its own; ByLine if nil.
	Split Split
	// Gate, if set, holds the answer back step by step.
	Gate *Gate
	// PingEvery puts a ping event before every n-th delta of the answer; none if zero.
	PingEvery int
	// WriteSizes are the sizes in bytes of the writes, each flushed to the network,
	// that every SSE event is cut into, regardless of UTF-8; they are used in a
	// cycle that goes on from event to event. Empty means one write an event.
	WriteSizes []int
	// Coalesce leaves flushing to the HTTP server's buffers (except before a wait),
	// so that many events share one write.
	Coalesce bool
	// Fault is what goes wrong; nothing if zero. See CutFIN and its neighbours.
	Fault Fault
}

// Part is one content block of an answer. See Text, Chunks, Thinking and ToolUse.
type Part struct {
	// Type is "text", "thinking" or "tool_use".
	Type string
	// Text is that of a text or thinking part. It must be valid UTF-8.
	Text string
	// Signature closes a thinking part; no signature_delta is sent if empty.
	Signature string
	// ID, Name and Input are those of a tool_use part.
	ID, Name string
	Input    json.RawMessage
	// Split overrides Answer.Split.
	Split Split
}

// Usage is the token count of an answer.
type Usage struct {
	Input, Output, CacheRead, CacheCreation int
}

// Pace is how long an answer waits. Every wait ends early when the client
// disconnects or the server is closed.
type Pace struct {
	// First is the wait before anything, the header included, is sent.
	First time.Duration
	// Between is the wait before every event but the first.
	Between time.Duration
}

// Text is a text block.
func Text(text string) Part { return Part{Type: "text", Text: text} }

// Chunks is a text block whose deltas are exactly these chunks.
func Chunks(chunks ...string) Part {
	return Part{
		Type:  "text",
		Text:  strings.Join(chunks, ""),
		Split: func(string) []string { return chunks },
	}
}

// Thinking is a thinking block.
func Thinking(text, signature string) Part {
	return Part{Type: "thinking", Text: text, Signature: signature}
}

// ToolUse is a tool_use block; input is a JSON object.
func ToolUse(id, name, input string) Part {
	return Part{Type: "tool_use", ID: id, Name: name, Input: json.RawMessage(input)}
}

// TextAnswer is an answer of one text block.
func TextAnswer(text string) Answer { return Answer{Parts: []Part{Text(text)}} }

// Text is the text of all text parts, joined without a separator.
func (a Answer) Text() string {
	var b strings.Builder
	for _, p := range a.Parts {
		if p.Type == "text" {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// Steps is the number of steps that the answer takes through a Gate when streamed:
// its deltas and the end.
func (a Answer) Steps() int {
	steps := 1
	for _, p := range a.Parts {
		steps += len(p.deltas(a.Split))
	}
	return steps
}

// withDefaults fills in what depends on the request or must be unique.
func (a Answer) withDefaults(request Request, body []byte) Answer {
	if a.StopReason == "" {
		a.StopReason = "end_turn"
		for _, p := range a.Parts {
			if p.Type == "tool_use" {
				a.StopReason = "tool_use"
			}
		}
	}
	if a.Usage == (Usage{}) {
		a.Usage = Usage{Input: estimateTokens(string(body)), Output: a.estimateOutput()}
	}
	if a.Model == "" {
		a.Model = request.Model
	}
	if a.ID == "" {
		a.ID = "msg_01" + rand.Text()[:22]
	}
	return a
}

func (a Answer) estimateOutput() int {
	total := 0
	for _, p := range a.Parts {
		total += estimateTokens(p.Text + string(p.Input))
	}
	return total
}

// validate says why the answer cannot be delivered as it stands.
func (a Answer) validate() error {
	if a.Error != nil {
		if a.Error.Status < 400 || a.Error.Status > 599 {
			return fmt.Errorf("error status %d", a.Error.Status)
		}
		return nil
	}
	for i, p := range a.Parts {
		if err := p.validate(a.Split); err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
	}
	for _, size := range a.WriteSizes {
		if size < 1 {
			return fmt.Errorf("write size %d", size)
		}
	}
	return a.Fault.validate(a)
}

func (p Part) validate(split Split) error {
	switch p.Type {
	case "text", "thinking":
	case "tool_use":
		if !json.Valid(p.Input) {
			return errors.New("tool input is not JSON")
		}
	default:
		return fmt.Errorf("type %q", p.Type)
	}
	chunks := p.chunks(split)
	if strings.Join(chunks, "") != p.content() {
		return errors.New("the chunks joined are not the text")
	}
	for i, chunk := range chunks {
		if !utf8.ValidString(chunk) {
			return fmt.Errorf("chunk %d is not valid UTF-8", i)
		}
	}
	return nil
}

// content is what the part's deltas carry, a signature aside.
func (p Part) content() string {
	if p.Type == "tool_use" {
		return string(p.Input)
	}
	return p.Text
}

// chunks cuts the content; split is the answer's.
func (p Part) chunks(split Split) []string {
	switch {
	case p.Split != nil:
		return p.Split(p.content())
	case split != nil:
		return split(p.content())
	default:
		return ByLine(p.content())
	}
}

// estimateTokens is a rough count: four code points a token, rounded up.
func estimateTokens(s string) int { return (utf8.RuneCountInString(s) + 3) / 4 }
