package openai

import (
	"fmt"

	"ocp/internal/prompt"
)

// addInput adds the instructions and the input of a responses request.
func (t *thread) addInput(fields object) error {
	instructions, err := optionalString(fields, "instructions", "")
	if err != nil {
		return err
	}
	t.AddSystem(instructions)
	raw, ok := fields.get("input")
	if !ok {
		return badRequest("input", "input is required: send a string or an array of items")
	}
	switch typeOf(raw) {
	case typeString:
		text, err := asString(raw, "input")
		if err != nil {
			return err
		}
		return t.say(prompt.User, []prompt.Block{prompt.Text(text)})
	case typeArray:
	default:
		return wrongType("input", "a string or an array of items", raw)
	}
	list, err := asArray(raw, "input")
	if err != nil {
		return err
	}
	for i, raw := range list {
		path := fmt.Sprintf("input[%d]", i)
		item, err := asObject(raw, path)
		if err != nil {
			return err
		}
		if err := t.addItem(item, path); err != nil {
			return err
		}
	}
	return nil
}

func (t *thread) addItem(item object, path string) error {
	kind, err := optionalString(item, "type", path)
	if err != nil {
		return err
	}
	switch kind {
	case "", "message":
		return t.addInputMessage(item, path)
	case "function_call":
		return t.addFunctionCall(item, path)
	case "function_call_output":
		return t.addFunctionOutput(item, path)
	case "reasoning": // only the model that thought it could use it
		t.ignored = append(t.ignored, "input.reasoning")
		return nil
	case "item_reference":
		_, err := noState(nil, path)
		return err
	}
	return unsupported(path+".type", fmt.Sprintf("%s.type is %s: use message, function_call or function_call_output", path, quote(kind)))
}

func (t *thread) addInputMessage(item object, path string) error {
	role, err := requiredString(item, "role", path)
	if err != nil {
		return err
	}
	switch role {
	case "system", "developer":
		blocks, err := t.content(item, path, textOnly)
		if err == nil {
			t.system(blocks)
		}
		return err
	case "user":
		blocks, err := t.content(item, path, fromUser)
		if err != nil {
			return err
		}
		return t.say(prompt.User, blocks)
	case "assistant":
		blocks, err := t.content(item, path, fromAssistant)
		if err != nil {
			return err
		}
		return t.say(prompt.Assistant, blocks)
	}
	return badRequest(path+".role", fmt.Sprintf("%s.role is %s: use system, developer, user or assistant", path, quote(role)))
}

func (t *thread) addFunctionCall(item object, path string) error {
	id, err := requiredString(item, "call_id", path)
	if err != nil {
		return err
	}
	name, err := toolName(item, path)
	if err != nil {
		return err
	}
	arguments, err := optionalString(item, "arguments", path)
	if err != nil {
		return err
	}
	return t.call(id, name, arguments, path)
}

func (t *thread) addFunctionOutput(item object, path string) error {
	id, err := requiredString(item, "call_id", path)
	if err != nil {
		return err
	}
	raw, ok := item.get("output")
	if !ok {
		return badRequest(path+".output", path+".output is required: send a string or an array of parts")
	}
	blocks, err := t.parts(raw, path+".output", textOnly)
	if err != nil {
		return err
	}
	return t.result(id, joined(blocks), path+".call_id")
}
