package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"ocp/internal/prompt"
	"ocp/internal/wire"
)

// thread collects the messages of a request. It sees to it that every tool call has its
// result right behind it, as the Messages API demands.
type thread struct {
	prompt.Builder
	ids     map[string]bool // of all calls so far, as they are sent on
	open    []openCall      // calls of the last assistant message that have no result yet
	settled bool            // one of that message's calls has a result
	ignored []string        // names of fields that have no effect
}

// openCall is a tool call that waits for its result.
type openCall struct {
	id   string // the client's
	sent string // as it is sent on
	path string
}

func newThread() *thread { return &thread{ids: map[string]bool{}} }

// say adds a message of a user or the assistant, to which no call may be open.
func (t *thread) say(role prompt.Role, blocks []prompt.Block) error {
	if err := t.noneOpen(); err != nil {
		return err
	}
	t.AddBlocks(role, blocks...)
	return nil
}

// system adds a system text; it counts wherever it stands.
func (t *thread) system(blocks []prompt.Block) {
	for _, block := range blocks {
		t.AddSystem(block.Text)
	}
}

// call adds a tool call to the assistant message that is last, or is begun with it.
func (t *thread) call(id, name, arguments, path string) error {
	if t.settled {
		if err := t.noneOpen(); err != nil {
			return err
		}
	}
	for _, other := range t.open {
		if other.id == id {
			return badRequest(path, fmt.Sprintf("%s has the id %s of another call of its message", path, quote(id)))
		}
	}
	input, err := callInput(arguments, path)
	if err != nil {
		return err
	}
	sent := t.newID(id)
	t.open, t.settled = append(t.open, openCall{id, sent, path}), false
	t.AddBlocks(prompt.Assistant, rawBlock("tool_use", map[string]any{
		"type": "tool_use", "id": sent, "name": name, "input": input,
	}))
	return nil
}

// newID returns an id that the Messages API takes and that no other call has: the
// client's own if it is one.
func (t *thread) newID(id string) string {
	sent := id
	for n := len(t.ids) + 1; !plainName(sent) || t.ids[sent]; n++ {
		sent = fmt.Sprintf("call_%d", n)
	}
	t.ids[sent] = true
	return sent
}

// result adds the result of a call, whose id stands at path.
func (t *thread) result(id, text, path string) error {
	for i, call := range t.open {
		if call.id != id {
			continue
		}
		t.open, t.settled = append(t.open[:i:i], t.open[i+1:]...), true
		block := map[string]any{"type": "tool_result", "tool_use_id": call.sent}
		if text != "" {
			block["content"] = text
		}
		t.AddBlocks(prompt.User, rawBlock("tool_result", block))
		return nil
	}
	return badRequest(path, fmt.Sprintf("%s is %s: the assistant's last message has no such tool call, or it has its result already", path, quote(id)))
}

// noneOpen is an error if a call has no result.
func (t *thread) noneOpen() error {
	if len(t.open) == 0 {
		t.settled = false
		return nil
	}
	call := t.open[0]
	return badRequest(call.path, fmt.Sprintf("the tool call %s has no result: it must follow the call before any other message", quote(call.id)))
}

// conversation returns what was collected. Its errors name param.
func (t *thread) conversation(param string) (prompt.Conversation, error) {
	if err := t.noneOpen(); err != nil {
		return prompt.Conversation{}, err
	}
	c, err := t.Conversation()
	if err != nil {
		return prompt.Conversation{}, badRequest(param, err.Error())
	}
	return c, nil
}

// callInput is the input of a tool call as an object. Empty arguments are none.
func callInput(arguments, path string) (json.RawMessage, error) {
	if arguments == "" {
		return json.RawMessage("{}"), nil
	}
	if _, err := wire.Parse([]byte(arguments)); err != nil {
		fault := strings.TrimPrefix(err.Error(), "the request body ")
		return nil, badRequest(path, fmt.Sprintf("the text of the arguments in %s %s", path, fault))
	}
	return json.RawMessage(arguments), nil
}

// rawBlock makes a block of the Messages API's form out of values that always encode.
func rawBlock(kind string, value map[string]any) prompt.Block {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return prompt.Block{Type: kind, Raw: raw}
}

// plainName reports whether the Messages API takes a name as the id or name of a tool.
func plainName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return s != ""
}
