package openai

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
)

// ignoredParams are the parameters that are taken and have no effect: the CLI has no
// way to set them. Their types are checked all the same.
var ignoredParams = map[string]func(json.RawMessage, string) error{
	"frequency_penalty":      number,
	"functions":              array,
	"logit_bias":             dict,
	"max_completion_tokens":  integer,
	"max_tokens":             integer,
	"metadata":               dict,
	"parallel_tool_calls":    boolean,
	"prediction":             dict,
	"presence_penalty":       number,
	"prompt_cache_key":       text,
	"prompt_cache_retention": text,
	"safety_identifier":      text,
	"seed":                   integer,
	"service_tier":           text,
	"stop":                   textOrTexts,
	"store":                  boolean,
	"temperature":            number,
	"tools":                  array,
	"top_logprobs":           integer,
	"top_p":                  number,
	"user":                   text,
	"verbosity":              text,
	"web_search_options":     dict,
}

// ignored returns the names of the parameters given that have no effect, sorted.
func ignored(fields object) (names []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(ignoredParams)) {
		raw, ok := fields.get(name)
		if !ok {
			continue
		}
		if err := ignoredParams[name](raw, name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// checkUnsupported refuses the parameters that would change what the answer is, if
// they ask for anything but what is always given.
func checkUnsupported(fields object) error {
	for _, param := range []struct {
		name  string
		check func(json.RawMessage, string) error
	}{
		{"n", onlyOne},
		{"logprobs", onlyFalse},
		{"audio", never},
		{"modalities", onlyText},
		{"response_format", onlyTextFormat},
		{"tool_choice", unforced},
		{"function_call", unforced},
	} {
		if raw, ok := fields.get(param.name); ok {
			if err := param.check(raw, param.name); err != nil {
				return err
			}
		}
	}
	return nil
}

func onlyOne(raw json.RawMessage, param string) error {
	n, err := asNumber(raw, param)
	if err == nil && n != 1 {
		err = unsupported(param, param+" must be 1: send one request for each answer")
	}
	return err
}

func onlyFalse(raw json.RawMessage, param string) error {
	wanted, err := asBool(raw, param)
	if err == nil && wanted {
		err = unsupported(param, param+" are not to be had: leave the field out")
	}
	return err
}

func never(_ json.RawMessage, param string) error {
	return unsupported(param, param+" is not supported: leave the field out")
}

func onlyText(raw json.RawMessage, param string) error {
	list, err := asArray(raw, param)
	if err != nil {
		return err
	}
	for i, raw := range list {
		path := fmt.Sprintf("%s[%d]", param, i)
		switch modality, err := asString(raw, path); {
		case err != nil:
			return err
		case modality != "text":
			return unsupported(param, fmt.Sprintf("%s is %s: only text is supported", path, quote(modality)))
		}
	}
	return nil
}

func onlyTextFormat(raw json.RawMessage, param string) error {
	format, err := asObject(raw, param)
	if err != nil {
		return err
	}
	raw, ok := format.get("type")
	if !ok {
		return badRequest(param+".type", param+".type is required: use text")
	}
	kind, err := asString(raw, param+".type")
	if err == nil && kind != "text" {
		err = unsupported(param, fmt.Sprintf("%s.type is %s: only text is supported", param, quote(kind)))
	}
	return err
}

// unforced takes a choice of tools that plain text satisfies.
func unforced(raw json.RawMessage, param string) error {
	var choice string
	if typeOf(raw) == typeString {
		var err error
		if choice, err = asString(raw, param); err != nil {
			return err
		}
	}
	if choice == "auto" || choice == "none" {
		return nil
	}
	return unsupported(param, param+" cannot be forced: use auto or none")
}

func number(raw json.RawMessage, param string) error {
	_, err := asNumber(raw, param)
	return err
}

func integer(raw json.RawMessage, param string) error {
	n, err := asNumber(raw, param)
	if err == nil && n != math.Trunc(n) {
		err = wrongType(param, "an integer", raw)
	}
	return err
}

func boolean(raw json.RawMessage, param string) error {
	_, err := asBool(raw, param)
	return err
}

func text(raw json.RawMessage, param string) error {
	_, err := asString(raw, param)
	return err
}

func array(raw json.RawMessage, param string) error {
	_, err := asArray(raw, param)
	return err
}

func dict(raw json.RawMessage, param string) error {
	_, err := asObject(raw, param)
	return err
}

func textOrTexts(raw json.RawMessage, param string) error {
	if typeOf(raw) != typeArray {
		if typeOf(raw) != typeString {
			return wrongType(param, "a string or an array of strings", raw)
		}
		return text(raw, param)
	}
	list, err := asArray(raw, param)
	if err != nil {
		return err
	}
	for i, raw := range list {
		if err := text(raw, fmt.Sprintf("%s[%d]", param, i)); err != nil {
			return err
		}
	}
	return nil
}
