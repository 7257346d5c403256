package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"ocp/internal/prompt"
	"ocp/internal/wire"
)

// Format is what an answer must be: JSON. The model is told so in its system text, and
// the whole answer is checked before any of it is sent: what does not pass is refused.
// A nil Format takes any text. A Format is for one goroutine.
type Format struct {
	schema   *schema // nil for any object
	steering string  // what the model is told
}

// The words that steer the model.
const (
	steerObject = "Answer with one JSON object and nothing else: no words before or after it, no code fence."
	steerSchema = "Answer with one JSON value and nothing else: no words before or after it, no code fence. It must be valid against this JSON Schema%s:\n%s"
)

// decodeFormat decodes response_format, or text.format of a responses request. In the
// former the schema and its name are in an object of their own.
func decodeFormat(raw json.RawMessage, param string, nested bool) (*Format, error) {
	format, err := asObject(raw, param)
	if err != nil {
		return nil, err
	}
	kind, err := requiredString(format, "type", param)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "text":
		return nil, nil
	case "json_object":
		return &Format{steering: steerObject}, nil
	case "json_schema":
	default:
		return nil, unsupported(param+".type", fmt.Sprintf("%s.type is %s: use text, json_object or json_schema", param, quote(kind)))
	}
	if nested {
		param += ".json_schema"
		raw, ok := format.get("json_schema")
		if !ok {
			return nil, badRequest(param, param+" is required")
		}
		if format, err = asObject(raw, param); err != nil {
			return nil, err
		}
	}
	return decodeSchema(format, param)
}

func decodeSchema(format object, param string) (*Format, error) {
	name, err := requiredString(format, "name", param)
	if err != nil {
		return nil, err
	}
	if !plainName(name) || len(name) > 64 {
		return nil, badRequest(param+".name", fmt.Sprintf("%s.name is %s: use 1 to 64 of a-z, A-Z, 0-9, _ and -", param, quote(name)))
	}
	description, err := optionalString(format, "description", param)
	if err != nil {
		return nil, err
	}
	if raw, ok := format.get("strict"); ok {
		if err := boolean(raw, param+".strict"); err != nil {
			return nil, err
		}
	}
	raw, ok := format.get("schema")
	if !ok {
		return nil, badRequest(param+".schema", param+".schema is required")
	}
	if _, err := asObject(raw, param+".schema"); err != nil {
		return nil, err
	}
	schema, err := compile(raw)
	if err != nil {
		return nil, badRequest(param+".schema", fmt.Sprintf("%s.schema cannot be used: %s", param, err))
	}
	title := fmt.Sprintf(" (%s)", name)
	if description != "" {
		title = fmt.Sprintf(" (%s: %s)", name, description)
	}
	return &Format{schema: schema, steering: fmt.Sprintf(steerSchema, title, raw)}, nil
}

// maxExponent bounds the exponents of numbers, at about what a float64 can hold: the
// validator compares exactly, which for larger ones could take all the memory there is.
const maxExponent = 400

// unmarshal decodes JSON as the validator needs it.
func unmarshal(text string) (any, error) {
	if wire.TooDeep([]byte(text)) {
		return nil, fmt.Errorf("it nests deeper than %d levels", wire.MaxDepth)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, errors.New("it is not one JSON value")
	}
	return value, checkNumbers(value)
}

func checkNumbers(value any) error {
	switch value := value.(type) {
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(value.String()), "e")
		if n, err := strconv.Atoi(cmp.Or(exponent, "0")); err != nil || n > maxExponent || n < -maxExponent {
			return fmt.Errorf("it has the number %s, which is out of range", quote(value.String()))
		}
	case []any:
		for _, v := range value {
			if err := checkNumbers(v); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, v := range value {
			if err := checkNumbers(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// steer tells the model what to answer, behind the client's own system text.
func (f *Format) steer(c *prompt.Conversation) {
	switch {
	case f == nil:
	case c.System == "":
		c.System = f.steering
	default:
		c.System += "\n\n" + f.steering
	}
}

// check returns what an answer is to say, or why it is refused.
func (f *Format) check(text string) (content, refusal string) {
	if f == nil {
		return text, ""
	}
	content = unfenced(text)
	value, err := unmarshal(content)
	if err == nil {
		if f.schema != nil {
			err = f.schema.validate(value)
		} else if _, ok := value.(map[string]any); !ok {
			err = errors.New("it is not a JSON object")
		}
	}
	if err != nil {
		return "", "The model's answer is not of the format asked for: " + plain(err).Error() + "."
	}
	return content, ""
}

// unfenced returns a text without white space around it, and without a code fence
// around all of it.
func unfenced(text string) string {
	text = strings.TrimSpace(text)
	inner, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	inner, ok = strings.CutSuffix(inner, "```")
	language, inner, multiline := strings.Cut(inner, "\n")
	if !ok || !multiline || !strings.EqualFold(strings.TrimSpace(language), "json") && strings.TrimSpace(language) != "" {
		return text
	}
	return strings.TrimSpace(inner)
}

// plain words an error of the validator in one line: where, and what first.
func plain(err error) error {
	if bad, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		err = bad.Err
	}
	if load, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return load.Err
	}
	bad, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return errors.New(strings.ReplaceAll(err.Error(), schemaURL, ""))
	}
	for len(bad.Causes) > 0 {
		bad = bad.Causes[0]
	}
	at := "/" + strings.Join(bad.InstanceLocation, "/")
	return fmt.Errorf("at %s: %s", at, bad.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
}
