package openai

import (
	"encoding/json"
	"fmt"

	"ocp/internal/prompt"
)

// ResponsesRequest is a responses request that was checked. There is no state between
// requests: each holds its whole conversation.
type ResponsesRequest struct {
	Prompt prompt.Request
	Format *Format // what the answer must be; nil for any text
	Stream bool
	// Ignored names the parameters that were given and have no effect, sorted.
	Ignored []string

	echo echo
}

// echo is what a response repeats of its request.
type echo struct {
	instructions, metadata, format json.RawMessage // each in one line; nil if absent
}

// responsesRules are the fields of a responses request.
var responsesRules = rules{
	"model":                read,
	"input":                read,
	"instructions":         read,
	"max_output_tokens":    read,
	"metadata":             echoed,
	"stream":               read,
	"stream_options":       streamOptions,
	"reasoning":            read,
	"text":                 read,
	"tool_choice":          read,
	"background":           onlyFalse,
	"truncation":           truncation,
	"previous_response_id": noState,
	"conversation":         noState,
	"prompt":               never,
	"moderation":           never,

	"access_programs":        ignoredIf(anything),
	"context_management":     ignoredIf(array),
	"image":                  ignoredIf(dict),
	"include":                ignoredIf(array),
	"max_tool_calls":         ignoredIf(integer),
	"parallel_tool_calls":    ignoredIf(boolean),
	"prompt_cache_key":       ignoredIf(text),
	"prompt_cache_options":   ignoredIf(dict),
	"prompt_cache_retention": ignoredIf(text),
	"safety_identifier":      ignoredIf(text),
	"service_tier":           ignoredIf(text),
	"store":                  notStored,
	"temperature":            ignoredIf(number),
	"tools":                  ignoredTools,
	"top_logprobs":           ignoredIf(integer),
	"top_p":                  ignoredIf(number),
	"user":                   ignoredIf(text),
}

// DecodeResponses decodes the body of a responses request, as strictly as DecodeChat
// does that of a chat completion request.
func DecodeResponses(body []byte) (req ResponsesRequest, err error) {
	fields, err := parse(body)
	if err != nil {
		return ResponsesRequest{}, err
	}
	if req.Prompt.Model, err = decodeModel(fields); err != nil {
		return ResponsesRequest{}, err
	}
	t := newThread()
	if err = t.addInput(fields); err != nil {
		return ResponsesRequest{}, err
	}
	if req.Prompt.Conversation, err = t.conversation("input"); err != nil {
		return ResponsesRequest{}, err
	}
	if req.Prompt.MaxTokens, err = decodeLimit(fields, "max_output_tokens"); err != nil {
		return ResponsesRequest{}, err
	}
	if raw, ok := fields.get("stream"); ok {
		if req.Stream, err = asBool(raw, "stream"); err != nil {
			return ResponsesRequest{}, err
		}
	}
	if err = req.decodeReasoning(fields, t); err != nil {
		return ResponsesRequest{}, err
	}
	if req.Ignored, err = responsesRules.apply(fields); err != nil {
		return ResponsesRequest{}, err
	}
	if err = checkToolChoice(fields); err != nil {
		return ResponsesRequest{}, err
	}
	if err = req.decodeText(fields, t); err != nil {
		return ResponsesRequest{}, err
	}
	req.Format.steer(&req.Prompt.Conversation)
	req.Ignored = sorted(append(req.Ignored, t.ignored...))
	req.echo.instructions = oneLine(fields["instructions"])
	req.echo.metadata = oneLine(fields["metadata"])
	return req, nil
}

// decodeReasoning reads how hard the model is to think.
func (r *ResponsesRequest) decodeReasoning(fields object, t *thread) error {
	raw, ok := fields.get("reasoning")
	if !ok {
		return nil
	}
	reasoning, err := asObject(raw, "reasoning")
	if err != nil {
		return err
	}
	for name := range reasoning {
		raw, ok := reasoning.get(name)
		switch {
		case !ok:
		case name != "effort":
			t.ignored = append(t.ignored, "reasoning."+shown(name))
		default:
			if r.Prompt.Effort, err = decodeEffort(raw, "reasoning.effort"); err != nil {
				return err
			}
		}
	}
	return nil
}

// decodeText reads of what format the answer is to be.
func (r *ResponsesRequest) decodeText(fields object, t *thread) error {
	raw, ok := fields.get("text")
	if !ok {
		return nil
	}
	config, err := asObject(raw, "text")
	if err != nil {
		return err
	}
	for name := range config {
		raw, ok := config.get(name)
		switch {
		case !ok:
		case name != "format":
			t.ignored = append(t.ignored, "text."+shown(name))
		default:
			if r.Format, err = decodeFormat(raw, "text.format", false); err != nil {
				return err
			}
			r.echo.format = oneLine(raw)
		}
	}
	return nil
}

// maxMetadata is how many pairs the API takes.
const maxMetadata = 16

// echoed is metadata: pairs that come back in the response.
func echoed(raw json.RawMessage, param string) (bool, error) {
	pairs, err := asObject(raw, param)
	if err != nil {
		return false, err
	}
	if len(pairs) > maxMetadata {
		return false, badRequest(param, fmt.Sprintf("%s has %d pairs: at most %d are possible", param, len(pairs), maxMetadata))
	}
	for name, raw := range pairs {
		if typeOf(raw) != typeString {
			return false, wrongType(param+"."+shown(name), string(typeString), raw)
		}
	}
	return false, nil
}

func truncation(raw json.RawMessage, param string) (bool, error) {
	kind, err := asString(raw, param)
	return kind != "disabled", err
}

func noState(_ json.RawMessage, param string) (bool, error) {
	return false, unsupported(param, param+" is not supported: nothing is kept between requests, send the whole conversation as input")
}

func anything(json.RawMessage, string) error { return nil }
