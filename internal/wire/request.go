// Package wire is what the dialects have in common: JSON of clients, read strictly and
// with the place of every fault, and JSON of answers, appended without allocation. It
// knows no field of any API.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Error says what is wrong with a client's JSON, in words for the client.
type Error struct {
	Path      string // of the value at fault; empty for the whole body
	Message   string // continues a sentence that begins with the path, or with "the request body"
	WrongType bool   // the value is not of the type it must have
}

func (e *Error) Error() string {
	if e.Path == "" {
		return "the request body " + e.Message
	}
	return e.Path + " " + e.Message
}

// MaxDepth bounds how deep a request may nest. Tool schemas go deepest, to a few dozen.
const MaxDepth = 200

// Object is a JSON object by its exact keys: struct decoding would also take "Model"
// for "model". Of doubled keys the last one counts.
type Object map[string]json.RawMessage

// Get returns a field's value; false if it is absent or null.
func (o Object) Get(name string) (json.RawMessage, bool) {
	raw, ok := o[name]
	return raw, ok && TypeOf(raw) != Null
}

// Parse checks a body and returns the object it is. What the client sent must be
// exactly what is passed on, so text that the JSON decoder would mend silently,
// invalid UTF-8 and lone surrogate escapes, is refused. The error is an *Error, as all
// of this package's are.
func Parse(body []byte) (Object, error) {
	if !utf8.Valid(body) {
		return nil, &Error{Message: "is not valid UTF-8: send JSON in UTF-8"}
	}
	if TooDeep(body) {
		return nil, &Error{Message: fmt.Sprintf("nests deeper than %d levels", MaxDepth)}
	}
	var o Object
	err := json.Unmarshal(body, &o)
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, &Error{Message: fmt.Sprintf("is not valid JSON at byte %d", bad.Offset)}
	}
	if err != nil || o == nil {
		return nil, &Error{Message: "must be a JSON object"}
	}
	if at := loneSurrogate(body); at >= 0 {
		return nil, &Error{Message: fmt.Sprintf("has half a surrogate pair at byte %d: escape a character beyond U+FFFF as both halves", at)}
	}
	return o, nil
}

// TooDeep reports whether a text, which need not be valid JSON, nests deeper than MaxDepth.
func TooDeep(body []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// loneSurrogate returns where valid JSON has an escape of half a surrogate pair
// without its other half, or -1.
func loneSurrogate(body []byte) int {
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		switch half := surrogate(body[i:]); {
		case half == high && surrogate(body[i+6:]) == low:
			i += 11
		case half != none:
			return i
		default:
			i++ // what follows a backslash is no backslash of its own
		}
	}
	return -1
}

// half says what a \uXXXX escape stands for.
type half int

const (
	none half = iota
	high
	low
)

func surrogate(b []byte) half {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return none
	}
	switch n, err := strconv.ParseUint(string(b[2:6]), 16, 16); {
	case err != nil:
		return none
	case 0xD800 <= n && n < 0xDC00:
		return high
	case 0xDC00 <= n && n < 0xE000:
		return low
	}
	return none
}

// Type is the type of a JSON value, worded for error messages.
type Type string

// The types there are.
const (
	Null    Type = "null"
	Boolean Type = "a boolean"
	Number  Type = "a number"
	Text    Type = "a string"
	Array   Type = "an array"
	Dict    Type = "an object"
)

// TypeOf returns the type of a valid JSON value.
func TypeOf(raw json.RawMessage) Type {
	switch bytes.TrimLeft(raw, " \t\r\n")[0] {
	case 'n':
		return Null
	case 't', 'f':
		return Boolean
	case '"':
		return Text
	case '[':
		return Array
	case '{':
		return Dict
	}
	return Number
}

// WrongType is the error for a value that is not of the type wanted.
func WrongType(path, want string, raw json.RawMessage) *Error {
	return &Error{Path: path, Message: fmt.Sprintf("must be %s, not %s", want, TypeOf(raw)), WrongType: true}
}

// decodeAs decodes a valid JSON value, which must be of the given type.
func decodeAs[T any](raw json.RawMessage, path string, want Type) (v T, err error) {
	if TypeOf(raw) != want {
		return v, WrongType(path, string(want), raw)
	}
	if err := json.Unmarshal(raw, &v); err != nil { // a number out of range
		return v, &Error{Path: path, Message: fmt.Sprintf("is not %s that can be used", want)}
	}
	return v, nil
}

// AsString decodes a string.
func AsString(raw json.RawMessage, path string) (string, error) {
	return decodeAs[string](raw, path, Text)
}

// AsBool decodes a boolean.
func AsBool(raw json.RawMessage, path string) (bool, error) {
	return decodeAs[bool](raw, path, Boolean)
}

// AsNumber decodes a number.
func AsNumber(raw json.RawMessage, path string) (float64, error) {
	return decodeAs[float64](raw, path, Number)
}

// AsArray decodes an array of at most MaxElements.
func AsArray(raw json.RawMessage, path string) ([]json.RawMessage, error) {
	if TypeOf(raw) == Array {
		if err := tooMany(raw, path); err != nil {
			return nil, err
		}
	}
	return decodeAs[[]json.RawMessage](raw, path, Array)
}

// AsObject decodes an object.
func AsObject(raw json.RawMessage, path string) (Object, error) {
	return decodeAs[Object](raw, path, Dict)
}

// Quote shows a value of the client's in a message to it, cut to a sensible length.
func Quote(s string) string {
	const most = 64
	if len(s) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return strconv.Quote(s)
}
