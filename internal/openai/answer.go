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
	IncludeUsage bool    // streams end with a chunk of usage
	Format       *Format // what the answer must be; nil for any text
}

// NewAnswer makes an Answer to req with an id of its own.
func NewAnswer(req ChatRequest, now time.Time) Answer {
	return Answer{
		ID:           "chatcmpl-" + rand.Text(),
		Created:      now,
		Model:        req.Prompt.Model,
		IncludeUsage: req.IncludeUsage,
		Format:       req.Format,
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
func (a Answer) AppendCompletion(dst []byte, text string, fin turn.Finished, calls ...turn.ToolCall) []byte {
	content, refusal := text, ""
	if len(calls) == 0 { // with calls it is not the answer yet that a format is for
		content, refusal = a.Format.check(text)
	}
	dst = a.appendHead(dst, "chat.completion", a.served(fin))
	dst = append(dst, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	if refusal != "" || text == "" && len(calls) > 0 {
		dst = append(dst, "null"...)
	} else {
		dst = appendString(dst, content)
	}
	dst = append(dst, `,"refusal":`...)
	dst = appendNullable(dst, refusal)
	for i, call := range calls {
		dst = append(dst, []string{`,"tool_calls":[`, `,`}[min(i, 1)]...)
		dst = appendCall(dst, "", call, string(call.Input))
	}
	if len(calls) > 0 {
		dst = append(dst, ']')
	}
	dst = append(dst, `},"logprobs":null,"finish_reason":"`...)
	dst = append(dst, finishReason(fin.StopReason)...)
	dst = append(dst, `"}]`...)
	if !fin.Usage.Estimated {
		dst = append(dst, `,"usage":`...)
		dst = appendUsage(dst, fin.Usage)
	}
	return append(dst, '}')
}

// appendCall appends a tool call, with fields of a chunk's before it.
func appendCall(dst []byte, fields string, call turn.ToolCall, arguments string) []byte {
	dst = append(dst, '{')
	dst = append(dst, fields...)
	dst = append(dst, `"id":`...)
	dst = appendString(dst, call.ID)
	dst = append(dst, `,"type":"function","function":{"name":`...)
	dst = appendString(dst, call.Name)
	dst = append(dst, `,"arguments":`...)
	dst = appendString(dst, arguments)
	return append(dst, "}}"...)
}

// finishReason maps the upstream's reason; one that is not known is a normal end.
func finishReason(r turn.StopReason) string {
	switch r {
	case turn.MaxTokens, turn.ContextWindow:
		return "length"
	case turn.Refusal:
		return "content_filter"
	case turn.ToolUse:
		return "tool_calls"
	}
	return "stop"
}

// appendUsage appends the usage object. One that nobody has counted is not to be given
// out: the API lets it be absent. The prompt's tokens are all of them, cached
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
