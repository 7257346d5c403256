package anthropic

import (
	"fmt"
	"slices"

	"ocp/internal/prompt"
	"ocp/internal/wire"
)

// tools decodes the tools of a request, as far as its choice leaves them, and whether only
// one call is wanted.
func (d *decoder) tools(fields wire.Object, req *prompt.Request) error {
	tools, err := d.allTools(fields)
	if err != nil {
		return err
	}
	req.Tools = tools
	raw, ok := fields.Get("tool_choice")
	if !ok {
		return nil
	}
	choice, err := wire.AsObject(raw, "tool_choice")
	if err != nil {
		return err
	}
	kind, err := oneOf(choice, "tool_choice", "auto", "none", "any", "tool")
	if err != nil {
		return err
	}
	switch kind {
	case "any", "tool":
		return bad("tool_choice", fmt.Sprintf("type %q is not supported, a tool call cannot be forced: use auto or none", kind))
	case "none":
		req.Tools = nil
	}
	if raw, ok := choice.Get("disable_parallel_tool_use"); ok {
		if req.OneCall, err = wire.AsBool(raw, "tool_choice.disable_parallel_tool_use"); err != nil {
			return err
		}
	}
	d.rest(choice, "tool_choice", "type", "disable_parallel_tool_use")
	return nil
}

func (d *decoder) allTools(fields wire.Object) ([]prompt.Tool, error) {
	raw, ok := fields.Get("tools")
	if !ok {
		return nil, nil
	}
	list, err := wire.AsArray(raw, "tools")
	if err != nil {
		return nil, err
	}
	var tools []prompt.Tool
	for i, raw := range list {
		path := fmt.Sprintf("tools.%d", i)
		o, err := wire.AsObject(raw, path)
		if err != nil {
			return nil, err
		}
		tool, err := d.tool(o, path)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(tools, func(t prompt.Tool) bool { return t.Name == tool.Name }) {
			return nil, bad(path+".name", fmt.Sprintf("is %s, which another tool has", wire.Quote(tool.Name)))
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

// tool decodes a tool that the client runs and describes itself.
func (d *decoder) tool(o wire.Object, path string) (tool prompt.Tool, err error) {
	if _, ok := o.Get("type"); ok {
		if _, err := oneOf(o, path, "custom"); err != nil {
			return tool, err
		}
	}
	if tool.Name, err = matching(o, path, "name", toolName); err != nil {
		return tool, err
	}
	if tool.Description, err = optional(o, path, "description"); err != nil {
		return tool, err
	}
	raw, ok := o.Get("input_schema")
	if !ok {
		return tool, bad(path+".input_schema", "is required")
	}
	if err := dict(raw, path+".input_schema"); err != nil {
		return tool, err
	}
	if tool.Schema, err = prompt.ToolSchema(raw); err != nil {
		return tool, bad(path+".input_schema", err.Error())
	}
	d.rest(o, "tools", "type", "name", "description", "input_schema")
	return tool, nil
}
