package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"ocp/internal/prompt"
	"ocp/internal/wire"
)

// conversation decodes the system text and the messages, each as it was given. Texts
// of system messages, wherever they stand, join the system text.
func (d *decoder) conversation(fields wire.Object) (c prompt.Conversation, err error) {
	var system []string
	if raw, ok := fields.Get("system"); ok {
		if system, err = d.texts(raw, "system", "system"); err != nil {
			return c, err
		}
	}
	raw, ok := fields.Get("messages")
	if !ok {
		return c, bad("messages", "is required: send at least one user message")
	}
	list, err := wire.AsArray(raw, "messages")
	if err != nil {
		return c, err
	}
	if len(list) == 0 {
		return c, bad("messages", "is empty: send at least one user message")
	}
	var calls pairing
	for i, raw := range list {
		path := fmt.Sprintf("messages.%d", i)
		message, err := wire.AsObject(raw, path)
		if err != nil {
			return c, err
		}
		role, err := decodeRole(message, path)
		if err != nil {
			return c, err
		}
		d.rest(message, "messages", "role", "content")
		content, ok := message.Get("content")
		if !ok {
			return c, bad(path+".content", "is required: send a string or an array of blocks")
		}
		if role == "system" {
			texts, err := d.texts(content, path+".content", "messages.content")
			if err != nil {
				return c, err
			}
			system = append(system, texts...)
			continue
		}
		if err := calls.enter(prompt.Role(role), path); err != nil {
			return c, err
		}
		blocks, err := d.content(content, path+".content", prompt.Role(role), &calls)
		if err != nil {
			return c, err
		}
		c.Messages = append(c.Messages, prompt.Message{Role: prompt.Role(role), Content: blocks})
	}
	c.System = strings.Join(system, "\n\n")
	return c, calls.end()
}

func decodeRole(message wire.Object, path string) (string, error) {
	path += ".role"
	raw, ok := message.Get("role")
	if !ok {
		return "", bad(path, "is required: use user or assistant")
	}
	role, err := wire.AsString(raw, path)
	if err != nil {
		return "", err
	}
	switch role {
	case "user", "assistant", "system":
		return role, nil
	}
	return "", unknown(path, role, []string{"user", "assistant"})
}

// texts decodes a string or an array of text blocks, without empty ones.
func (d *decoder) texts(raw json.RawMessage, path, name string) ([]string, error) {
	switch wire.TypeOf(raw) {
	case wire.Text:
		text, err := wire.AsString(raw, path)
		if err != nil || text == "" {
			return nil, err
		}
		return []string{text}, nil
	case wire.Array:
	default:
		return nil, wire.WrongType(path, "a string or an array of text blocks", raw)
	}
	list, err := wire.AsArray(raw, path)
	if err != nil {
		return nil, err
	}
	var texts []string
	for i, raw := range list {
		path := fmt.Sprintf("%s.%d", path, i)
		block, err := wire.AsObject(raw, path)
		if err != nil {
			return nil, err
		}
		if _, err := oneOf(block, path, "text"); err != nil {
			return nil, err
		}
		text, err := d.text(block, path, name)
		if err != nil {
			return nil, err
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	return texts, nil
}

// text decodes the text of a text block. Its citations point into documents by the
// places that the upstream gave them, and are left behind.
func (d *decoder) text(block wire.Object, path, name string) (string, error) {
	d.rest(block, name, "type", "text")
	return required(block, path, "text")
}

// required returns a field that must be there and a string.
func required(o wire.Object, path, field string) (string, error) {
	path += "." + field
	raw, ok := o.Get(field)
	if !ok {
		return "", bad(path, "is required")
	}
	return wire.AsString(raw, path)
}

// optional returns a field that must be a string if it is there.
func optional(o wire.Object, path, field string) (string, error) {
	raw, ok := o.Get(field)
	if !ok {
		return "", nil
	}
	return wire.AsString(raw, path+"."+field)
}

// pairing checks that every tool_use has its one tool_result in the user message that
// follows, and the other way round: the upstream refuses a conversation where that is
// not so. Consecutive messages of one role count as one.
type pairing struct {
	role prompt.Role
	path string              // of the last message with a tool_use
	open []string            // ids of tool_use blocks whose results are to come
	seen map[string]struct{} // all ids so far
}

// enter begins a message.
func (p *pairing) enter(role prompt.Role, path string) error {
	if role == prompt.Assistant {
		if p.role == prompt.User {
			if err := p.end(); err != nil {
				return err
			}
		}
		p.path = path
	}
	p.role = role
	return nil
}

// use notes a tool_use.
func (p *pairing) use(id, path string) error {
	if _, ok := p.seen[id]; ok {
		return bad(path, fmt.Sprintf("is %s, which another tool_use has: ids must be unique", wire.Quote(id)))
	}
	if p.seen == nil {
		p.seen = map[string]struct{}{}
	}
	p.seen[id] = struct{}{}
	p.open = append(p.open, id)
	return nil
}

// result notes a tool_result.
func (p *pairing) result(id, path string) error {
	for i, open := range p.open {
		if open == id {
			p.open = append(p.open[:i:i], p.open[i+1:]...)
			return nil
		}
	}
	return bad(path, fmt.Sprintf("is %s: the message before has no tool_use of that id that waits for its result", wire.Quote(id)))
}

// end says which tool_use has no result.
func (p *pairing) end() error {
	if len(p.open) == 0 {
		return nil
	}
	return bad(p.path, fmt.Sprintf("tool_use %s has no tool_result in the user message that follows", wire.Quote(p.open[0])))
}
