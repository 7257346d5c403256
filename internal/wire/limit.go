package wire

import (
	"encoding/json"
	"fmt"
)

// MaxElements bounds every array of a request: messages, the parts of one, tools. A
// conversation of an agent's long day has some thousand messages.
const MaxElements = 10_000

// tooMany says so if a valid array has more elements than MaxElements. It looks before
// the elements are taken apart, which costs memory for each.
func tooMany(raw json.RawMessage, path string) error {
	depth, quoted, commas := 0, false, 0
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ',' && depth == 1:
			if commas++; commas >= MaxElements {
				return &Error{Path: path, Message: fmt.Sprintf("has more than %d elements", MaxElements)}
			}
		}
	}
	return nil
}
