package clients_test

import (
	"strings"
	"testing"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"pgregory.net/rapid"

	"ocp/internal/dialecttest"
	"ocp/internal/openai"
	"ocp/internal/turn"
)

func openaiStream(body []byte) *ssestream.Stream[sdk.ChatCompletionChunk] {
	return ssestream.NewStream[sdk.ChatCompletionChunk](ssestream.NewDecoder(response(body)), nil)
}

func newOpenAIStream(includeUsage bool) stream {
	return openai.NewStream(openai.Answer{ID: "chatcmpl-1", Created: time.Unix(1700000000, 0), Model: "opus", IncludeUsage: includeUsage})
}

func TestOpenAIStream(t *testing.T) {
	newStream := func(t *rapid.T) stream { return newOpenAIStream(rapid.Bool().Draw(t, "usage")) }
	checkTexts(t, newStream, func(t *rapid.T, body []byte) string {
		stream := openaiStream(body)
		var acc sdk.ChatCompletionAccumulator
		for stream.Next() {
			acc.AddChunk(stream.Current())
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		return acc.Choices[0].Message.Content
	})
}

// TestOpenAIStreamFails pins what the end of a failed stream rests on: the client raises
// an error frame, and takes a stream that just ends for a good one.
func TestOpenAIStreamFails(t *testing.T) {
	begun := encode(newOpenAIStream(false), dialecttest.ThreeDeltas()[:3]...)
	for _, test := range []struct {
		name string
		body []byte
		want string
	}{
		{"error frame", openai.FromTurn(&turn.Error{Kind: turn.Diverged, Message: "not what was said"}).AppendFrame(begun), "not what was said"},
		{"bare end", begun, ""},
	} {
		stream := openaiStream(test.body)
		for stream.Next() {
			if reason := stream.Current().Choices[0].FinishReason; reason != "" {
				t.Errorf("%s: finish reason %q", test.name, reason)
			}
		}
		switch err := stream.Err(); {
		case err == nil && test.want != "", err != nil && (test.want == "" || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}

func TestOpenAIFields(t *testing.T) {
	checkFields(t, "## POST /v1/chat/completions", sdk.ChatCompletionNewParams{})
	checkFields(t, "## POST /v1/responses", responses.ResponseNewParams{})
}
