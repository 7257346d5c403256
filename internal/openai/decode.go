package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxDepth bounds how deep a request may nest. Tool schemas go deepest, to a few dozen.
const maxDepth = 200

// object is a JSON object by its exact keys: struct decoding would also take "Model"
// for "model". Of doubled keys the last one counts.
type object map[string]json.RawMessage

// get returns a field's value; false if it is absent or null.
func (o object) get(name string) (json.RawMessage, bool) {
	raw, ok := o[name]
	return raw, ok && typeOf(raw) != typeNull
}

// parse checks a body and returns the object it is. What the client sent must be
// exactly what is passed on, so text that the JSON decoder would mend silently,
// invalid UTF-8 and lone surrogate escapes, is refused.
func parse(body []byte) (object, error) {
	if !utf8.Valid(body) {
		return nil, badRequest("", "the request body is not valid UTF-8: send JSON in UTF-8")
	}
	if err := checkDepth(body); err != nil {
		return nil, err
	}
	var o object
	err := json.Unmarshal(body, &o)
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, badRequest("", fmt.Sprintf("the request body is not valid JSON at byte %d", bad.Offset))
	}
	if err != nil || o == nil {
		return nil, badRequest("", "the request body must be a JSON object")
	}
	if at := loneSurrogate(body); at >= 0 {
		return nil, badRequest("", fmt.Sprintf("the request body has half a surrogate pair at byte %d: escape a character beyond U+FFFF as both halves", at))
	}
	return o, nil
}

// checkDepth bounds the nesting of a body that need not be valid JSON.
func checkDepth(body []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return badRequest("", fmt.Sprintf("the request body nests deeper than %d levels", maxDepth))
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
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

// jsonType is the type of a JSON value, worded for error messages.
type jsonType string

const (
	typeNull   jsonType = "null"
	typeBool   jsonType = "a boolean"
	typeNumber jsonType = "a number"
	typeString jsonType = "a string"
	typeArray  jsonType = "an array"
	typeObject jsonType = "an object"
)

// typeOf returns the type of a valid JSON value.
func typeOf(raw json.RawMessage) jsonType {
	switch bytes.TrimLeft(raw, " \t\r\n")[0] {
	case 'n':
		return typeNull
	case 't', 'f':
		return typeBool
	case '"':
		return typeString
	case '[':
		return typeArray
	case '{':
		return typeObject
	}
	return typeNumber
}

// wrongType is the error for a value that is not of the type wanted.
func wrongType(param string, want string, raw json.RawMessage) *Error {
	e := badRequest(param, fmt.Sprintf("%s must be %s, not %s", param, want, typeOf(raw)))
	e.Code = "invalid_type"
	return e
}

// decodeAs decodes a valid JSON value, which must be of the given type.
func decodeAs[T any](raw json.RawMessage, param string, want jsonType) (v T, err error) {
	if typeOf(raw) != want {
		return v, wrongType(param, string(want), raw)
	}
	if err := json.Unmarshal(raw, &v); err != nil { // a number out of range
		return v, badRequest(param, fmt.Sprintf("%s is not %s that can be used", param, want))
	}
	return v, nil
}

func asString(raw json.RawMessage, param string) (string, error) {
	return decodeAs[string](raw, param, typeString)
}

func asBool(raw json.RawMessage, param string) (bool, error) {
	return decodeAs[bool](raw, param, typeBool)
}

func asNumber(raw json.RawMessage, param string) (float64, error) {
	return decodeAs[float64](raw, param, typeNumber)
}

func asArray(raw json.RawMessage, param string) ([]json.RawMessage, error) {
	return decodeAs[[]json.RawMessage](raw, param, typeArray)
}

func asObject(raw json.RawMessage, param string) (object, error) {
	return decodeAs[object](raw, param, typeObject)
}

// quote shows a value of the client's in a message to it, cut to a sensible length.
func quote(s string) string {
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
