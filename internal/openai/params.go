package openai

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
)

// rule checks the value of a field that is there. It says whether the field is one that
// has no effect.
type rule func(raw json.RawMessage, param string) (ignored bool, err error)

// rules are all the fields of a request that the API has. Fields that are not among
// them have no effect either.
type rules map[string]rule

// chatRules are the fields of a chat completion request.
var chatRules = rules{
	"model":                 read,
	"messages":              read,
	"stream":                read,
	"stream_options":        streamOptions,
	"reasoning_effort":      read,
	"max_tokens":            read,
	"max_completion_tokens": read,
	"stop":                  read,
	"response_format":       read,
	"parallel_tool_calls":   read,
	"tools":                 read,
	"tool_choice":           read,
	"function_call":         legacyChoice,
	"n":                     onlyOne,
	"modalities":            onlyText,
	"logprobs":              onlyFalse,
	"audio":                 never,
	"moderation":            never,

	"frequency_penalty":      ignoredIf(number),
	"functions":              ignoredIf(array),
	"logit_bias":             ignoredIf(dict),
	"metadata":               ignoredIf(dict),
	"prediction":             ignoredIf(dict),
	"presence_penalty":       ignoredIf(number),
	"prompt_cache_key":       ignoredIf(text),
	"prompt_cache_options":   ignoredIf(dict),
	"prompt_cache_retention": ignoredIf(text),
	"safety_identifier":      ignoredIf(text),
	"seed":                   ignoredIf(integer),
	"service_tier":           ignoredIf(text),
	"store":                  notStored,
	"temperature":            ignoredIf(number),
	"top_logprobs":           ignoredIf(integer),
	"top_p":                  ignoredIf(number),
	"user":                   ignoredIf(text),
	"verbosity":              ignoredIf(text),
	"web_search_options":     ignoredIf(dict),
}

// maxNamed bounds how many unknown fields are named.
const maxNamed = 32

// apply checks the fields of a request and returns the names of those given that have
// no effect.
func (r rules) apply(fields object) (ignored []string, err error) {
	unknown := 0
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		raw, ok := fields.get(name)
		if !ok {
			continue
		}
		check, known := r[name]
		if !known {
			if unknown++; unknown <= maxNamed {
				ignored = append(ignored, shown(name))
			}
			continue
		}
		without, err := check(raw, name)
		if err != nil {
			return nil, err
		}
		if without {
			ignored = append(ignored, name)
		}
	}
	return ignored, nil
}

// shown is a field's name as it can stand in a header.
func shown(name string) string {
	const most = 64
	if !plainName(name) || len(name) > most {
		return "?"
	}
	return name
}

// read is a field that is decoded, and checked, elsewhere.
func read(json.RawMessage, string) (bool, error) { return false, nil }

// ignoredIf is a field that has no effect if it passes the check.
func ignoredIf(check func(json.RawMessage, string) error) rule {
	return func(raw json.RawMessage, param string) (bool, error) { return true, check(raw, param) }
}

func onlyOne(raw json.RawMessage, param string) (bool, error) {
	n, err := asNumber(raw, param)
	if err == nil && n != 1 {
		err = unsupported(param, param+" must be 1: send one request for each answer")
	}
	return false, err
}

func onlyFalse(raw json.RawMessage, param string) (bool, error) {
	wanted, err := asBool(raw, param)
	if err == nil && wanted {
		err = unsupported(param, param+" is not to be had: leave the field out")
	}
	return false, err
}

func never(_ json.RawMessage, param string) (bool, error) {
	return false, unsupported(param, param+" is not supported: leave the field out")
}

// notStored is a wish that is granted if it is that nothing be kept.
func notStored(raw json.RawMessage, param string) (bool, error) { return asBool(raw, param) }

func streamOptions(raw json.RawMessage, param string) (bool, error) {
	options, err := asObject(raw, param)
	if err != nil {
		return false, err
	}
	obfuscation, ok := options.get("include_obfuscation")
	if !ok {
		return false, nil
	}
	return asBool(obfuscation, param+".include_obfuscation")
}

func onlyText(raw json.RawMessage, param string) (bool, error) {
	list, err := asArray(raw, param)
	if err != nil {
		return false, err
	}
	for i, raw := range list {
		path := fmt.Sprintf("%s[%d]", param, i)
		switch modality, err := asString(raw, path); {
		case err != nil:
			return false, err
		case modality != "text":
			return false, unsupported(param, fmt.Sprintf("%s is %s: only text is supported", path, quote(modality)))
		}
	}
	return false, nil
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
