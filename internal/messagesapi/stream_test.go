package messagesapi

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// got is an answer as a client puts it together from its stream.
type got struct {
	names      []string // of the events
	id, model  string
	parts      []Part // without Split
	open       bool   // the last part has not been stopped
	stopReason string
	usage      map[string]int // of message_delta
	stopped    bool
	fault      *wireErrorDetail
}

// streamReader is a strict SSE client for the Messages API: every deviation from
// the order that the API keeps is an error.
type streamReader struct {
	lines *bufio.Reader
	got   got
}

func newStreamReader(r io.Reader) *streamReader {
	return &streamReader{lines: bufio.NewReader(r)}
}

// all reads to the end of the body, returned without error if it ended properly.
func (s *streamReader) all() (got, error) {
	for {
		if _, err := s.next(); errors.Is(err, io.EOF) {
			return s.got, nil
		} else if err != nil {
			return s.got, err
		}
	}
}

// until reads up to and including the first event of that name.
func (s *streamReader) until(name string) error {
	for {
		if n, err := s.next(); err != nil || n == name {
			return err
		}
	}
}

// next reads one event and applies it.
func (s *streamReader) next() (string, error) {
	var lines []string
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			if line != "" || len(lines) > 0 {
				err = fmt.Errorf("in the middle of an event: %w", io.ErrUnexpectedEOF)
			}
			return "", err
		}
		if line == "\n" {
			break
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "event: ") || !strings.HasPrefix(lines[1], "data: ") {
		return "", fmt.Errorf("not an event: %q", lines)
	}
	name := strings.TrimPrefix(lines[0], "event: ")
	s.got.names = append(s.got.names, name)
	return name, s.got.apply(name, strings.TrimPrefix(lines[1], "data: "))
}

// wireEvent is the data of any event.
type wireEvent struct {
	Type    string
	Index   int
	Message struct {
		ID, Type, Role, Model string
		Content               []any
		StopReason            *string `json:"stop_reason"`
		Usage                 map[string]int
	}
	Block struct {
		Type, ID, Name, Text, Thinking, Signature string
		Input                                     map[string]any
	} `json:"content_block"`
	Delta map[string]any
	Usage map[string]int
	Error *wireErrorDetail
}

func (g *got) apply(name, data string) error {
	var e wireEvent
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		return fmt.Errorf("data %q: %w", data, err)
	}
	if e.Type != name || g.stopped || (g.id == "") != (name == "message_start") && name != "error" {
		return fmt.Errorf("%s %s after %v", name, data, g.names)
	}
	switch name {
	case "message_start":
		m := e.Message
		g.id, g.model = m.ID, m.Model
		if m.Type != "message" || m.Role != "assistant" || m.Content == nil || len(m.Content) > 0 || m.StopReason != nil || len(m.Usage) != 4 {
			return fmt.Errorf("message_start %s", data)
		}
	case "message_delta":
		if g.open || g.stopReason != "" {
			return fmt.Errorf("message_delta after %v", g.names)
		}
		g.stopReason, _ = e.Delta["stop_reason"].(string)
		g.usage = e.Usage
	case "message_stop":
		g.stopped = true
		if g.stopReason == "" {
			return fmt.Errorf("message_stop after %v", g.names)
		}
	case "error":
		g.fault = e.Error
	case "ping":
	default:
		return g.applyToBlock(e)
	}
	return nil
}

// applyToBlock applies an event of one content block.
func (g *got) applyToBlock(e wireEvent) error {
	starts := e.Type == "content_block_start"
	at := len(g.parts)
	if !starts {
		at--
	}
	if g.open == starts || e.Index != at {
		return fmt.Errorf("%s of block %d after %v", e.Type, e.Index, g.names)
	}
	switch e.Type {
	case "content_block_start":
		b := e.Block
		if b.Text+b.Thinking+b.Signature != "" || len(b.Input) > 0 {
			return fmt.Errorf("block %d starts with %+v", e.Index, b)
		}
		g.parts = append(g.parts, Part{Type: b.Type, ID: b.ID, Name: b.Name})
		g.open = true
	case "content_block_delta":
		return g.parts[e.Index].grow(e.Delta)
	case "content_block_stop":
		g.open = false
	default:
		return fmt.Errorf("event %q", e.Type)
	}
	return nil
}

// grow applies a delta object.
func (p *Part) grow(delta map[string]any) error {
	text := func(field string) string { s, _ := delta[field].(string); return s }
	kind := text("type")
	want := map[string]string{
		"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking", "input_json_delta": "tool_use",
	}[kind]
	if want != p.Type || len(delta) != 2 {
		return fmt.Errorf("delta %v in a %s block", delta, p.Type)
	}
	switch kind {
	case "text_delta":
		p.Text += text("text")
	case "thinking_delta":
		p.Text += text("thinking")
	case "signature_delta":
		p.Signature += text("signature")
	case "input_json_delta":
		p.Input = append(p.Input, text("partial_json")...)
	}
	return nil
}

// text joins the text parts.
func (g got) text() string { return Answer{Parts: g.parts}.Text() }
