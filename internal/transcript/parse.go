package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

// ErrSyntax is returned by Parse for a line that is not one JSON object.
var ErrSyntax = errors.New("transcript: line is not a JSON object")

// Parse reads one line, with or without its newline. It does not keep the line.
//
// Only a line that is not one JSON object is an error (ErrSyntax, which never quotes
// the line). Unknown types and fields are none, and neither is a known field of an
// unexpected type: numbers may be floats or strings, the marks (isMeta,
// isApiErrorMessage, …) count if JavaScript would call them true, an error that is not
// a string is kept as its JSON, and anything else is as if it were absent. Keys are
// matched exactly, unlike encoding/json's.
//
// Half a surrogate pair (an escape such as \ud800 alone) is read as U+FFFD, as
// encoding/json does.
func Parse(line []byte) (Record, error) {
	f := decodeObject(line)
	if f == nil {
		return Record{}, ErrSyntax
	}
	return Record{
		Type:              f.string("type"),
		Subtype:           f.string("subtype"),
		Entrypoint:        f.string("entrypoint"),
		Version:           f.string("version"),
		Message:           decodeMessage(f["message"]),
		Attachment:        f["attachment"],
		AttachmentType:    decodeObject(f["attachment"]).string("type"),
		IsMeta:            f.flag("isMeta"),
		IsSidechain:       f.flag("isSidechain"),
		IsAPIErrorMessage: f.flag("isApiErrorMessage"),
		Error:             f.stringOrJSON("error"),
		ErrorDetails:      f.stringOrJSON("errorDetails"),
		APIErrorStatus:    f.int("apiErrorStatus"),
		PromptID:          f.string("promptId"),
		DurationMS:        f.int("durationMs"),
		ID:                f.string("id"),
		Base:              f.string("base"),
		ResetsAt:          decodeObject(f["quotaLimits"]).int("resetsAt"),
		Hash:              f.string("hash"),
		Tail:              f.strings("tail"),
		Keep:              f.int("keep"),
		Tools:             decodeTools(f),
	}, nil
}

// decodeTools returns the tools of an api-request-shape, nil for any other record.
func decodeTools(f fields) []json.RawMessage {
	if f.string("type") != "api-request-shape" {
		return nil
	}
	tools := []json.RawMessage{}
	if json.Unmarshal(decodeObject(f["shape"])["tools"], &tools) != nil || tools == nil {
		return []json.RawMessage{}
	}
	return tools
}

// decodeMessage returns nil if there is no message. A string is a message of that text.
func decodeMessage(raw json.RawMessage) *Message {
	switch kind(raw) {
	case '{':
		f := decodeObject(raw)
		return &Message{
			ID:           f.string("id"),
			Role:         f.string("role"),
			Model:        f.string("model"),
			StopReason:   f.string("stop_reason"),
			StopSequence: f.string("stop_sequence"),
			Content:      decodeContent(f["content"]),
			Usage:        decodeUsage(f["usage"]),
		}
	case '"':
		return &Message{Content: decodeContent(raw)}
	}
	return nil
}

// decodeContent reads what stands in the place of an array of blocks: a single value
// is read as an array of one.
func decodeContent(raw json.RawMessage) Content {
	var values []json.RawMessage
	switch kind(raw) {
	case 0, 'n':
		return nil
	case '[':
		if json.Unmarshal(raw, &values) != nil {
			return nil
		}
	default:
		values = []json.RawMessage{raw}
	}
	content := make(Content, len(values))
	for i, value := range values {
		content[i] = decodeBlock(value)
	}
	return content
}

func decodeBlock(raw json.RawMessage) Block {
	switch kind(raw) {
	case '{':
		f := decodeObject(raw)
		return Block{Type: f.string("type"), Text: f.string("text"), Raw: raw}
	case '"':
		return Block{Type: "text", Text: decodeString(raw), Raw: raw}
	}
	return Block{Raw: raw}
}

func decodeUsage(raw json.RawMessage) Usage {
	f := decodeObject(raw)
	return Usage{
		InputTokens:              f.int("input_tokens"),
		CacheCreationInputTokens: f.int("cache_creation_input_tokens"),
		CacheReadInputTokens:     f.int("cache_read_input_tokens"),
		OutputTokens:             f.int("output_tokens"),
	}
}

// fields are an object's values by their exact keys. It is nil for what is no object.
type fields map[string]json.RawMessage

func decodeObject(raw []byte) fields {
	if kind(raw) != '{' {
		return nil
	}
	var f fields
	if json.Unmarshal(raw, &f) != nil {
		return nil
	}
	return f
}

func (f fields) string(key string) string { return decodeString(f[key]) }

// strings reads an array; what is no string in it is empty.
func (f fields) strings(key string) []string {
	var values []json.RawMessage
	if kind(f[key]) != '[' || json.Unmarshal(f[key], &values) != nil {
		return nil
	}
	list := make([]string, len(values))
	for i, value := range values {
		list[i] = decodeString(value)
	}
	return list
}

// stringOrJSON keeps the JSON of a value that is there but no string.
func (f fields) stringOrJSON(key string) string {
	raw := f[key]
	switch kind(raw) {
	case 0, 'n':
		return ""
	case '"':
		return decodeString(raw)
	}
	return string(raw)
}

// int reads a whole number written as a number or as a string; a fraction is cut off.
func (f fields) int(key string) int {
	text := string(f[key])
	if kind(f[key]) == '"' {
		text = f.string(key)
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(number) || math.Abs(number) > 1<<53 {
		return 0
	}
	return int(number)
}

// flag is JavaScript's truth: what the CLI itself goes by.
func (f fields) flag(key string) bool {
	switch raw := f[key]; kind(raw) {
	case 0, 'n', 'f':
		return false
	case '"':
		return decodeString(raw) != ""
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		number, err := strconv.ParseFloat(string(raw), 64)
		return err != nil || number != 0
	}
	return true
}

func decodeString(raw json.RawMessage) string {
	var s string
	if kind(raw) != '"' || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// kind is the first byte of a JSON value, which tells its type; 0 if there is none.
func kind(raw []byte) byte {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) == 0 {
		return 0
	}
	return raw[0]
}
