package clients_test

import (
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"
	"pgregory.net/rapid"

	"ocp/internal/anthropic"
	"ocp/internal/dialecttest"
	"ocp/internal/turn"
)

func anthropicStream(body []byte) *ssestream.Stream[sdk.MessageStreamEventUnion] {
	return ssestream.NewStream[sdk.MessageStreamEventUnion](ssestream.NewDecoder(response(body)), nil)
}

func newAnthropicStream() stream {
	return anthropic.NewStream(anthropic.Answer{ID: "msg_1", Model: "opus"})
}

func TestAnthropicStream(t *testing.T) {
	newStream := func(*rapid.T) stream { return newAnthropicStream() }
	checkTexts(t, newStream, func(t *rapid.T, body []byte) string {
		stream := anthropicStream(body)
		var message sdk.Message
		for stream.Next() {
			if err := message.Accumulate(stream.Current()); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, block := range message.Content {
			text += block.Text
		}
		if (text == "") != (len(message.Content) == 0) {
			t.Fatalf("%q in %d blocks", text, len(message.Content))
		}
		u := message.Usage
		if u.InputTokens != 3 || u.CacheReadInputTokens != 1000 || u.CacheCreationInputTokens != 50 || u.OutputTokens != 7 || message.StopReason != "end_turn" {
			t.Fatalf("got %s", message.RawJSON())
		}
		return text
	})
}

// TestAnthropicStreamFails pins that the client raises the error of a stream.
func TestAnthropicStreamFails(t *testing.T) {
	failed := anthropic.FromTurn(&turn.Error{Kind: turn.Diverged, Message: "not what was said"})
	stream := anthropicStream(failed.AppendFrame(encode(newAnthropicStream(), dialecttest.ThreeDeltas()[:3]...)))
	for stream.Next() {
		if kind := stream.Current().Type; kind == "message_stop" || kind == "message_delta" {
			t.Errorf("got a %s", kind)
		}
	}
	if err := stream.Err(); err == nil || !strings.Contains(err.Error(), "not what was said") {
		t.Errorf("got %v", err)
	}
}

func TestAnthropicFields(t *testing.T) {
	checkFields(t, "## POST /v1/messages", sdk.MessageNewParams{})
}
