package openai

import (
	"encoding/json"
	"fmt"
	"slices"
)

// The choice of a tool can be free, or be none. No call can be forced.

// ignoredTools checks the tools of a request for a response, whose answer is always text.
func ignoredTools(raw json.RawMessage, param string) (bool, error) {
	names, err := toolNames(raw, param)
	return len(names) > 0, err
}

// toolNames returns the name of each tool offered; of one without a name its type.
// Chat completions hold the name in an object called like the type, responses do not.
func toolNames(raw json.RawMessage, param string) ([]string, error) {
	list, err := asArray(raw, param)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i, raw := range list {
		path := fmt.Sprintf("%s[%d]", param, i)
		tool, err := asObject(raw, path)
		if err != nil {
			return nil, err
		}
		kind, err := requiredString(tool, "type", path)
		if err != nil {
			return nil, err
		}
		if names[i], err = nameOf(tool, kind, path); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// nameOf is the name in a tool, or in the choice of one.
func nameOf(tool object, kind, path string) (string, error) {
	if kind != "function" && kind != "custom" {
		return kind, nil
	}
	if raw, ok := tool.get(kind); ok {
		path += "." + kind
		var err error
		if tool, err = asObject(raw, path); err != nil {
			return "", err
		}
	}
	return requiredString(tool, "name", path)
}

// checkToolChoice refuses a choice that text does not satisfy.
func checkToolChoice(fields object) error {
	const param = "tool_choice"
	raw, ok := fields.get(param)
	if !ok {
		return nil
	}
	var offered []string
	if tools, ok := fields.get("tools"); ok {
		offered, _ = toolNames(tools, "tools") // checked by its rule
	}
	switch typeOf(raw) {
	case typeString:
		return freeChoice(raw, param)
	case typeObject:
	default:
		return wrongType(param, "a string or an object", raw)
	}
	choice, err := asObject(raw, param)
	if err != nil {
		return err
	}
	kind, err := requiredString(choice, "type", param)
	if err != nil {
		return err
	}
	if kind == "allowed_tools" {
		return allowedTools(choice, param)
	}
	name, err := nameOf(choice, kind, param)
	if err != nil {
		return err
	}
	if !slices.Contains(offered, name) {
		return badRequest(param, fmt.Sprintf("tool_choice names %s, which is not in tools", quote(name)))
	}
	return forced(param)
}

// allowedTools takes a choice among some of the tools, if none need be chosen.
func allowedTools(choice object, param string) error {
	if raw, ok := choice.get("allowed_tools"); ok {
		param += ".allowed_tools"
		var err error
		if choice, err = asObject(raw, param); err != nil {
			return err
		}
	}
	raw, ok := choice.get("mode")
	if !ok {
		return badRequest(param+".mode", param+".mode is required")
	}
	return freeChoice(raw, param+".mode")
}

// freeChoice takes auto and none.
func freeChoice(raw json.RawMessage, param string) error {
	choice, err := asString(raw, param)
	if err != nil {
		return err
	}
	switch choice {
	case "auto", "none":
		return nil
	case "required":
		return forced(param)
	}
	return badRequest(param, fmt.Sprintf("%s is %s: use auto or none", param, quote(choice)))
}

func forced(param string) *Error {
	return unsupported(param, "tool_choice cannot force a tool to be called: use auto or none")
}

// legacyChoice is that of functions, before there were tools.
func legacyChoice(raw json.RawMessage, param string) (bool, error) {
	if typeOf(raw) == typeString {
		return false, freeChoice(raw, param)
	}
	if _, err := asObject(raw, param); err != nil {
		return false, err
	}
	return false, forced(param)
}
