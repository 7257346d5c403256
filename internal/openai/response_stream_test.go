package openai

import (
	"slices"
	"strings"
	"testing"

	"ocp/internal/turn"
)

// eventTypes returns the types of a stream's events, in their order.
func eventTypes(stream []byte) (types []string) {
	for line := range strings.Lines(string(stream)) {
		if event, ok := strings.CutPrefix(line, "event: "); ok {
			types = append(types, strings.TrimSpace(event))
		}
	}
	return types
}

// TestFailureBeforeText checks that a stream which a keep-alive has opened begins as
// clients want it, whatever comes first, and that its beginning is sent once.
func TestFailureBeforeText(t *testing.T) {
	broken := &Error{Type: TypeServer, Code: "upstream_error", Message: "it broke"}
	opening := []string{"response.created", "response.in_progress"}
	text := []string{"response.output_item.added", "response.content_part.added", "response.output_text.delta"}
	end := []string{"response.failed", "error"}
	for name, test := range map[string]struct {
		events []turn.Event
		want   []string
	}{
		"nothing sent": {nil, slices.Concat(opening, end)},
		"text sent":    {[]turn.Event{turn.Delta{Text: "a"}}, slices.Concat(opening, text, end)},
	} {
		s := NewResponseStream(Response{ID: "resp_1", ItemID: "msg_1", Model: "opus"})
		var sent []byte
		for _, event := range test.events {
			sent = s.Append(sent, event)
		}
		sent = s.AppendFailure(sent, broken)
		if got := eventTypes(sent); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		if !strings.HasPrefix(string(sent), "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,") {
			t.Errorf("%s: the first event is not number 0: %.120s", name, sent)
		}
	}
}
