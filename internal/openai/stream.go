package openai

import (
	"strconv"
	"strings"

	"ocp/internal/turn"
)

// Stream encodes the events of one turn as the frames of a streamed answer. It is
// for one goroutine.
type Stream struct {
	answer Answer
	opened bool            // the chunk with the role was appended
	head   []byte          // of every chunk before the finish, up to its delta
	tail   []byte          // of every chunk before the finish, from behind its delta
	held   strings.Builder // the text so far, if the answer has a format
	calls  []turn.ToolCall
}

// NewStream makes the encoder of the answer's stream.
func NewStream(a Answer) *Stream {
	s := &Stream{answer: a}
	s.head = a.appendHead([]byte("data: "), "chat.completion.chunk", a.Model)
	s.head = append(s.head, `,"choices":[{"index":0,"delta":`...)
	s.tail = append(s.tail, `,"logprobs":null,"finish_reason":null}]`...)
	s.tail = s.appendNoUsage(s.tail)
	s.tail = append(s.tail, "}\n\n"...)
	return s
}

// Append appends the frames that tell the client of an event, possibly none: the
// stream opens with the first text, so that a turn which fails before it can still be
// answered with its own status. Finished appends all that is left, [DONE] included. An
// answer with a format is held until then, since it is sent only if it passes.
func (s *Stream) Append(dst []byte, event turn.Event) []byte {
	switch event := event.(type) {
	case turn.Delta:
		if s.answer.Format != nil {
			s.held.WriteString(event.Text)
			return dst
		}
		dst = s.appendOpening(dst, `"content":"","refusal":null`)
		return s.appendText(dst, `"content":`, event.Text)
	case turn.ToolCall:
		s.calls = append(s.calls, event) // behind all text, of which more may come
	case turn.Finished:
		switch {
		case s.answer.Format == nil:
		case len(s.calls) == 0:
			dst = s.appendChecked(dst)
		case s.held.Len() > 0:
			dst = s.appendOpening(dst, `"content":"","refusal":null`)
			dst = s.appendText(dst, `"content":`, s.held.String())
		}
		if len(s.calls) > 0 {
			dst = s.appendOpening(dst, `"content":null,"refusal":null`)
		}
		dst = s.appendOpening(dst, `"content":"","refusal":null`)
		for i, call := range s.calls {
			dst = s.appendCall(dst, i, call)
		}
		dst = s.appendFinish(dst, event)
		return append(dst, "data: [DONE]\n\n"...)
	}
	return dst
}

// appendChecked appends an answer that was held for its format, or its refusal.
func (s *Stream) appendChecked(dst []byte) []byte {
	content, refusal := s.answer.Format.check(s.held.String())
	if refusal != "" {
		dst = s.appendOpening(dst, `"content":null,"refusal":""`)
		return s.appendText(dst, `"refusal":`, refusal)
	}
	dst = s.appendOpening(dst, `"content":"","refusal":null`)
	return s.appendText(dst, `"content":`, content)
}

// appendCall appends the chunks of a tool call: one that names it, and its arguments.
func (s *Stream) appendCall(dst []byte, i int, call turn.ToolCall) []byte {
	index := `"index":` + strconv.Itoa(i) + `,`
	dst = append(dst, s.head...)
	dst = append(dst, `{"tool_calls":[`...)
	dst = appendCall(dst, index, call, "")
	dst = append(dst, `]}`...)
	dst = append(dst, s.tail...)
	dst = append(dst, s.head...)
	dst = append(dst, `{"tool_calls":[{`...)
	dst = append(dst, index...)
	dst = append(dst, `"function":{"arguments":`...)
	dst = appendString(dst, string(call.Input))
	dst = append(dst, `}}]}`...)
	return append(dst, s.tail...)
}

// appendText appends a chunk of one field.
func (s *Stream) appendText(dst []byte, field, text string) []byte {
	dst = append(dst, s.head...)
	dst = append(dst, '{')
	dst = append(dst, field...)
	dst = appendString(dst, text)
	dst = append(dst, '}')
	return append(dst, s.tail...)
}

// appendOpening appends the first chunk, which has the role, unless it was appended.
func (s *Stream) appendOpening(dst []byte, fields string) []byte {
	if s.opened {
		return dst
	}
	s.opened = true
	dst = append(dst, s.head...)
	dst = append(dst, `{"role":"assistant",`...)
	dst = append(dst, fields...)
	dst = append(dst, '}')
	return append(dst, s.tail...)
}

func (s *Stream) appendFinish(dst []byte, fin turn.Finished) []byte {
	model := s.answer.served(fin)
	dst = s.answer.appendHead(append(dst, "data: "...), "chat.completion.chunk", model)
	dst = append(dst, `,"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"`...)
	dst = append(dst, finishReason(fin.StopReason)...)
	dst = append(dst, `"}]`...)
	dst = s.appendNoUsage(dst)
	dst = append(dst, "}\n\n"...)
	if !s.answer.IncludeUsage || fin.Usage.Estimated {
		return dst
	}
	dst = s.answer.appendHead(append(dst, "data: "...), "chat.completion.chunk", model)
	dst = append(dst, `,"choices":[],"usage":`...)
	dst = appendUsage(dst, fin.Usage)
	return append(dst, "}\n\n"...)
}

// appendNoUsage appends what a chunk without usage says of it: null if a usage chunk
// is to come, otherwise nothing.
func (s *Stream) appendNoUsage(dst []byte) []byte {
	if s.answer.IncludeUsage {
		return append(dst, `,"usage":null`...)
	}
	return dst
}
