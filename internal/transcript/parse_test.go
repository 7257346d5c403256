package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestParseGolden reads what the two CLI versions wrote behind a conversation: an
// answer, one continued after max_tokens, and one refused with status 429.
func TestParseGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) != 6 {
		t.Fatalf("Glob = %v, %v, want 6 files", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var records []Record
			for line := range bytes.Lines(data) {
				record, err := Parse(line)
				if err != nil {
					t.Fatalf("Parse(%s): %v", line, err)
				}
				records = append(records, record)
			}
			golden(t, strings.TrimSuffix(file, ".jsonl")+".golden", records)
		})
	}
}

func golden(t *testing.T, file string, v any) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestParse(t *testing.T) {
	message := func(content ...Block) Record { return Record{Message: &Message{Content: content}} }
	tests := map[string]struct {
		line string
		want Record
	}{
		"empty object": {`{}`, Record{}},
		"with newline": {"{\"type\":\"mode\"}\r\n", Record{Type: "mode"}},
		"unknown type and fields": {
			`{"type":"x-new","message":null,"new":{"type":"user"}}`, Record{Type: "x-new"},
		},
		"keys are matched exactly": {`{"type":"user","Type":"a","TYPE":"b"}`, Record{Type: "user"}},
		"strings of other types":   {`{"type":7,"subtype":[],"version":{}}`, Record{}},
		"message a string":         {`{"message":"hi"}`, message(Block{"text", "hi", json.RawMessage(`"hi"`)})},
		"message a number":         {`{"message":1}`, Record{}},
		"content a string": {
			`{"message":{"content":"a\u2028b"}}`,
			message(Block{"text", "a\u2028b", json.RawMessage(`"a\u2028b"`)}),
		},
		"content an object": {
			`{"message":{"content":{"type":"text","text":"a"}}}`,
			message(Block{"text", "a", json.RawMessage(`{"type":"text","text":"a"}`)}),
		},
		"content null":  {`{"message":{"content":null}}`, message()},
		"content empty": {`{"message":{"content":[]}}`, Record{Message: &Message{Content: Content{}}}},
		"blocks": {
			`{"message":{"content":[ {"type":"tool_use","input":{"text":"no", "n":1.0}}, "s", 3, {"type":"text","text":null} ]}}`,
			message(
				Block{"tool_use", "", json.RawMessage(`{"type":"tool_use","input":{"text":"no", "n":1.0}}`)},
				Block{"text", "s", json.RawMessage(`"s"`)},
				Block{"", "", json.RawMessage(`3`)},
				Block{"text", "", json.RawMessage(`{"type":"text","text":null}`)},
			),
		},
		"stop reasons null": {`{"message":{"stop_reason":null,"stop_sequence":null}}`, message()},
		"usage": {
			`{"message":{"usage":{"input_tokens":3.0,"output_tokens":"7","cache_read_input_tokens":1e3,"cache_creation_input_tokens":null}}}`,
			Record{Message: &Message{Usage: Usage{InputTokens: 3, OutputTokens: 7, CacheReadInputTokens: 1000}}},
		},
		"usage of no use":  {`{"message":{"usage":[1]}}`, message()},
		"numbers too big":  {`{"apiErrorStatus":1e300}`, Record{}},
		"status a string":  {`{"apiErrorStatus":"529"}`, Record{APIErrorStatus: 529}},
		"status no number": {`{"apiErrorStatus":"Infinity"}`, Record{}},
		"end of a limit":   {`{"quotaLimits":{"status":"rejected","resetsAt":1796077277}}`, Record{ResetsAt: 1796077277}},
		"no limits":        {`{"quotaLimits":null}`, Record{}},
		"status null":      {`{"apiErrorStatus":null}`, Record{}},
		"marks true":       {`{"isMeta":1,"isSidechain":"yes","isApiErrorMessage":{}}`, Record{IsMeta: true, IsSidechain: true, IsAPIErrorMessage: true}},
		"marks false":      {`{"isMeta":0,"isSidechain":"","isApiErrorMessage":null}`, Record{}},
		"error":            {`{"error":"rate_limit","errorDetails":"d"}`, Record{Error: "rate_limit", ErrorDetails: "d"}},
		"error an object":  {`{"error":{"a":1},"errorDetails":null}`, Record{Error: `{"a":1}`}},
		"half a surrogate": {`{"subtype":"\ud83d"}`, Record{Subtype: "\ufffd"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(test.line))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseSyntax(t *testing.T) {
	for _, line := range []string{
		"", " ", "\n", "null", "1", `"s"`, "[]", "[{}]", "{", `{"type":"user"`, `{"a":1}{"b":2}`,
		`{"a":1} x`, "\x00", "\ufeff{}", `{"a":"` + "\n" + `"}`, `{'a':1}`, strings.Repeat(`{"a":`, 20000),
	} {
		if _, err := Parse([]byte(line)); err != ErrSyntax {
			t.Errorf("Parse(%.40q) error = %v, want ErrSyntax", line, err)
		}
	}
}

func TestParseLong(t *testing.T) {
	text := strings.Repeat("héllo\n", 1<<20)
	encoded, _ := json.Marshal(text)
	record, err := Parse([]byte(`{"type":"assistant","message":{"content":[{"type":"text","text":` + string(encoded) + `}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if record.Message.Text() != text {
		t.Error("text differs")
	}
}

// TestParseDoesNotKeepLine: the follower reuses its buffer.
func TestParseDoesNotKeepLine(t *testing.T) {
	line := []byte(`{"type":"user","message":{"content":[{"type":"text","text":"hello"},"x"]},"error":[1]}`)
	want, _ := Parse(bytes.Clone(line))
	got, _ := Parse(line)
	for i := range line {
		line[i] = '#'
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMessageText(t *testing.T) {
	message := Message{Content: Content{
		{Type: "text", Text: "a\n"},
		{Type: "thinking", Text: "no"},
		{Type: "text", Text: " b"},
		{Text: "no"},
	}}
	if got := message.Text(); got != "a\n b" {
		t.Errorf("Text() = %q", got)
	}
	if got := (*Message)(nil).Text(); got != "" {
		t.Errorf("nil: Text() = %q", got)
	}
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.jsonl")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			f.Add(line)
		}
	}
	f.Add([]byte(`{"message":{"content":["a",{"text":1},null]},"apiErrorStatus":"x","isMeta":-0.0}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		record, err := Parse(line)
		var object map[string]json.RawMessage
		isObject := json.Unmarshal(line, &object) == nil && object != nil
		if (err == nil) != isObject {
			t.Fatalf("error = %v, but object = %v", err, isObject)
		}
		if err != nil && !errors.Is(err, ErrSyntax) {
			t.Fatalf("error = %v", err)
		}
		if record.Message == nil {
			return
		}
		for _, block := range record.Message.Content {
			if !json.Valid(block.Raw) || !bytes.Contains(line, block.Raw) {
				t.Fatalf("Raw = %q is not a value of the line", block.Raw)
			}
		}
	})
}
