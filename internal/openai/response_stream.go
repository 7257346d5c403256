package openai

import (
	"strconv"
	"strings"

	"ocp/internal/turn"
)

// ResponseStream encodes the events of one turn as the events of a streamed response.
// It is for one goroutine.
type ResponseStream struct {
	response Response
	sequence int  // number of the next event
	begun    bool // the response is announced
	opened   bool // so is the item in it
	text     strings.Builder
}

// NewResponseStream makes the encoder of a response's stream.
func NewResponseStream(r Response) *ResponseStream { return &ResponseStream{response: r} }

// Append appends the frames that tell the client of an event, possibly none: as with a
// Stream, nothing is sent before there is text, and an answer with a format is held.
func (s *ResponseStream) Append(dst []byte, event turn.Event) []byte {
	switch event := event.(type) {
	case turn.Delta:
		s.text.WriteString(event.Text)
		if s.response.Format != nil {
			return dst
		}
		dst = s.appendOpening(dst, "")
		return s.appendDelta(dst, "response.output_text.delta", event.Text)
	case turn.Finished:
		return s.appendEnd(dst, event)
	}
	return dst
}

// appendBeginning appends the events that every stream begins with, one that fails
// before its text too: clients take no other event first.
func (s *ResponseStream) appendBeginning(dst []byte) []byte {
	if s.begun {
		return dst
	}
	s.begun = true
	at := state{status: inProgress, model: s.response.Model}
	dst = s.appendState(dst, "response.created", at)
	return s.appendState(dst, "response.in_progress", at)
}

// appendOpening appends the events that come before the text, or before the refusal.
func (s *ResponseStream) appendOpening(dst []byte, refusal string) []byte {
	if s.opened {
		return dst
	}
	s.opened = true
	dst = s.appendBeginning(dst)
	dst = s.appendHead(dst, "response.output_item.added")
	dst = append(dst, `,"output_index":0,"item":`...)
	dst = s.response.appendItem(dst, inProgress, nil)
	dst = append(dst, "}\n\n"...)
	part := appendPart(nil, "", "")
	if refusal != "" {
		part = []byte(`{"type":"refusal","refusal":""}`)
	}
	dst = s.appendPlace(dst, "response.content_part.added")
	return appendLast(dst, `,"part":`, part)
}

// appendEnd appends all that is left once the turn has finished.
func (s *ResponseStream) appendEnd(dst []byte, fin turn.Finished) []byte {
	text, refusal := s.response.Format.check(s.text.String())
	dst = s.appendOpening(dst, refusal)
	part := appendPart(nil, text, refusal)
	if refusal != "" {
		dst = s.appendDelta(dst, "response.refusal.delta", refusal)
		dst = s.appendPlace(dst, "response.refusal.done")
		dst = appendLast(dst, `,"refusal":`, appendString(nil, refusal))
	} else {
		if s.response.Format != nil {
			dst = s.appendDelta(dst, "response.output_text.delta", text)
		}
		dst = s.appendPlace(dst, "response.output_text.done")
		dst = appendLast(dst, `,"logprobs":[],"text":`, appendString(nil, text))
	}
	dst = s.appendPlace(dst, "response.content_part.done")
	dst = appendLast(dst, `,"part":`, part)
	end := s.response.finished(part, fin)
	dst = s.appendHead(dst, "response.output_item.done")
	dst = append(dst, `,"output_index":0`...)
	dst = appendLast(dst, `,"item":`, []byte(end.output))
	return s.appendState(dst, "response."+string(end.status), end)
}

// AppendFailure appends the end of a stream that was begun and has failed: the event of
// the API, and an error, which some clients need to see that it is one. That has the
// fields where the API documents them and in an envelope, where clients look for them.
func (s *ResponseStream) AppendFailure(dst []byte, e *Error) []byte {
	dst = s.appendBeginning(dst)
	dst = s.appendState(dst, "response.failed", state{status: failed, model: s.response.Model, err: e})
	dst = s.appendHead(dst, "error")
	dst = append(dst, `,"code":`...)
	dst = appendNullable(dst, e.Code)
	dst = append(dst, `,"message":`...)
	dst = appendString(dst, e.Message)
	dst = append(dst, `,"param":`...)
	dst = appendNullable(dst, e.Param)
	envelope := e.AppendJSON(nil) // {"error":{…}}
	dst = append(dst, ',')
	return append(append(dst, envelope[1:]...), "\n\n"...)
}

// appendState appends an event that has the whole response.
func (s *ResponseStream) appendState(dst []byte, event string, at state) []byte {
	dst = s.appendHead(dst, event)
	dst = append(dst, `,"response":`...)
	dst = s.response.appendObject(dst, at)
	return append(dst, "}\n\n"...)
}

// appendDelta appends an event with a piece of the answer.
func (s *ResponseStream) appendDelta(dst []byte, event, text string) []byte {
	dst = s.appendPlace(dst, event)
	if event == "response.output_text.delta" {
		dst = append(dst, `,"logprobs":[]`...)
	}
	dst = append(dst, `,"delta":`...)
	dst = appendString(dst, text)
	return append(dst, "}\n\n"...)
}

// appendPlace begins an event that concerns the one part of the one item.
func (s *ResponseStream) appendPlace(dst []byte, event string) []byte {
	dst = s.appendHead(dst, event)
	dst = append(dst, `,"item_id":`...)
	dst = appendString(dst, s.response.ItemID)
	return append(dst, `,"output_index":0,"content_index":0`...)
}

// appendHead begins an event.
func (s *ResponseStream) appendHead(dst []byte, event string) []byte {
	dst = append(dst, "event: "...)
	dst = append(dst, event...)
	dst = append(dst, "\ndata: {\"type\":\""...)
	dst = append(dst, event...)
	dst = append(dst, `","sequence_number":`...)
	dst = strconv.AppendInt(dst, int64(s.sequence), 10)
	s.sequence++
	return dst
}

// appendLast ends an event with its last field.
func appendLast(dst []byte, name string, value []byte) []byte {
	dst = append(dst, name...)
	dst = append(dst, value...)
	return append(dst, "}\n\n"...)
}
