package openai

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"ocp/internal/turn"
)

// Response is what every byte of one response's answer carries.
type Response struct {
	ID, ItemID string
	Created    time.Time
	Model      string // as for an Answer
	Format     *Format
	MaxTokens  int
	Effort     string

	echo echo
}

// NewResponse makes a Response to req with ids of its own.
func NewResponse(req ResponsesRequest, now time.Time) Response {
	return Response{
		ID:        "resp_" + rand.Text(),
		ItemID:    "msg_" + rand.Text(),
		Created:   now,
		Model:     req.Prompt.Model,
		Format:    req.Format,
		MaxTokens: req.Prompt.MaxTokens,
		Effort:    req.Prompt.Effort,
		echo:      req.echo,
	}
}

// status is how far a response, or the message in it, has come.
type status string

const (
	inProgress status = "in_progress"
	completed  status = "completed"
	incomplete status = "incomplete"
	failed     status = "failed"
)

// state is a response at some point of its life.
type state struct {
	status status
	model  string
	output string         // the items, as JSON
	fin    *turn.Finished // nil until the turn has finished
	err    *Error         // of a failed one
}

// Append appends the whole response of a request that is not streamed.
func (r Response) Append(dst []byte, text string, fin turn.Finished, _ ...turn.ToolCall) []byte {
	content, refusal := r.Format.check(text)
	part := appendPart(nil, content, refusal)
	return r.appendObject(dst, r.finished(part, fin))
}

// finished is the state at the end of a turn, whose answer is the part given.
func (r Response) finished(part []byte, fin turn.Finished) state {
	s := state{status: completed, model: fin.Model, fin: &fin}
	if s.model == "" {
		s.model = r.Model
	}
	if incompleteReason(fin.StopReason) != "" {
		s.status = incomplete
	}
	s.output = string(r.appendItem(nil, s.status, part))
	return s
}

// incompleteReason is the API's word for an answer that ends before its end; empty if
// it does not.
func incompleteReason(reason turn.StopReason) string {
	switch reason {
	case turn.MaxTokens, turn.ContextWindow:
		return "max_output_tokens"
	case turn.Refusal:
		return "content_filter"
	}
	return ""
}

// appendObject appends the response object.
func (r Response) appendObject(dst []byte, s state) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendString(dst, r.ID)
	dst = append(dst, `,"object":"response","created_at":`...)
	dst = strconv.AppendInt(dst, r.Created.Unix(), 10)
	dst = append(dst, `,"status":"`...)
	dst = append(dst, s.status...)
	dst = append(dst, `","background":false,"error":`...)
	dst = appendResponseError(dst, s.err)
	dst = append(dst, `,"incomplete_details":`...)
	dst = appendIncomplete(dst, s.fin)
	dst = append(dst, `,"instructions":`...)
	dst = appendEcho(dst, r.echo.instructions, "null")
	dst = append(dst, `,"max_output_tokens":`...)
	dst = appendCount(dst, r.MaxTokens)
	dst = append(dst, `,"metadata":`...)
	dst = appendEcho(dst, r.echo.metadata, "{}")
	dst = append(dst, `,"model":`...)
	dst = appendString(dst, s.model)
	dst = append(dst, `,"output":[`...)
	dst = append(dst, s.output...)
	dst = append(dst, `],"parallel_tool_calls":false,"previous_response_id":null,"reasoning":{"effort":`...)
	dst = appendNullable(dst, r.Effort)
	dst = append(dst, `,"summary":null},"store":false,"temperature":null,"text":{"format":`...)
	dst = appendEcho(dst, r.echo.format, `{"type":"text"}`)
	dst = append(dst, `},"tool_choice":"none","tools":[],"top_p":null,"truncation":"disabled","usage":`...)
	dst = appendResponseUsage(dst, s.fin)
	return append(dst, `,"user":null}`...)
}

// appendItem appends the message that holds the answer; part is nil before it is there.
func (r Response) appendItem(dst []byte, s status, part []byte) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendString(dst, r.ItemID)
	dst = append(dst, `,"type":"message","status":"`...)
	dst = append(dst, s...)
	dst = append(dst, `","role":"assistant","content":[`...)
	dst = append(dst, part...)
	return append(dst, `]}`...)
}

// appendPart appends the part that is the answer, or its refusal.
func appendPart(dst []byte, text, refusal string) []byte {
	if refusal != "" {
		dst = append(dst, `{"type":"refusal","refusal":`...)
		dst = appendString(dst, refusal)
		return append(dst, '}')
	}
	dst = append(dst, `{"type":"output_text","annotations":[],"logprobs":[],"text":`...)
	dst = appendString(dst, text)
	return append(dst, '}')
}

func appendIncomplete(dst []byte, fin *turn.Finished) []byte {
	if fin == nil || incompleteReason(fin.StopReason) == "" {
		return append(dst, "null"...)
	}
	dst = append(dst, `{"reason":"`...)
	dst = append(dst, incompleteReason(fin.StopReason)...)
	return append(dst, `"}`...)
}

// appendResponseUsage appends the usage, null until somebody has counted.
func appendResponseUsage(dst []byte, fin *turn.Finished) []byte {
	if fin == nil || fin.Usage.Estimated {
		return append(dst, "null"...)
	}
	u := fin.Usage
	in := u.Input + u.CacheRead + u.CacheCreation
	dst = appendField(dst, `{"input_tokens":`, in)
	dst = appendField(dst, `,"input_tokens_details":{"cached_tokens":`, u.CacheRead)
	dst = appendField(dst, `,"cache_write_tokens":`, u.CacheCreation)
	dst = appendField(dst, `},"output_tokens":`, u.Output)
	dst = append(dst, `,"output_tokens_details":{"reasoning_tokens":0}`...)
	dst = appendField(dst, `,"total_tokens":`, in+u.Output)
	return append(dst, '}')
}

func appendField(dst []byte, name string, n int) []byte {
	dst = append(dst, name...)
	return strconv.AppendInt(dst, int64(n), 10)
}

// appendCount appends a number, null for none.
func appendCount(dst []byte, n int) []byte {
	if n == 0 {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, int64(n), 10)
}

// appendEcho appends what the client sent, or what stands for its absence.
func appendEcho(dst []byte, raw json.RawMessage, absent string) []byte {
	if raw == nil {
		return append(dst, absent...)
	}
	return append(dst, raw...)
}

// oneLine is valid JSON without anything that could end a line of a stream.
func oneLine(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if raw == nil || json.Compact(&b, raw) != nil {
		return nil
	}
	return json.RawMessage(lineEnds.Replace(b.String()))
}

var lineEnds = strings.NewReplacer("\u0085", `\u0085`, "\u2028", `\u2028`, "\u2029", `\u2029`)

func appendResponseError(dst []byte, e *Error) []byte {
	if e == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, `{"code":`...)
	dst = appendString(dst, cmp.Or(e.Code, e.Type))
	dst = append(dst, `,"message":`...)
	dst = appendString(dst, e.Message)
	return append(dst, '}')
}
