package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

const modelName = "claude-sonnet-4-6"

// client is OpenAI's own SDK, pointed at the proxy.
func (p *proxy) client() openai.Client {
	return openai.NewClient(option.WithBaseURL(p.url+"/v1"), option.WithAPIKey("unused"), option.WithMaxRetries(0))
}

// user is a conversation of one user message.
func user(text string) []openai.ChatCompletionMessageParamUnion {
	return []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}
}

// answerStream is a streamed answer being read.
type answerStream struct {
	*ssestream.Stream[openai.ChatCompletionChunk]
	text   strings.Builder
	deltas []string
	finish string // finish_reason, once there
	model  string // of the last chunk
	usage  openai.CompletionUsage
}

// stream asks for a streamed answer with usage.
func (p *proxy) stream(ctx context.Context, messages []openai.ChatCompletionMessageParamUnion) *answerStream {
	client := p.client()
	return &answerStream{Stream: client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
		Model: modelName, Messages: messages,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	})}
}

// next reads up to the next delta and returns it, or false at the end of the stream.
func (s *answerStream) next() (string, bool) {
	for s.Next() {
		chunk := s.Current()
		s.model = chunk.Model
		if chunk.Usage.TotalTokens > 0 {
			s.usage = chunk.Usage
		}
		if len(chunk.Choices) == 0 {
			continue
		}
		choice := chunk.Choices[0]
		if choice.FinishReason != "" {
			s.finish = choice.FinishReason
		}
		if delta := choice.Delta.Content; delta != "" {
			s.text.WriteString(delta)
			s.deltas = append(s.deltas, delta)
			return delta, true
		}
	}
	return "", false
}

// readAll reads to the end; the error is that of the stream.
func (s *answerStream) readAll() (string, error) {
	for {
		if _, more := s.next(); !more {
			return s.text.String(), s.Err()
		}
	}
}

// mustReadAll reads a stream that must end well.
func (s *answerStream) mustReadAll(t testing.TB) string {
	t.Helper()
	text, err := s.readAll()
	if err != nil {
		t.Fatalf("stream: %v (after %d bytes)", err, len(text))
	}
	if s.finish == "" {
		t.Fatalf("the stream ended without a finish_reason, after %d bytes", len(text))
	}
	return text
}

// complete asks for the same answer, not streamed.
func (p *proxy) complete(ctx context.Context, messages []openai.ChatCompletionMessageParamUnion) (*openai.ChatCompletion, error) {
	client := p.client()
	return client.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{Model: modelName, Messages: messages})
}
