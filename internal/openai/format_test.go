package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ocp/internal/dialecttest"
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
	dialecttest.Golden(t, "stream_json.sse", encode(checked, good...))
	dialecttest.Golden(t, "stream_refusal.sse", encode(checked, bad...))
	dialecttest.Golden(t, "completion_refusal.json", checked.AppendCompletion(nil, "I am Ann.", finished))
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

// doubling is a schema of n levels, each of which refers to the next one twice.
func doubling(n int) string {
	var defs strings.Builder
	for i := range n {
		fmt.Fprintf(&defs, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	return fmt.Sprintf(`{"$defs":{%s"a%d":{"type":"object"}},"$ref":"#/$defs/a0"}`, defs.String(), n)
}

// TestSchemaExpands checks that a schema is refused by what it is with its references
// written out, however short it is.
func TestSchemaExpands(t *testing.T) {
	for name, test := range map[string]struct {
		schema string
		says   string // empty if it is taken
	}{
		"few levels":     {doubling(10), ""},
		"many levels":    {doubling(22), "more than 10000 subschemas"},
		"most levels":    {doubling(500), "more than 10000 subschemas"},
		"recursion":      {`{"properties":{"l":{"$ref":"#"},"r":{"$ref":"#"}}}`, ""},
		"long":           {`{"prefixItems":[` + strings.Repeat(`{},`, 10_000) + `{}]}`, "more than 10000 subschemas"},
		"dynamic":        {`{"$dynamicAnchor":"x","items":{"$dynamicRef":"#x"}}`, "$dynamicRef"},
		"recursive":      {`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"items":{"$recursiveRef":"#"}}`, "$recursiveRef"},
		"no schema left": {`{"$defs":{"a":true,"b":{"$ref":"#/$defs/a"}},"items":{"$ref":"#/$defs/b"},"additionalProperties":false}`, ""},
	} {
		body := chatBody(`,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` + test.schema + `}}`)
		_, err := DecodeChat([]byte(body))
		if test.says == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		bad, ok := errors.AsType[*Error](err)
		if !ok || bad.Param != "response_format.json_schema.schema" || !strings.Contains(bad.Message, test.says) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestLongSchemaIsNotCompiled checks that a long schema is refused before the library,
// which takes the square of its length, has it.
func TestLongSchemaIsNotCompiled(t *testing.T) {
	for _, item := range []string{"{}", "true"} {
		begun := time.Now()
		_, err := compile([]byte(`{"prefixItems":[` + strings.Repeat(item+",", 30_000) + item + `]}`))
		if took := time.Since(begun); err == nil || took > time.Second {
			t.Errorf("after %s: %v", took, err)
		}
	}
}

// TestCheckIsBounded checks that a recursive schema and an answer that fit badly end in
// a refusal, and soon; and that the schema goes on to check others.
func TestCheckIsBounded(t *testing.T) {
	const param = `{"type":"json_schema","json_schema":{"name":"x","schema":%s}}`
	twice := format(t, fmt.Sprintf(param, `{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`))
	not := format(t, fmt.Sprintf(param, `{"not":{"$ref":"#/$defs/n"},"$defs":{"n":{"type":"object","required":["a"],"patternProperties":{"a":{"$ref":"#/$defs/n"},"^a":{"$ref":"#/$defs/n"}}}}}`))
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for name, f := range map[string]*Format{"allOf": twice, "not": not} {
		if _, refusal := f.check(nested(3)); refusal != "" {
			t.Errorf("%s: got %q", name, refusal)
		}
		begun := time.Now()
		if _, refusal := f.check(nested(40)); !strings.Contains(refusal, "too much work") {
			t.Errorf("%s: got %q", name, refusal)
		}
		if took := time.Since(begun); took > 2*maxCheck {
			t.Errorf("%s: it took %s", name, took)
		}
		if _, refusal := f.check(nested(201)); !strings.Contains(refusal, "deeper than 200 levels") {
			t.Errorf("%s: got %q", name, refusal)
		}
		if _, refusal := f.check(nested(3)); refusal != "" {
			t.Errorf("%s: got %q", name, refusal)
		}
	}
}

// TestSchemasShareNothing checks, with the race detector, that schemas which refer to a
// draft of JSON Schema itself do not share it.
func TestSchemasShareNothing(t *testing.T) {
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			s, err := compile([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#","items":{"$ref":"http://json-schema.org/draft-07/schema#"}}`))
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.validate([]any{map[string]any{"type": "object"}}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}
