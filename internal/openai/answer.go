package openai

import (
	"crypto/rand"
	"strconv"
	"time"

	"ocp/internal/turn"
)

// Answer is what every byte of one chat completion's answer carries.
type Answer struct {
	ID      string
	Created time.Time
	// Model is the name the client asked for. Chunks carry it until the turn
	// finishes; only then is it known who answered, so the finish and usage chunks,
	// and an answer that is not streamed, carry the served model.
	Model        string
	IncludeUsage bool // streams end with a chunk of usage
}

// NewAnswer makes an Answer to req with an id of its own.
func NewAnswer(req ChatRequest, now time.Time) Answer {
	return Answer{
		ID:           "chatcmpl-" + rand.Text(),
		Created:      now,
		Model:        req.Prompt.Model,
		IncludeUsage: req.IncludeUsage,
	}
}

// appendHead appends the fields that every object of the answer starts with.
func (a Answer) appendHead(dst []byte, object, model string) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendString(dst, a.ID)
	dst = append(dst, `,"object":"`...)
	dst = append(dst, object...)
	dst = append(dst, `","created":`...)
	dst = strconv.AppendInt(dst, a.Created.Unix(), 10)
	dst = append(dst, `,"model":`...)
	return appendString(dst, model)
}

// served is the model that answered, or the requested one if the turn did not say.
func (a Answer) served(fin turn.Finished) string {
	if fin.Model != "" {
		return fin.Model
	}
	return a.Model
}

// AppendCompletion appends the whole answer of a request that is not streamed.
func (a Answer) AppendCompletion(dst []byte, text string, fin turn.Finished) []byte {
	dst = a.appendHead(dst, "chat.completion", a.served(fin))
	dst = append(dst, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	dst = appendString(dst, text)
	dst = append(dst, `,"refusal":null},"logprobs":null,"finish_reason":"`...)
	dst = append(dst, finishReason(fin.StopReason)...)
	dst = append(dst, `"}],"usage":`...)
	dst = appendUsage(dst, fin.Usage)
	return append(dst, '}')
}

// Stream encodes the events of one turn as the frames of a streamed answer. It is
// for one goroutine.
type Stream struct {
	answer Answer
	opened bool   // the chunk with the role was appended
	head   []byte // of every chunk before the finish, up to its delta
	tail   []byte // of every chunk before the finish, from behind its delta
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
// answered with its own status. Finished appends all that is left, [DONE] included.
func (s *Stream) Append(dst []byte, event turn.Event) []byte {
	switch event := event.(type) {
	case turn.Delta:
		dst = s.appendOpening(dst)
		dst = append(dst, s.head...)
		dst = append(dst, `{"content":`...)
		dst = appendString(dst, event.Text)
		dst = append(dst, '}')
		return append(dst, s.tail...)
	case turn.Finished:
		dst = s.appendOpening(dst)
		dst = s.appendFinish(dst, event)
		return append(dst, "data: [DONE]\n\n"...)
	}
	return dst
}

func (s *Stream) appendOpening(dst []byte) []byte {
	if s.opened {
		return dst
	}
	s.opened = true
	dst = append(dst, s.head...)
	dst = append(dst, `{"role":"assistant","content":"","refusal":null}`...)
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
	if !s.answer.IncludeUsage {
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

// finishReason maps the upstream's reason; one that is not known is a normal end.
func finishReason(r turn.StopReason) string {
	switch r {
	case turn.MaxTokens, turn.ContextWindow:
		return "length"
	case turn.Refusal:
		return "content_filter"
	}
	return "stop"
}

// appendUsage appends the usage object. The prompt's tokens are all of them, cached
// ones included, as this API counts them.
func appendUsage(dst []byte, u turn.Usage) []byte {
	in := u.Input + u.CacheRead + u.CacheCreation
	for _, field := range [...]struct {
		name  string
		value int
	}{
		{`{"prompt_tokens":`, in},
		{`,"completion_tokens":`, u.Output},
		{`,"total_tokens":`, in + u.Output},
		{`,"prompt_tokens_details":{"cached_tokens":`, u.CacheRead},
	} {
		dst = append(dst, field.name...)
		dst = strconv.AppendInt(dst, int64(field.value), 10)
	}
	return append(dst, `},"completion_tokens_details":{"reasoning_tokens":0}}`...)
}
