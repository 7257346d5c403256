// Package openai is the OpenAI wire dialect, chat completions and responses: its
// requests, checked and turned into what a session is given; the events of a turn,
// turned into its answers and streams; and its errors. It does no I/O and knows nothing
// of sessions. What it makes of every field is in docs/api.md, which a test holds it to.
package openai

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unicode"

	"ocp/internal/prompt"
)

// ChatRequest is a chat completion request that was checked.
type ChatRequest struct {
	Prompt       prompt.Request
	Stop         []string // sequences that end the answer, before them
	Format       *Format  // what the answer must be; nil for any text
	Stream       bool
	IncludeUsage bool // a stream is to end with a chunk of usage
	// Ignored names the parameters that were given and have no effect, sorted.
	Ignored []string
}

// DecodeChat decodes the body of a chat completion request. What it knows must have the
// right type and a value that can be honoured, or be one of the parameters that Ignored
// reports; so are fields that it does not know. The error is an *Error that names the
// field at fault.
func DecodeChat(body []byte) (req ChatRequest, err error) {
	fields, err := parse(body)
	if err != nil {
		return ChatRequest{}, err
	}
	if req.Prompt.Model, err = decodeModel(fields); err != nil {
		return ChatRequest{}, err
	}
	t := newThread()
	if err = t.addMessages(fields); err != nil {
		return ChatRequest{}, err
	}
	if req.Prompt.Conversation, err = t.conversation("messages"); err != nil {
		return ChatRequest{}, err
	}
	if raw, ok := fields.get("reasoning_effort"); ok {
		if req.Prompt.Effort, err = decodeEffort(raw, "reasoning_effort"); err != nil {
			return ChatRequest{}, err
		}
	}
	if req.Prompt.MaxTokens, err = decodeLimit(fields, "max_tokens", "max_completion_tokens"); err != nil {
		return ChatRequest{}, err
	}
	if req.Stop, err = decodeStop(fields); err != nil {
		return ChatRequest{}, err
	}
	if err = decodeStreaming(fields, &req); err != nil {
		return ChatRequest{}, err
	}
	if req.Ignored, err = chatRules.apply(fields); err != nil {
		return ChatRequest{}, err
	}
	if err = req.decodeTools(fields); err != nil {
		return ChatRequest{}, err
	}
	if raw, ok := fields.get("response_format"); ok {
		if req.Format, err = decodeFormat(raw, "response_format", true); err != nil {
			return ChatRequest{}, err
		}
	}
	req.Format.steer(&req.Prompt.Conversation)
	req.Ignored = sorted(append(req.Ignored, t.ignored...))
	return req, nil
}

// sorted returns names in order, each once; nil for none.
func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// maxModel bounds the length of a model's name in bytes.
const maxModel = 256

func decodeModel(fields object) (string, error) {
	raw, ok := fields.get("model")
	if !ok {
		return "", badRequest("model", "model is required: GET /v1/models lists the names")
	}
	model, err := asString(raw, "model")
	if err != nil {
		return "", err
	}
	switch {
	case model == "":
		return "", badRequest("model", "model is empty: GET /v1/models lists the names")
	case len(model) > maxModel:
		return "", badRequest("model", fmt.Sprintf("model is longer than %d bytes", maxModel))
	}
	for _, r := range model {
		if unicode.IsControl(r) {
			return "", badRequest("model", "model has a control character in it")
		}
	}
	return model, nil
}

// decodeEffort returns the CLI's name for an effort.
func decodeEffort(raw json.RawMessage, param string) (string, error) {
	effort, err := asString(raw, param)
	if err != nil {
		return "", err
	}
	switch effort {
	case "none", "minimal", "low": // low is the least there is
		return "low", nil
	case "medium", "high", "xhigh", "max":
		return effort, nil
	}
	return "", badRequest(param, fmt.Sprintf("%s %s is not known: use none, minimal, low, medium, high, xhigh or max", param, quote(effort)))
}

// noLimit is more than any model can answer.
const noLimit = 1 << 30

// decodeLimit returns the least of the token limits given; 0 for none.
func decodeLimit(fields object, params ...string) (int, error) {
	limit := 0
	for _, param := range params {
		raw, ok := fields.get(param)
		if !ok {
			continue
		}
		n, err := asNumber(raw, param)
		switch {
		case err != nil:
			return 0, err
		case n != math.Trunc(n):
			return 0, wrongType(param, "an integer", raw)
		case n < 1:
			return 0, badRequest(param, param+" must be at least 1")
		}
		if n := int(min(n, noLimit)); limit == 0 || n < limit {
			limit = n
		}
	}
	return limit, nil
}

// maxStops is how many stop sequences the API takes.
const maxStops = 4

func decodeStop(fields object) ([]string, error) {
	const param = "stop"
	raw, ok := fields.get(param)
	if !ok {
		return nil, nil
	}
	list := []json.RawMessage{raw}
	switch typeOf(raw) {
	case typeString:
	case typeArray:
		var err error
		if list, err = asArray(raw, param); err != nil {
			return nil, err
		}
	default:
		return nil, wrongType(param, "a string or an array of strings", raw)
	}
	if len(list) > maxStops {
		return nil, badRequest(param, fmt.Sprintf("stop has %d sequences: at most %d are possible", len(list), maxStops))
	}
	var stops []string
	for i, raw := range list {
		path := param
		if typeOf(fields[param]) == typeArray {
			path = fmt.Sprintf("%s[%d]", param, i)
		}
		stop, err := asString(raw, path)
		if err != nil {
			return nil, err
		}
		if stop == "" {
			return nil, badRequest(path, path+" is empty: a stop sequence needs at least one character")
		}
		stops = append(stops, stop)
	}
	return stops, nil
}

func decodeStreaming(fields object, req *ChatRequest) (err error) {
	if raw, ok := fields.get("stream"); ok {
		if req.Stream, err = asBool(raw, "stream"); err != nil {
			return err
		}
	}
	raw, ok := fields.get("stream_options")
	if !ok {
		return nil
	}
	options, err := asObject(raw, "stream_options")
	if err != nil {
		return err
	}
	if raw, ok := options.get("include_usage"); ok {
		req.IncludeUsage, err = asBool(raw, "stream_options.include_usage")
	}
	return err
}
