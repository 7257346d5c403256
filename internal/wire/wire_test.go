package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParse(t *testing.T) {
	for body, says := range map[string]string{
		`{}`:                     "",
		`{"a":"\ud83d\ude00"}`:   "",
		`{"a":"\\ud83d"}`:        "",
		`{"a":[[1]],"A":null}`:   "",
		`{"a":"\ud83d"}`:         "half a surrogate pair at byte 6",
		`{"a":"\ude00\ud83d"}`:   "half a surrogate pair at byte 6",
		`{"a":"\ud83d\\ude00"}`:  "half a surrogate pair at byte 6",
		`{"a":"\ud83dx\ude00"}`:  "half a surrogate pair at byte 6",
		"{\"a\":\"\xff\"}":       "not valid UTF-8",
		`[]`:                     "must be a JSON object",
		`null`:                   "must be a JSON object",
		`{"a":1`:                 "not valid JSON",
		``:                       "not valid JSON",
		strings.Repeat("[", 201): "nests deeper than 200",
		`{"a":"` + strings.Repeat("[", 201) + `"}`: "",
	} {
		_, err := Parse([]byte(body))
		bad, _ := errors.AsType[*Error](err)
		if says == "" && err != nil || says != "" && (bad == nil || bad.Path != "" || !strings.Contains(bad.Message, says)) {
			t.Errorf("%s: got %v, want %q", body, err, says)
		}
	}
}

func TestValues(t *testing.T) {
	o, err := Parse([]byte(`{"s":"a","n":1.5,"b":true,"l":[1],"o":{"x":1},"null":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := o.Get("null"); ok {
		t.Error("null is a value")
	}
	if _, ok := o.Get("S"); ok {
		t.Error("names are the same in upper case")
	}
	if s, err := AsString(o["s"], "p"); s != "a" || err != nil {
		t.Errorf("got %q (%v)", s, err)
	}
	if n, err := AsNumber(o["n"], "p"); n != 1.5 || err != nil {
		t.Errorf("got %v (%v)", n, err)
	}
	if b, err := AsBool(o["b"], "p"); !b || err != nil {
		t.Errorf("got %v (%v)", b, err)
	}
	if l, err := AsArray(o["l"], "p"); len(l) != 1 || err != nil {
		t.Errorf("got %v (%v)", l, err)
	}
	if in, err := AsObject(o["o"], "p"); len(in) != 1 || err != nil {
		t.Errorf("got %v (%v)", in, err)
	}
	_, err = AsString(o["n"], "a.0.b")
	if bad, ok := errors.AsType[*Error](err); !ok || !bad.WrongType || err.Error() != "a.0.b must be a string, not a number" {
		t.Errorf("got %v", err)
	}
	if _, err = AsNumber([]byte("1e999"), "p"); err == nil || err.Error() != "p is not a number that can be used" {
		t.Errorf("got %v", err)
	}
}

func TestQuote(t *testing.T) {
	if got := Quote("a\"\n"); got != `"a\"\n"` {
		t.Errorf("got %s", got)
	}
	if got := Quote(strings.Repeat("é", 1000)); len(got) > 80 || !strings.HasSuffix(got, `é…"`) || !utf8.ValidString(got) {
		t.Errorf("got %s", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, body := range []string{``, `{}`, `{"a":"\ud83d\ude00"}`, `{"a":[{"b":null}]}`, "{\"\xff\":1}"} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := Parse(body)
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("not a proper error: %v", err)
			}
			return
		}
		for name, raw := range o {
			_, given := o.Get(name)
			if given == (TypeOf(raw) == Null) || !json.Valid(raw) {
				t.Fatalf("%q is %q", name, raw)
			}
			if s, err := AsString(raw, name); err == nil {
				var again string
				if err := json.Unmarshal(AppendString(nil, s), &again); err != nil || again != s {
					t.Fatalf("%q became %q (%v)", s, again, err)
				}
			}
		}
	})
}
