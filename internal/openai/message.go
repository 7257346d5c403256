package openai

import (
	"fmt"

	"ocp/internal/prompt"
)

// addMessages adds the messages of a chat request.
func (t *thread) addMessages(fields object) error {
	raw, ok := fields.get("messages")
	if !ok {
		return badRequest("messages", "messages is required: send at least one user message")
	}
	list, err := asArray(raw, "messages")
	if err != nil {
		return err
	}
	for i, raw := range list {
		path := fmt.Sprintf("messages[%d]", i)
		message, err := asObject(raw, path)
		if err != nil {
			return err
		}
		if _, ok := message.get("name"); ok {
			t.ignored = append(t.ignored, "messages.name")
		}
		if err := t.addMessage(message, path); err != nil {
			return err
		}
	}
	return nil
}

func (t *thread) addMessage(message object, path string) error {
	raw, ok := message.get("role")
	if !ok {
		return badRequest(path+".role", path+".role is required: use system, developer, user, assistant or tool")
	}
	role, err := asString(raw, path+".role")
	if err != nil {
		return err
	}
	switch role {
	case "system", "developer":
		blocks, err := t.content(message, path, textOnly)
		if err == nil {
			t.system(blocks)
		}
		return err
	case "user":
		blocks, err := t.content(message, path, fromUser)
		if err != nil {
			return err
		}
		return t.say(prompt.User, blocks)
	case "assistant":
		return t.addAssistant(message, path)
	case "tool":
		return t.addToolMessage(message, path)
	case "function":
		return unsupported(path+".role", fmt.Sprintf("%s.role is %q: use tool_calls and tool messages instead", path, role))
	}
	return badRequest(path+".role", fmt.Sprintf("%s.role is %s: use system, developer, user, assistant or tool", path, quote(role)))
}

// addAssistant adds what an assistant message holds: text, a refusal, tool calls.
func (t *thread) addAssistant(message object, path string) error {
	for _, name := range []string{"function_call", "audio"} {
		if _, ok := message.get(name); ok {
			return unsupported(path+"."+name, fmt.Sprintf("%s.%s is not supported: use text and tool_calls", path, name))
		}
	}
	var blocks []prompt.Block
	if _, ok := message.get("content"); ok {
		var err error
		if blocks, err = t.content(message, path, fromAssistant); err != nil {
			return err
		}
	}
	if raw, ok := message.get("refusal"); ok {
		refusal, err := asString(raw, path+".refusal")
		if err != nil {
			return err
		}
		blocks = append(blocks, prompt.Text(refusal))
	}
	if err := t.say(prompt.Assistant, blocks); err != nil {
		return err
	}
	raw, ok := message.get("tool_calls")
	if !ok {
		return nil
	}
	calls, err := asArray(raw, path+".tool_calls")
	if err != nil {
		return err
	}
	for i, raw := range calls {
		path := fmt.Sprintf("%s.tool_calls[%d]", path, i)
		call, err := asObject(raw, path)
		if err != nil {
			return err
		}
		if err := t.addToolCall(call, path); err != nil {
			return err
		}
	}
	return nil
}

func (t *thread) addToolCall(call object, path string) error {
	if raw, ok := call.get("type"); ok {
		kind, err := asString(raw, path+".type")
		if err != nil {
			return err
		}
		if kind != "function" {
			return unsupported(path+".type", fmt.Sprintf("%s.type is %s: only functions are supported", path, quote(kind)))
		}
	}
	id, err := requiredString(call, "id", path)
	if err != nil {
		return err
	}
	raw, ok := call.get("function")
	if !ok {
		return badRequest(path+".function", path+".function is required")
	}
	function, err := asObject(raw, path+".function")
	if err != nil {
		return err
	}
	name, err := toolName(function, path+".function")
	if err != nil {
		return err
	}
	arguments, err := optionalString(function, "arguments", path+".function")
	if err != nil {
		return err
	}
	return t.call(id, name, arguments, path)
}

func (t *thread) addToolMessage(message object, path string) error {
	id, err := requiredString(message, "tool_call_id", path)
	if err != nil {
		return err
	}
	blocks, err := t.content(message, path, textOnly)
	if err != nil {
		return err
	}
	return t.result(id, joined(blocks), path+".tool_call_id")
}

// joined is the texts of blocks without a separator.
func joined(blocks []prompt.Block) string {
	text := ""
	for _, block := range blocks {
		text += block.Text
	}
	return text
}

// toolName returns a function's name, which must be one that the Messages API takes.
func toolName(function object, path string) (string, error) {
	const most = 128
	name, err := requiredString(function, "name", path)
	if err != nil {
		return "", err
	}
	if !plainName(name) || len(name) > most {
		return "", badRequest(path+".name", fmt.Sprintf("%s.name is %s: use 1 to %d of a-z, A-Z, 0-9, _ and -", path, quote(name), most))
	}
	return name, nil
}

// requiredString returns a field of the object at path, which must be a string with
// text.
func requiredString(o object, name, path string) (string, error) {
	s, err := optionalString(o, name, path)
	if err == nil && s == "" {
		err = badRequest(path+"."+name, fmt.Sprintf("%s.%s is required", path, name))
	}
	return s, err
}

// optionalString returns a field of the object at path, which is empty for the request
// itself. It must be a string if it is there.
func optionalString(o object, name, path string) (string, error) {
	raw, ok := o.get(name)
	if !ok {
		return "", nil
	}
	if path != "" {
		name = path + "." + name
	}
	return asString(raw, name)
}
