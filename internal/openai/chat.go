// Package openai is the OpenAI wire dialect: its requests, checked and turned into
// what a session is given; the events of a turn, turned into its answers and streams;
// and its errors. It does no I/O and knows nothing of sessions.
package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode"

	"ocp/internal/prompt"
)

// ChatRequest is a chat completion request that was checked.
type ChatRequest struct {
	Prompt       prompt.Request
	Stream       bool
	IncludeUsage bool // a stream is to end with a chunk of usage
	// Ignored names the parameters that were given and have no effect, sorted.
	Ignored []string
}

// DecodeChat decodes the body of a chat completion request. Fields it does not know
// are left alone; what it knows must have the right type and a value that can be
// honoured, or be one of the parameters that Ignored reports. The error is an *Error
// that names the field at fault.
func DecodeChat(body []byte) (ChatRequest, error) {
	fields, err := parse(body)
	if err != nil {
		return ChatRequest{}, err
	}
	var req ChatRequest
	if req.Prompt.Model, err = decodeModel(fields); err != nil {
		return ChatRequest{}, err
	}
	named := false
	if req.Prompt.Conversation, named, err = decodeMessages(fields); err != nil {
		return ChatRequest{}, err
	}
	if req.Prompt.Effort, err = decodeEffort(fields); err != nil {
		return ChatRequest{}, err
	}
	if err := decodeStreaming(fields, &req); err != nil {
		return ChatRequest{}, err
	}
	if err := checkUnsupported(fields); err != nil {
		return ChatRequest{}, err
	}
	if req.Ignored, err = ignored(fields); err != nil {
		return ChatRequest{}, err
	}
	if named {
		req.Ignored = append(req.Ignored, "messages.name")
		slices.Sort(req.Ignored)
	}
	return req, nil
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

// decodeEffort returns the CLI's name for the effort asked for; empty if none is.
func decodeEffort(fields object) (string, error) {
	const param = "reasoning_effort"
	raw, ok := fields.get(param)
	if !ok {
		return "", nil
	}
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
	return "", badRequest(param, fmt.Sprintf("reasoning_effort %s is not known: use none, minimal, low, medium, high, xhigh or max", quote(effort)))
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

// decodeMessages returns the conversation, and whether messages bear names, which
// have no effect. System texts count wherever they stand; every text part stays a
// text of its own.
func decodeMessages(fields object) (conversation prompt.Conversation, named bool, err error) {
	raw, ok := fields.get("messages")
	if !ok {
		return conversation, false, badRequest("messages", "messages is required: send at least one user message")
	}
	list, err := asArray(raw, "messages")
	if err != nil {
		return conversation, false, err
	}
	var b prompt.Builder
	for i, raw := range list {
		path := fmt.Sprintf("messages[%d]", i)
		message, err := asObject(raw, path)
		if err != nil {
			return conversation, false, err
		}
		if _, ok := message.get("name"); ok {
			named = true
		}
		if err := addMessage(&b, message, path); err != nil {
			return conversation, false, err
		}
	}
	conversation, err = b.Conversation()
	if err != nil {
		return conversation, false, badRequest("messages", err.Error())
	}
	return conversation, named, nil
}

func addMessage(b *prompt.Builder, message object, path string) error {
	raw, ok := message.get("role")
	if !ok {
		return badRequest(path+".role", path+".role is required: use system, developer, user or assistant")
	}
	role, err := asString(raw, path+".role")
	if err != nil {
		return err
	}
	switch role {
	case "system", "developer", "user", "assistant":
	case "tool", "function":
		return unsupported(path+".role", fmt.Sprintf("%s.role is %q: tool results are not supported, send them as text of a user message", path, role))
	default:
		return badRequest(path+".role", fmt.Sprintf("%s.role is %s: use system, developer, user or assistant", path, quote(role)))
	}
	if role == "assistant" {
		if err := checkAssistant(message, path); err != nil {
			return err
		}
	}
	texts, err := decodeContent(message, path+".content", role == "assistant")
	if err != nil {
		return err
	}
	if role == "user" || role == "assistant" {
		b.Add(prompt.Role(role), texts...)
		return nil
	}
	for _, text := range texts {
		b.AddSystem(text)
	}
	return nil
}

// checkAssistant refuses what an assistant message can hold beside its text, rather
// than drop it.
func checkAssistant(message object, path string) error {
	if raw, ok := message.get("tool_calls"); ok {
		calls, err := asArray(raw, path+".tool_calls")
		if err != nil {
			return err
		}
		if len(calls) > 0 {
			return unsupported(path+".tool_calls", path+".tool_calls is not supported: send the calls as text")
		}
	}
	for _, name := range []string{"function_call", "refusal", "audio"} {
		if _, ok := message.get(name); ok {
			return unsupported(path+"."+name, fmt.Sprintf("%s.%s is not supported: send its text as content", path, name))
		}
	}
	return nil
}

// decodeContent returns the texts of a message's content.
func decodeContent(message object, path string, mayLack bool) ([]string, error) {
	raw, ok := message.get("content")
	if !ok {
		if mayLack {
			return nil, nil
		}
		return nil, badRequest(path, path+" is required: send a string or an array of text parts")
	}
	switch typeOf(raw) {
	case typeString:
		text, err := asString(raw, path)
		return []string{text}, err
	case typeArray:
		return decodeParts(raw, path)
	}
	return nil, wrongType(path, "a string or an array of text parts", raw)
}

func decodeParts(raw json.RawMessage, path string) ([]string, error) {
	list, err := asArray(raw, path)
	if err != nil {
		return nil, err
	}
	texts := make([]string, 0, len(list))
	for i, raw := range list {
		text, err := decodePart(raw, fmt.Sprintf("%s[%d]", path, i))
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func decodePart(raw json.RawMessage, path string) (string, error) {
	part, err := asObject(raw, path)
	if err != nil {
		return "", err
	}
	raw, ok := part.get("type")
	if !ok {
		return "", badRequest(path+".type", path+".type is required: use text")
	}
	kind, err := asString(raw, path+".type")
	if err != nil {
		return "", err
	}
	if kind != "text" && kind != "input_text" {
		return "", unsupported(path+".type", fmt.Sprintf("%s.type is %s: only text parts are supported", path, quote(kind)))
	}
	raw, ok = part.get("text")
	if !ok {
		return "", badRequest(path+".text", path+".text is required in a text part")
	}
	return asString(raw, path+".text")
}
