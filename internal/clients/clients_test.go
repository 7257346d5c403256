// Package clients_test shows what the official Go clients make of what the dialects
// send. It is apart from the dialects' own tests because the clients take minutes to
// compile for fuzzing.
package clients_test

import (
	"bytes"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ocp/internal/dialecttest"
	"ocp/internal/turn"
)

// stream is a dialect's encoder.
type stream interface {
	Append(dst []byte, event turn.Event) []byte
}

func encode(s stream, events ...turn.Event) []byte {
	var body []byte
	for _, event := range events {
		body = s.Append(body, event)
	}
	return body
}

// response is a streamed body as a client of HTTP gets it.
func response(body []byte) *http.Response {
	return &http.Response{
		Header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}},
		Body:   io.NopCloser(bytes.NewReader(body)),
	}
}

// checkTexts gives read the streams of turns with any text, cut in any way, and compares
// the text that it returns.
func checkTexts(t *testing.T, newStream func(*rapid.T) stream, read func(t *rapid.T, body []byte) (text string)) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOf(rapid.String()).Draw(t, "texts")
		events := []turn.Event{turn.Started{}}
		for _, text := range texts {
			events = append(events, turn.Delta{Text: text})
		}
		body := encode(newStream(t), append(events, dialecttest.Finished())...)
		if !utf8.Valid(body) || bytes.ContainsAny(body, "\r\u0085\u2028\u2029") {
			t.Fatalf("the body has line ends of its own: %q", body)
		}
		if got, want := read(t, body), strings.Join(texts, ""); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

// checkFields holds a table of docs/api.md to the fields that a client can send.
func checkFields(t *testing.T, section string, params any) {
	t.Helper()
	documented := map[string]bool{}
	for _, row := range dialecttest.Table(t, section, "Field") {
		documented[row.Name] = true
	}
	for field := range reflect.TypeOf(params).Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" && !documented[name] {
			t.Errorf("%s: %s of the official client is not in the table", section, name)
		}
	}
}
