package prompt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// propertyName is what the upstream takes for the name of a tool's argument.
var propertyName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// ToolSchema checks the schema of a tool's input, a JSON object, for what the upstream
// would refuse. A type is added if it has none; otherwise it is returned as it is.
func ToolSchema(raw json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return nil, errors.New("must be an object")
	}
	for _, name := range []string{"anyOf", "oneOf", "allOf"} {
		if _, ok := fields[name]; ok {
			return nil, fmt.Errorf("has %s at its top, which the upstream does not take: put it into a property", name)
		}
	}
	var properties map[string]json.RawMessage
	if p, ok := fields["properties"]; ok && (json.Unmarshal(p, &properties) != nil || properties == nil) {
		return nil, errors.New("has properties that are no object")
	}
	for name := range properties {
		if !propertyName.MatchString(name) {
			return nil, fmt.Errorf("has a property whose name is not of the form %s", propertyName)
		}
	}
	kind, ok := fields["type"]
	switch {
	case !ok && len(fields) == 0:
		return json.RawMessage(`{"type":"object"}`), nil
	case !ok:
		rest := bytes.TrimLeft(raw, " \t\r\n")[1:]
		return append([]byte(`{"type":"object",`), rest...), nil
	case string(kind) != `"object"`:
		return nil, errors.New("must be of type object")
	}
	return raw, nil
}
