package anthropic

import (
	"crypto/rand"
	"strconv"

	"ocp/internal/turn"
	"ocp/internal/wire"
)

// Ping is the event that keeps a silent stream alive.
const Ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n"

// Answer is what every answer to one request carries.
type Answer struct {
	ID string
	// Model is the name the client asked for. A stream says no other: when it begins
	// it is not known yet who answers. An answer that is not streamed names the model
	// that served.
	Model string
}

// NewAnswer makes an Answer to req with an id of its own.
func NewAnswer(req MessageRequest) Answer {
	return Answer{ID: "msg_" + rand.Text(), Model: req.Prompt.Model}
}

// appendHead appends a message's fields up to its content.
func (a Answer) appendHead(dst []byte, model string) []byte {
	dst = append(dst, `{"id":`...)
	dst = wire.AppendString(dst, a.ID)
	dst = append(dst, `,"type":"message","role":"assistant","model":`...)
	dst = wire.AppendString(dst, model)
	return append(dst, `,"content":[`...)
}

// AppendMessage appends the whole answer of a request that is not streamed.
func (a Answer) AppendMessage(dst []byte, text string, fin turn.Finished) []byte {
	model := fin.Model
	if model == "" {
		model = a.Model
	}
	dst = a.appendHead(dst, model)
	if text != "" { // the API has no empty text blocks
		dst = append(dst, `{"type":"text","text":`...)
		dst = wire.AppendString(dst, text)
		dst = append(dst, '}')
	}
	dst = append(dst, `],`...)
	dst = appendStop(dst, fin)
	dst = append(dst, `,"usage":`...)
	dst = appendUsage(dst, fin.Usage)
	return append(dst, '}')
}

// Stream encodes the events of one turn as the events of a streamed answer. It is for
// one goroutine.
type Stream struct {
	answer Answer
	opened bool // message_start was appended
	inText bool // content_block_start was
}

// NewStream makes the encoder of the answer's stream.
func NewStream(a Answer) *Stream { return &Stream{answer: a} }

// Append appends the events that tell the client of an event of the turn, possibly
// none: the stream opens with the first text, so that a turn which fails before it can
// still be answered with its own status. Finished appends all that is left.
func (s *Stream) Append(dst []byte, event turn.Event) []byte {
	switch event := event.(type) {
	case turn.Delta:
		if event.Text == "" {
			return dst
		}
		dst = s.appendOpening(dst)
		dst = s.appendBlockStart(dst)
		dst = append(dst, `event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`...)
		dst = wire.AppendString(dst, event.Text)
		return append(dst, "}}\n\n"...)
	case turn.Finished:
		dst = s.appendOpening(dst)
		if s.inText {
			dst = append(dst, `event: content_block_stop
data: {"type":"content_block_stop","index":0}

`...)
		}
		return appendEnd(dst, event)
	}
	return dst
}

// appendOpening appends message_start. Its usage is zero: what the model was sent is
// counted upstream, and known only at the end.
func (s *Stream) appendOpening(dst []byte) []byte {
	if s.opened {
		return dst
	}
	s.opened = true
	dst = append(dst, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":"...)
	dst = s.answer.appendHead(dst, s.answer.Model)
	dst = append(dst, `],"stop_reason":null,"stop_sequence":null,"stop_details":null,"usage":`...)
	dst = appendUsage(dst, turn.Usage{})
	return append(dst, "}}\n\n"...)
}

func (s *Stream) appendBlockStart(dst []byte) []byte {
	if s.inText {
		return dst
	}
	s.inText = true
	dst = append(dst, `event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

`...)
	return append(dst, Ping...)
}

func appendEnd(dst []byte, fin turn.Finished) []byte {
	dst = append(dst, `event: message_delta
data: {"type":"message_delta","delta":{`...)
	dst = appendStop(dst, fin)
	dst = append(dst, `},"usage":`...)
	dst = appendUsage(dst, fin.Usage)
	return append(dst, `}

event: message_stop
data: {"type":"message_stop"}

`...)
}

// appendStop appends why the model stopped. The reasons are this API's own and pass as
// they are.
func appendStop(dst []byte, fin turn.Finished) []byte {
	reason := fin.StopReason
	if reason == "" {
		reason = turn.EndTurn
	}
	dst = append(dst, `"stop_reason":`...)
	dst = wire.AppendString(dst, string(reason))
	dst = append(dst, `,"stop_sequence":`...)
	if fin.StopSequence == "" {
		dst = append(dst, "null"...)
	} else {
		dst = wire.AppendString(dst, fin.StopSequence)
	}
	return append(dst, `,"stop_details":null`...)
}

// appendUsage appends the usage object, with a mark if its numbers are OCP's own.
func appendUsage(dst []byte, u turn.Usage) []byte {
	for _, field := range [...]struct {
		name  string
		value int
	}{
		{`{"input_tokens":`, u.Input},
		{`,"cache_creation_input_tokens":`, u.CacheCreation},
		{`,"cache_read_input_tokens":`, u.CacheRead},
		{`,"output_tokens":`, u.Output},
	} {
		dst = append(dst, field.name...)
		dst = strconv.AppendInt(dst, int64(field.value), 10)
	}
	if u.Estimated {
		dst = append(dst, `,"ocp_estimate":true`...)
	}
	return append(dst, '}')
}

// AppendCount appends the answer to a count of tokens.
func AppendCount(dst []byte, tokens int) []byte {
	dst = append(dst, `{"input_tokens":`...)
	dst = strconv.AppendInt(dst, int64(tokens), 10)
	return append(dst, '}')
}
