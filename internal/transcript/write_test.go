package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func text(s string) textBlock { return textBlock{"text", s} }

func TestWrite(t *testing.T) {
	before := time.Now().UTC().Truncate(time.Millisecond).Add(-10 * time.Millisecond)
	var b bytes.Buffer
	n, err := Write(&b, []Entry{
		{Role: "user", Content: []textBlock{text("<a> & \"b\"\t\u2028\ufffd\x00é😀")}},
		{Role: "assistant", Content: []any{text("yes"), map[string]any{"type": "tool_use"}}},
		{Role: "user", Content: json.RawMessage("[\n {\"type\" : \"text\",\"text\":\"raw \u2029 <x>\"} ]")},
	})
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("Write = %d, %v; wrote %d bytes", n, err, b.Len())
	}
	wants := []struct{ role, content string }{
		{"user", `[{"type":"text","text":"<a> & \"b\"\t\u2028` + "\ufffd" + `\u0000é😀"}]`},
		{"assistant", `[{"type":"text","text":"yes"},{"type":"tool_use"}]`},
		{"user", `[{"type":"text","text":"raw \u2029 <x>"}]`},
	}
	lines := strings.SplitAfter(b.String(), "\n")
	if len(lines) != len(wants)+1 || lines[len(wants)] != "" {
		t.Fatalf("lines = %q", lines)
	}
	var parent *string
	last := before
	for i, want := range wants {
		var got entryRecord
		decoder := json.NewDecoder(strings.NewReader(lines[i]))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if got.Type != want.role || got.Message.Role != want.role || string(got.Message.Content) != want.content {
			t.Errorf("line %d = %s", i, lines[i])
		}
		if diff := cmp.Diff(parent, got.ParentUUID); diff != "" {
			t.Errorf("line %d: parentUuid (-want +got):\n%s", i, diff)
		}
		if uuid.Validate(got.UUID) != nil {
			t.Errorf("line %d: uuid = %q", i, got.UUID)
		}
		at, err := time.Parse("2006-01-02T15:04:05.000Z", got.Timestamp)
		if err != nil || !at.After(last) || at.After(time.Now()) {
			t.Errorf("line %d: timestamp = %q (%v), behind %v", i, got.Timestamp, err, last)
		}
		parent, last = &got.UUID, at
	}
	if !strings.Contains(lines[0], `"parentUuid":null,`) {
		t.Errorf("first line has no parentUuid null: %s", lines[0])
	}
}

func TestWriteRefuses(t *testing.T) {
	tests := map[string]Entry{
		"role":             {Role: "system", Content: []textBlock{text("a")}},
		"no role":          {Role: "", Content: []textBlock{text("a")}},
		"string content":   {Role: "user", Content: "a"},
		"object content":   {Role: "user", Content: text("a")},
		"no content":       {Role: "user", Content: nil},
		"nil slice":        {Role: "user", Content: []textBlock(nil)},
		"does not marshal": {Role: "user", Content: []any{func() {}}},
		"raw no JSON":      {Role: "user", Content: json.RawMessage(`[`)},
		"raw no UTF-8":     {Role: "user", Content: json.RawMessage("[{\"type\":\"text\",\"text\":\"\xff\"}]")},
	}
	for name, entry := range tests {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			n, err := Write(&b, []Entry{{Role: "user", Content: []textBlock{text("first")}}, entry})
			if !errors.Is(err, ErrEntry) {
				t.Errorf("error = %v, want ErrEntry", err)
			}
			if n != int64(b.Len()) || bytes.Count(b.Bytes(), []byte("\n")) != 1 {
				t.Errorf("n = %d; wrote %q, want the first entry alone", n, b.Bytes())
			}
		})
	}
}

type shortWriter struct{ left int }

var errFull = errors.New("full")

func (w *shortWriter) Write(p []byte) (int, error) {
	n := min(w.left, len(p))
	w.left -= n
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

func TestWriteCountsAfterError(t *testing.T) {
	n, err := Write(&shortWriter{left: 7}, []Entry{{Role: "user", Content: []textBlock{text("a")}}})
	if n != 7 || !errors.Is(err, errFull) {
		t.Errorf("Write = %d, %v, want 7, full", n, err)
	}
}

func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.jsonl")
	entries := []Entry{{Role: "user", Content: []textBlock{text("a")}}}
	if _, err := Create(path, []Entry{entries[0], {Role: "user", Content: "string"}}); !errors.Is(err, ErrEntry) {
		t.Fatalf("error = %v, want ErrEntry", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a failed Create left a file: %v", err)
	}
	n, err := Create(path, entries)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 || info.Size() != n {
		t.Errorf("mode %v, size %d, want 0600 and %d", info.Mode(), info.Size(), n)
	}
	if _, err := Create(path, entries); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second Create: error = %v, want ErrExist", err)
	}
	if again, err := os.Stat(path); err != nil || again.Size() != n {
		t.Errorf("second Create touched the file: %v, %v", again, err)
	}
}

