package openai

import (
	"fmt"
	"slices"

	"ocp/internal/prompt"
)

// decodeTools reads the tools of a chat completion request, as far as its choice leaves
// them, and whether only one call is wanted.
func (r *ChatRequest) decodeTools(fields object) (err error) {
	if err := checkToolChoice(fields); err != nil {
		return err
	}
	if raw, ok := fields.get("parallel_tool_calls"); ok {
		parallel, err := asBool(raw, "parallel_tool_calls")
		if err != nil {
			return err
		}
		r.Prompt.OneCall = !parallel
	}
	raw, ok := fields.get("tools")
	if !ok {
		return nil
	}
	list, err := asArray(raw, "tools")
	if err != nil {
		return err
	}
	var tools []prompt.Tool
	for i, raw := range list {
		path := fmt.Sprintf("tools[%d]", i)
		o, err := asObject(raw, path)
		if err != nil {
			return err
		}
		tool, err := r.decodeTool(o, path)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(tools, func(t prompt.Tool) bool { return t.Name == tool.Name }) {
			return badRequest(path+".function.name", fmt.Sprintf("%s.function.name is %s, which another tool has", path, quote(tool.Name)))
		}
		tools = append(tools, tool)
	}
	r.Prompt.Tools, err = chosen(fields, tools)
	return err
}

func (r *ChatRequest) decodeTool(o object, path string) (tool prompt.Tool, err error) {
	kind, err := requiredString(o, "type", path)
	if err != nil {
		return tool, err
	}
	if kind != "function" {
		return tool, unsupported(path+".type", fmt.Sprintf("%s.type is %s: only functions are supported", path, quote(kind)))
	}
	path += ".function"
	raw, ok := o.get("function")
	if !ok {
		return tool, badRequest(path, path+" is required")
	}
	function, err := asObject(raw, path)
	if err != nil {
		return tool, err
	}
	if tool.Name, err = toolName(function, path); err != nil {
		return tool, err
	}
	if tool.Description, err = optionalString(function, "description", path); err != nil {
		return tool, err
	}
	if strict, ok := function.get("strict"); ok {
		wanted, err := asBool(strict, path+".strict")
		if err != nil {
			return tool, err
		}
		if wanted {
			r.Ignored = append(r.Ignored, "tools.function.strict")
		}
	}
	raw, ok = function.get("parameters")
	if !ok {
		raw = []byte("{}")
	}
	if _, err := asObject(raw, path+".parameters"); err != nil {
		return tool, err
	}
	if tool.Schema, err = prompt.ToolSchema(raw); err != nil {
		return tool, badRequest(path+".parameters", path+".parameters "+err.Error())
	}
	return tool, nil
}

// chosen are the tools that a choice, which was checked, leaves.
func chosen(fields object, tools []prompt.Tool) ([]prompt.Tool, error) {
	raw, ok := fields.get("tool_choice")
	if !ok {
		return tools, nil
	}
	if string(raw) == `"none"` {
		return nil, nil
	}
	if typeOf(raw) != typeObject {
		return tools, nil
	}
	choice, err := asObject(raw, "tool_choice")
	if err != nil {
		return nil, err
	}
	return allowed(choice, tools)
}

// allowed are the tools that an allowed_tools choice names.
func allowed(choice object, tools []prompt.Tool) ([]prompt.Tool, error) {
	path := "tool_choice"
	if raw, ok := choice.get("allowed_tools"); ok {
		path += ".allowed_tools"
		var err error
		if choice, err = asObject(raw, path); err != nil {
			return nil, err
		}
	}
	if raw, ok := choice.get("mode"); ok && string(raw) == `"none"` {
		return nil, nil
	}
	raw, ok := choice.get("tools")
	if !ok {
		return nil, badRequest(path+".tools", path+".tools is required")
	}
	names, err := toolNames(raw, path+".tools")
	if err != nil {
		return nil, err
	}
	var kept []prompt.Tool
	for _, tool := range tools {
		if slices.Contains(names, tool.Name) {
			kept = append(kept, tool)
		}
	}
	return kept, nil
}
