package anthropic

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"ocp/internal/wire"
)

// honoured are the parameters that have an effect, or are checked for one.
var honoured = []string{
	"max_tokens", "messages", "model", "output_config", "stop_sequences", "stream", "system", "thinking", "thread", "tool_choice", "tools",
}

// ignoredParams are the parameters that are known to have no effect: the CLI has no
// way to set them. Their types are checked all the same. A parameter that is in no
// list is ignored too.
var ignoredParams = map[string]func(raw json.RawMessage, path string) error{
	"cache_control":      dict,
	"context_management": dict,
	"diagnostics":        dict,
	"inference_geo":      text,
	"metadata":           dict,
	"service_tier":       text,
	"speed":              text,
	"temperature":        number,
	"top_k":              whole,
	"top_p":              number,
}

// refusedParams are the parameters that would change what the answer is.
var refusedParams = map[string]string{
	"container":     "is not supported: leave it out",
	"mcp_servers":   "is not supported: send the tools themselves",
	"output_format": "is not supported: ask for the format in the system text",
}

// params goes through the parameters that are not decoded elsewhere.
func (d *decoder) params(fields wire.Object) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		raw, given := fields.Get(name)
		if !given || slices.Contains(honoured, name) {
			continue
		}
		if message, refused := refusedParams[name]; refused {
			return bad(name, message)
		}
		if check := ignoredParams[name]; check != nil {
			if err := check(raw, name); err != nil {
				return err
			}
		}
		d.ignore(name)
	}
	return nil
}

// Budgets of thinking below which an effort is enough for them.
const (
	leastBudget  = 1024 // this API's own
	lowBudget    = 4096
	mediumBudget = 16384
)

// effort returns the CLI's name for the effort asked for; empty if none is. What
// output_config says goes before what follows from thinking.
func (d *decoder) effort(fields wire.Object, maxTokens int) (string, error) {
	effort, err := d.thinking(fields, maxTokens)
	if err != nil {
		return "", err
	}
	raw, ok := fields.Get("output_config")
	if !ok {
		return effort, nil
	}
	config, err := wire.AsObject(raw, "output_config")
	if err != nil {
		return "", err
	}
	if _, ok := config.Get("format"); ok {
		return "", bad("output_config.format", "is not supported: ask for the format in the system text")
	}
	d.rest(config, "output_config", "effort", "format")
	raw, ok = config.Get("effort")
	if !ok {
		return effort, nil
	}
	const path = "output_config.effort"
	asked, err := wire.AsString(raw, path)
	if err != nil {
		return "", err
	}
	levels := []string{"low", "medium", "high", "xhigh", "max"}
	if !slices.Contains(levels, asked) {
		return "", unknown(path, asked, levels)
	}
	return asked, nil
}

func (d *decoder) thinking(fields wire.Object, maxTokens int) (string, error) {
	raw, ok := fields.Get("thinking")
	if !ok {
		return "", nil
	}
	config, err := wire.AsObject(raw, "thinking")
	if err != nil {
		return "", err
	}
	kind, err := oneOf(config, "thinking", "enabled", "disabled", "adaptive", "between_tools")
	if err != nil {
		return "", err
	}
	switch kind {
	case "adaptive":
		d.rest(config, "thinking", "type")
		return "high", nil // the effort that this API has by default
	case "enabled":
		d.rest(config, "thinking", "type", "budget_tokens")
		return budgetEffort(config, maxTokens)
	}
	d.rest(config, "thinking", "type")
	return "low", nil
}

func budgetEffort(config wire.Object, maxTokens int) (string, error) {
	const path = "thinking.budget_tokens"
	raw, ok := config.Get("budget_tokens")
	if !ok {
		return "", bad(path, "is required with thinking enabled")
	}
	budget, err := integer(raw, path)
	switch {
	case err != nil:
		return "", err
	case budget < leastBudget:
		return "", bad(path, fmt.Sprintf("must be at least %d", leastBudget))
	case maxTokens > 0 && budget >= maxTokens:
		return "", bad(path, "must be less than max_tokens")
	case budget < lowBudget:
		return "low", nil
	case budget < mediumBudget:
		return "medium", nil
	}
	return "high", nil
}

// oneOf returns an object's type, which must be one of those given.
func oneOf(o wire.Object, path string, kinds ...string) (string, error) {
	path += ".type"
	raw, ok := o.Get("type")
	if !ok {
		return "", bad(path, "is required: use "+list(kinds))
	}
	kind, err := wire.AsString(raw, path)
	if err != nil {
		return "", err
	}
	if !slices.Contains(kinds, kind) {
		return "", unknown(path, kind, kinds)
	}
	return kind, nil
}

func unknown(path, value string, known []string) *Error {
	return bad(path, fmt.Sprintf("is %s: use %s", wire.Quote(value), list(known)))
}

// list words alternatives.
func list(words []string) string {
	s := words[0]
	for i, word := range words[1:] {
		if i == len(words)-2 {
			s += " or " + word
		} else {
			s += ", " + word
		}
	}
	return s
}

func integer(raw json.RawMessage, path string) (int, error) {
	n, err := wire.AsNumber(raw, path)
	switch {
	case err != nil:
		return 0, err
	case n != math.Trunc(n):
		return 0, bad(path, "must be an integer")
	case math.Abs(n) > 1<<31:
		return 0, bad(path, "is out of range")
	}
	return int(n), nil
}

func whole(raw json.RawMessage, path string) error {
	_, err := integer(raw, path)
	return err
}

func number(raw json.RawMessage, path string) error {
	_, err := wire.AsNumber(raw, path)
	return err
}

func text(raw json.RawMessage, path string) error {
	_, err := wire.AsString(raw, path)
	return err
}

func dict(raw json.RawMessage, path string) error {
	_, err := wire.AsObject(raw, path)
	return err
}
