package openai

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ocp/internal/turn"
)

// format decodes a response_format.
func format(t *testing.T, raw string) *Format {
	t.Helper()
	f, err := decodeFormat(json.RawMessage(raw), "response_format", true)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const person = `{"type":"json_schema","json_schema":{"name":"person","description":"who it is","strict":true,"schema":
	{"type":"object","properties":{"name":{"type":"string"},"born":{"type":"string","format":"date"},"of":{"$ref":"#"}},"required":["name"],"additionalProperties":false}}}`

func TestFormatCheck(t *testing.T) {
	object, schema := format(t, `{"type":"json_object"}`), format(t, person)
	for _, test := range []struct {
		name    string
		format  *Format
		answer  string
		content string
		refusal string // part of it
	}{
		{"any text", nil, " ```json\n{}\n``` ", " ```json\n{}\n``` ", ""},
		{"object", object, `{"a": 1}`, `{"a": 1}`, ""},
		{"white space around", object, "\n {\"a\":\t1}\n\n", "{\"a\":\t1}", ""},
		{"fence", object, "```json\n{\"a\": 1}\n```\n", `{"a": 1}`, ""},
		{"fence without a language", object, "```\n{}\n```", `{}`, ""},
		{"fence of another language", object, "```yaml\n{}\n```", "", "not one JSON value"},
		{"fence that stays open", object, "```json\n{}", "", "not one JSON value"},
		{"fence inside", object, `{"a":"` + "```json```" + `"}`, `{"a":"` + "```json```" + `"}`, ""},
		{"words before", object, "Here it is: {}", "", "not one JSON value"},
		{"two values", object, "{} {}", "", "not one JSON value"},
		{"cut", object, `{"a": [1, 2`, "", "not one JSON value"},
		{"nothing", object, "", "", "not one JSON value"},
		{"array", object, `[1]`, "", "not a JSON object"},
		{"huge number", object, `{"a":1e999999999}`, "", "out of range"},
		{"tiny number", object, `{"a":[1e-999999999]}`, "", "out of range"},

		{"schema", schema, `{"name":"Ann","born":"1970-01-01"}`, `{"name":"Ann","born":"1970-01-01"}`, ""},
		{"nested", schema, `{"name":"Ann","of":{"name":"Bob"}}`, `{"name":"Ann","of":{"name":"Bob"}}`, ""},
		{"missing", schema, `{}`, "", "at /: missing property 'name'"},
		{"wrong type inside", schema, `{"name":"Ann","of":{"name":1}}`, "", "at /of/name: got number, want string"},
		{"too much", schema, `{"name":"Ann","age":1}`, "", "additional properties 'age' not allowed"},
		{"no date", schema, `{"name":"Ann","born":"yesterday"}`, "", "at /born"},
		{"schema with an array", schema, `[]`, "", "want object"},
	} {
		content, refusal := test.format.check(test.answer)
		if content != test.content || (refusal == "") != (test.refusal == "") || !strings.Contains(refusal, test.refusal) || strings.Contains(refusal, "\n") {
			t.Errorf("%s: got %q and %q", test.name, content, refusal)
		}
	}
}

func TestSteering(t *testing.T) {
	for name, test := range map[string]struct{ fields, want string }{
		"none":   {``, "be brief"},
		"text":   {`,"response_format":{"type":"text"}`, "be brief"},
		"object": {`,"response_format":{"type":"json_object"}`, "be brief\n\n" + steerObject},
		"schema": {`,"response_format":` + person, "be brief\n\nAnswer with one JSON value and nothing else: no words before or after it, no code fence. It must be valid against this JSON Schema (person: who it is):\n"},
	} {
		body := `{"model":"opus","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}]` + test.fields + `}`
		got, err := DecodeChat([]byte(body))
		if err != nil || !strings.HasPrefix(got.Prompt.System, test.want) || name != "schema" && got.Prompt.System != test.want {
			t.Errorf("%s: the system text is %q (%v)", name, got.Prompt.System, err)
		}
	}
	got, err := DecodeChat([]byte(chatBody(`,"response_format":{"type":"json_object"}`)))
	if err != nil || got.Prompt.System != steerObject {
		t.Errorf("the system text is %q (%v)", got.Prompt.System, err)
	}
}

// TestSchemaReadsNothing pins that a schema cannot have a file or an address read.
func TestSchemaReadsNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(file, []byte(`{"type":"object"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"file://" + file, file, "http://127.0.0.1:1/schema.json", "other.json"} {
		raw, _ := json.Marshal(map[string]any{"$ref": ref})
		if _, err := compile(raw); err == nil || strings.Contains(err.Error(), "127.0.0.1:1: connect") {
			t.Errorf("%s: %v", ref, err)
		} else {
			t.Logf("%s: %v", ref, err)
		}
	}
}

func TestFormatRefused(t *testing.T) {
	schema := func(schema string) string {
		return chatBody(`,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` + schema + `}}`)
	}
	const param = "response_format.json_schema.schema"
	refuse(t, DecodeChat, []bad{
		{"as text", chatBody(`,"response_format":"json"`), "response_format", "must be an object"},
		{"no type", chatBody(`,"response_format":{}`), "response_format.type", "required"},
		{"another type", chatBody(`,"response_format":{"type":"xml"}`), "response_format.type", `"xml"`},
		{"no schema object", chatBody(`,"response_format":{"type":"json_schema"}`), "response_format.json_schema", "required"},
		{"no name", chatBody(`,"response_format":{"type":"json_schema","json_schema":{"schema":{}}}`), "response_format.json_schema.name", "required"},
		{"odd name", chatBody(`,"response_format":{"type":"json_schema","json_schema":{"name":"a b","schema":{}}}`), "response_format.json_schema.name", `"a b"`},
		{"no schema", chatBody(`,"response_format":{"type":"json_schema","json_schema":{"name":"x"}}`), param, "required"},
		{"strict as text", chatBody(`,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{},"strict":"yes"}}`), "response_format.json_schema.strict", "boolean"},
		{"schema as array", schema(`[]`), param, "must be an object"},
		{"unknown type", schema(`{"type":"text"}`), param, "at /type"},
		{"required as text", schema(`{"required":"a"}`), param, "at /required"},
		{"bad pattern", schema(`{"pattern":"("}`), param, "cannot be used"},
		{"pattern that looks ahead", schema(`{"pattern":"(?=a)"}`), param, "cannot be used"},
		{"reference to nothing", schema(`{"$ref":"#/$defs/x"}`), param, "cannot be used"},
		{"reference elsewhere", schema(`{"$ref":"https://example.org/x"}`), param, "nothing is fetched"},
		{"huge number", schema(`{"maximum":1e999999999}`), param, "out of range"},
		{"unknown draft", schema(`{"$schema":"https://example.org/draft"}`), param, "cannot be used"},
	})
}

func TestFormatGolden(t *testing.T) {
	checked := answer(true)
	checked.Format = format(t, person)
	good := []turn.Event{turn.Started{}, turn.Delta{Text: "```json\n{\"name\":"}, turn.Delta{Text: "\"Ann\"}\n```\n"}, finished}
	bad := []turn.Event{turn.Started{}, turn.Delta{Text: "I am "}, turn.Delta{Text: "Ann."}, finished}
	if got := encode(checked, good[:3]...); len(got) != 0 {
		t.Errorf("%q was sent before the answer was checked", got)
	}
	golden(t, "stream_json.sse", encode(checked, good...))
	golden(t, "stream_refusal.sse", encode(checked, bad...))
	golden(t, "completion_refusal.json", checked.AppendCompletion(nil, "I am Ann.", finished))
}