// hostile are texts that line readers, JSON encoders and terminals have trouble with.
var hostile = []string{
	"", "\\", "\"", "\n", "\r", "\r\n", "\t", "\x00", "\x1b[2J", "\x7f", "\u0085", "\u2028", "\u2029",
	"\ufeff", "\ufffd", "\ufffe", "\U0010ffff", "👩‍👩‍👧‍👦", "e\u0301", `\ufffd`, `\u2028`, "</script>", "<&>", "!ls", "/exit", "@/etc/passwd",
}

func textGenerator() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOf(rapid.OneOf(rapid.SampledFrom(hostile), rapid.String())),
		func(parts []string) string { return strings.Join(parts, "") })
}

func TestWriteThenParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := rapid.SliceOf(rapid.SliceOf(textGenerator())).Draw(t, "messages")
		var entries []Entry
		for i, texts := range messages {
			blocks := []textBlock{}
			for _, s := range texts {
				blocks = append(blocks, text(s))
			}
			entries = append(entries, Entry{Role: []string{"user", "assistant"}[i%2], Content: blocks})
		}
		var b bytes.Buffer
		if _, err := Write(&b, entries); err != nil {
			t.Fatal(err)
		}
		var got [][]string
		for line := range bytes.Lines(b.Bytes()) {
			record, err := Parse(line)
			if err != nil {
				t.Fatal(err)
			}
			texts := []string{}
			for _, block := range record.Message.Content {
				texts = append(texts, block.Text)
			}
			if want := strings.Join(texts, ""); record.Message.Text() != want {
				t.Fatalf("Text() = %q, want %q", record.Message.Text(), want)
			}
			got = append(got, texts)
		}
		if len(got) != len(messages) {
			t.Fatalf("%d lines, want %d", len(got), len(messages))
		}
		for i := range got {
			if diff := cmp.Diff(strings.Join(messages[i], "\x00|"), strings.Join(got[i], "\x00|")); diff != "" {
				t.Fatalf("message %d (-want +got):\n%s", i, diff)
			}
		}
	})
}

func FuzzWriteThenParse(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			t.Skip("the caller gives valid UTF-8")
		}
		raw, err := json.Marshal([]textBlock{text(s)})
		if err != nil {
			t.Fatal(err)
		}
		for _, content := range []any{[]textBlock{text(s)}, json.RawMessage(raw)} {
			var b bytes.Buffer
			if _, err := Write(&b, []Entry{{Role: "user", Content: content}}); err != nil {
				t.Fatal(err)
			}
			record, err := Parse(b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if got := record.Message.Text(); got != s {
				t.Fatalf("got %q, want %q", got, s)
			}
			if bytes.Count(b.Bytes(), []byte("\n")) != 1 || strings.ContainsAny(b.String(), "\u2028\u2029\r") {
				t.Fatalf("not one line: %q", b.Bytes())
			}
		}
	})
}

func TestWriteTold(t *testing.T) {
	var b bytes.Buffer
	entries := []Entry{{Told: map[string]any{"type": "model", "text": "<x>"}}, {Role: "user", Content: []string{}}}
	if n, err := Write(&b, entries); err != nil || n != int64(b.Len()) {
		t.Fatal(n, err)
	}
	lines := bytes.SplitAfter(b.Bytes(), []byte("\n"))
	first, err := Parse(lines[0])
	if err != nil || first.Type != "attachment" || first.AttachmentType != "model" || string(first.Attachment) != `{"text":"<x>","type":"model"}` {
		t.Errorf("got %+v, %v", first, err)
	}
	var told, user struct {
		UUID, ParentUUID string
		Rendered         []struct{ Content string }
	}
	if json.Unmarshal(lines[0], &told) != nil || json.Unmarshal(lines[1], &user) != nil || user.ParentUUID != told.UUID {
		t.Errorf("the chain is broken: %s", b.Bytes())
	}
	if len(told.Rendered) != 1 || told.Rendered[0].Content != " " {
		t.Errorf("the model would be told: %s", lines[0])
	}
}
