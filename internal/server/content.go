package server

import (
	"encoding/json"
	"log/slog"
	"strconv"

	"ocp/internal/prompt"
	"ocp/internal/turn"
)

// mostContent bounds a text that is logged, in bytes. What is cut off is said.
const mostContent = 64 << 10

// content is the texts of a turn, for Options.LogContent.
type content struct {
	prompt prompt.Conversation
	answer []byte // no more than mostContent of it
	length int    // of the whole answer
}

// add takes the text of an event. A nil content takes none.
func (c *content) add(event turn.Event) {
	delta, ok := event.(turn.Delta)
	if c == nil || !ok {
		return
	}
	c.length += len(delta.Text)
	c.answer = append(c.answer, delta.Text[:min(len(delta.Text), mostContent-len(c.answer))]...)
}

func (c *content) attrs() []slog.Attr {
	messages, err := json.Marshal(c.prompt.Messages)
	if err != nil { // blocks are checked by their dialect
		messages = []byte(err.Error())
	}
	return []slog.Attr{
		slog.String("system", shorten(c.prompt.System, len(c.prompt.System))),
		slog.String("messages", shorten(string(messages), len(messages))),
		slog.String("answer", shorten(string(c.answer), c.length)),
	}
}

// shorten keeps mostContent bytes of a text that is so long in full.
func shorten(text string, length int) string {
	if length <= mostContent {
		return text
	}
	return text[:min(len(text), mostContent)] + "… (" + strconv.Itoa(length) + " bytes)"
}