func FuzzFormat(f *testing.F) {
	for _, seed := range [][2]string{
		{`{}`, `{}`},
		{`{"type":"object"}`, "```json\n{}\n```"},
		{`{"$ref":"#"}`, `1`},
		{`{"allOf":[{"$ref":"#"}]}`, `{"a":1}`},
		{`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`, `1`},
		{`{"$dynamicRef":"#x","$dynamicAnchor":"x","properties":{"a":{"multipleOf":0.1}}}`, `{"a":0.3}`},
		{`{"$id":"file:///etc/passwd","pattern":"^a+$","enum":[1e3]}`, `1000`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","maximum":1,"exclusiveMaximum":true}`, `1`},
	} {
		f.Add([]byte(seed[0]), seed[1])
	}
	f.Fuzz(func(t *testing.T, schema []byte, answer string) {
		if len(schema) > 4096 || len(answer) > 4096 {
			return
		}
		if _, err := parse(schema); err != nil {
			return
		}
		compiled, err := compile(schema)
		if err != nil {
			return
		}
		content, refusal := (&Format{schema: compiled}).check(answer)
		if (content == "") == (refusal == "") || refusal == "" && !json.Valid([]byte(content)) {
			t.Fatalf("got %q and %q", content, refusal)
		}
	})
}
