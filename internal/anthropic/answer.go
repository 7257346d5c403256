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
func (a Answer) AppendMessage(dst []byte, text string, fin turn.Finished, calls ...turn.ToolCall) []byte {
	model := fin.Model
	if model == "" {
		model = a.Model
	}
	dst = a.appendHead(dst, model)
	blocks := content{dst: dst}
	for _, call := range calls {
		blocks.upTo(text, call.At)
		blocks.next()
		blocks.dst = appendCall(blocks.dst, call, call.Input)
	}
	blocks.upTo(text, len(text))
	dst = append(blocks.dst, `],`...)
	dst = appendStop(dst, fin)
	dst = append(dst, `,"usage":`...)
	dst = appendUsage(dst, fin.Usage)
	return append(dst, '}')
}

// content is the content of a message while it is written.
type content struct {
	dst   []byte
	said  int // bytes of the text
	begun bool
}

func (c *content) next() {
	if c.begun {
		c.dst = append(c.dst, ',')
	}
	c.begun = true
}

// upTo appends a block of the text up to a place in it; the API has no empty ones.
func (c *content) upTo(text string, end int) {
	if end <= c.said {
		return
	}
	c.next()
	c.dst = append(c.dst, `{"type":"text","text":`...)
	c.dst = wire.AppendString(c.dst, text[c.said:end])
	c.dst = append(c.dst, '}')
	c.said = end
}

// appendCall appends a tool_use block.
func appendCall(dst []byte, call turn.ToolCall, input []byte) []byte {
	dst = append(dst, `{"type":"tool_use","id":`...)
	dst = wire.AppendString(dst, call.ID)
	dst = append(dst, `,"name":`...)
	dst = wire.AppendString(dst, call.Name)
	dst = append(dst, `,"input":`...)
	return append(append(dst, input...), '}')
}

// Stream encodes the events of one turn as the events of a streamed answer. It is for
// one goroutine.
type Stream struct {
	answer Answer
	opened bool // message_start was appended
	inText bool // content_block_start of a text was
	index  int  // of the block that is open, or comes next
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
		dst = s.appendHead(dst, "content_block_delta")
		dst = append(dst, `,"delta":{"type":"text_delta","text":`...)
		dst = wire.AppendString(dst, event.Text)
		return append(dst, "}}\n\n"...)
	case turn.ToolCall:
		dst = s.appendOpening(dst)
		dst = s.appendTextStop(dst)
		dst = s.appendHead(dst, "content_block_start")
		dst = append(dst, `,"content_block":`...)
		dst = appendCall(dst, event, []byte("{}"))
		dst = append(dst, "}\n\n"...)
		dst = s.appendHead(dst, "content_block_delta")
		dst = append(dst, `,"delta":{"type":"input_json_delta","partial_json":`...)
		dst = wire.AppendString(dst, string(event.Input))
		dst = append(dst, "}}\n\n"...)
		return s.appendStop(dst)
	case turn.Finished:
		dst = s.appendOpening(dst)
		dst = s.appendTextStop(dst)
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
	dst = s.appendHead(dst, "content_block_start")
	dst = append(dst, `,"content_block":{"type":"text","text":""}}

`...)
	return append(dst, Ping...)
}

// appendHead appends the beginning of an event of the block that is open or comes next.
func (s *Stream) appendHead(dst []byte, event string) []byte {
	dst = append(dst, "event: "...)
	dst = append(dst, event...)
	dst = append(dst, "\ndata: {\"type\":\""...)
	dst = append(dst, event...)
	dst = append(dst, `","index":`...)
	return strconv.AppendInt(dst, int64(s.index), 10)
}

// appendStop ends the block that is open.
func (s *Stream) appendStop(dst []byte) []byte {
	dst = s.appendHead(dst, "content_block_stop")
	s.index++
	s.inText = false
	return append(dst, "}\n\n"...)
}

func (s *Stream) appendTextStop(dst []byte) []byte {
	if !s.inText {
		return dst
	}
	return s.appendStop(dst)
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
