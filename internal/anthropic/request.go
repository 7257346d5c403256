// Package anthropic is the Anthropic wire dialect: its requests, checked and turned
// into what a session is given; the events of a turn, turned into its messages and
// streams; and its errors. It does no I/O and knows nothing of sessions.
package anthropic

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"ocp/internal/prompt"
	"ocp/internal/wire"
)

// MessageRequest is a request for a message that was checked.
type MessageRequest struct {
	Prompt prompt.Request
	Stop   []string // sequences that end the answer, before them
	Stream bool
	// Ignored names what was given and has no effect, sorted.
	Ignored []string
}

// decoder decodes one request. It gathers what is ignored on the way.
type decoder struct {
	ignored map[string]bool
}

// DecodeMessages decodes the body of a request for a message. What it knows must have
// the right type and a value that can be honoured; everything else is named in
// Ignored. The error is an *Error that names the field at fault.
func DecodeMessages(body []byte) (MessageRequest, error) {
	req, err := decodeMessages(body)
	return req, fromWire(err)
}

func decodeMessages(body []byte) (req MessageRequest, err error) {
	fields, err := wire.Parse(body)
	if err != nil {
		return req, err
	}
	if _, ok := fields.Get("thread"); ok {
		return req, errThread
	}
	d := decoder{ignored: map[string]bool{}}
	if req.Prompt.Model, err = decodeModel(fields); err != nil {
		return req, err
	}
	if req.Prompt.MaxTokens, err = decodeMaxTokens(fields); err != nil {
		return req, err
	}
	conversation, err := d.conversation(fields)
	if err != nil {
		return req, err
	}
	if req.Prompt.Conversation, err = join(conversation); err != nil {
		return req, err
	}
	err = d.settings(fields, &req)
	return req, err
}

// errThread refuses messages that belong to a thread kept by the server, in the words by
// which Anthropic's clients (@anthropic-ai/sdk's toolRunner) know that they are to send the
// whole conversation.
var errThread = func() *Error {
	e := bad("thread", "is not supported: nothing is kept between requests, send the whole conversation")
	e.Details = `{"error_code":"thread_unsupported_request","unsupported":["thread"]}`
	return e
}()

// settings decodes what is left of a request behind its conversation and its limit.
func (d *decoder) settings(fields wire.Object, req *MessageRequest) (err error) {
	if req.Prompt.Effort, err = d.effort(fields, req.Prompt.MaxTokens); err != nil {
		return err
	}
	if req.Stop, err = decodeStop(fields); err != nil {
		return err
	}
	if raw, ok := fields.Get("stream"); ok {
		if req.Stream, err = wire.AsBool(raw, "stream"); err != nil {
			return err
		}
	}
	if err := d.tools(fields, &req.Prompt); err != nil {
		return err
	}
	if err := d.params(fields); err != nil {
		return err
	}
	req.Ignored = d.names()
	return nil
}

// DecodeCount decodes the body of a request to count tokens, and estimates them. Fields
// are checked as a message's are, but max_tokens need not be given, and the conversation
// may end with the assistant.
func DecodeCount(body []byte) (tokens int, err error) {
	tokens, err = decodeCount(body)
	return tokens, fromWire(err)
}

func decodeCount(body []byte) (int, error) {
	fields, err := wire.Parse(body)
	if err != nil {
		return 0, err
	}
	d := decoder{ignored: map[string]bool{}}
	if _, err := decodeModel(fields); err != nil {
		return 0, err
	}
	conversation, err := d.conversation(fields)
	if err != nil {
		return 0, err
	}
	var req MessageRequest
	if raw, ok := fields.Get("max_tokens"); ok {
		if req.Prompt.MaxTokens, err = positive(raw, "max_tokens"); err != nil {
			return 0, err
		}
	}
	if err := d.settings(fields, &req); err != nil {
		return 0, err
	}
	tokens := conversation.EstimateTokens()
	if raw, ok := fields.Get("tools"); ok {
		tokens += prompt.EstimateText(string(raw))
	}
	return max(tokens, 1), nil
}

// join makes of the messages as given what a session is to be given.
func join(given prompt.Conversation) (prompt.Conversation, error) {
	var b prompt.Builder
	b.AddSystem(given.System)
	for _, m := range given.Messages {
		b.AddBlocks(m.Role, m.Content...)
	}
	joined, err := b.Conversation()
	if err != nil {
		return joined, bad("messages", err.Error())
	}
	return joined, nil
}

// maxModel bounds the length of a model's name in bytes.
const maxModel = 256

func decodeModel(fields wire.Object) (string, error) {
	raw, ok := fields.Get("model")
	if !ok {
		return "", bad("model", "is required: GET /v1/models lists the names")
	}
	model, err := wire.AsString(raw, "model")
	switch {
	case err != nil:
		return "", err
	case model == "":
		return "", bad("model", "is empty: GET /v1/models lists the names")
	case len(model) > maxModel:
		return "", bad("model", fmt.Sprintf("is longer than %d bytes", maxModel))
	case strings.ContainsFunc(model, unicode.IsControl):
		return "", bad("model", "has a control character in it")
	}
	return model, nil
}

func decodeMaxTokens(fields wire.Object) (int, error) {
	raw, ok := fields.Get("max_tokens")
	if !ok {
		return 0, bad("max_tokens", "is required: the most tokens that the answer may have")
	}
	return positive(raw, "max_tokens")
}

// positive decodes an integer above zero.
func positive(raw json.RawMessage, path string) (int, error) {
	n, err := integer(raw, path)
	if err == nil && n < 1 {
		err = bad(path, "must be at least 1")
	}
	return n, err
}

// The bounds of stop sequences are OCP's own.
const (
	maxStops      = 64
	maxStopLength = 1024
)

func decodeStop(fields wire.Object) ([]string, error) {
	raw, ok := fields.Get("stop_sequences")
	if !ok {
		return nil, nil
	}
	list, err := wire.AsArray(raw, "stop_sequences")
	if err != nil {
		return nil, err
	}
	if len(list) > maxStops {
		return nil, bad("stop_sequences", fmt.Sprintf("has more than %d sequences", maxStops))
	}
	var sequences []string
	for i, raw := range list {
		path := fmt.Sprintf("stop_sequences.%d", i)
		sequence, err := wire.AsString(raw, path)
		switch {
		case err != nil:
			return nil, err
		case strings.TrimSpace(sequence) == "":
			return nil, bad(path, "must hold more than white space")
		case len(sequence) > maxStopLength:
			return nil, bad(path, fmt.Sprintf("is longer than %d bytes", maxStopLength))
		}
		sequences = append(sequences, sequence)
	}
	return sequences, nil
}

// The names of ignored fields go into a header.
const (
	maxIgnored     = 64
	maxIgnoredName = 64
)

// ignore notes a field without effect. Names that no API has, and more than fit, share
// one.
func (d *decoder) ignore(name string) {
	odd := strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' || r == '.')
	})
	if odd || len(name) > maxIgnoredName || len(d.ignored) >= maxIgnored {
		name = "others"
	}
	d.ignored[name] = true
}

// rest ignores an object's fields but those known, under a name without indices.
func (d *decoder) rest(o wire.Object, name string, known ...string) {
	for field := range o {
		if _, given := o.Get(field); given && !slices.Contains(known, field) {
			d.ignore(name + "." + field)
		}
	}
}

func (d *decoder) names() []string { return slices.Sorted(maps.Keys(d.ignored)) }
