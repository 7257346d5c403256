package turn

import (
	"strings"

	"ocp/internal/transcript"
)

// answer is the turn's text T as the transcript tells it, with all that the records
// say beside the text. It grows record by record.
type answer struct {
	text     strings.Builder
	lastText string // the last text block
	calls    []ToolCall

	id    string     // of the last assistant message
	joint string     // what stands between that message's first text and the text before
	said  StopReason // stop of the last message that had text
	stop  StopReason
	seq   string
	model string
	usage map[string]transcript.Usage // by message id

	banner  *transcript.Record // the CLI's own error entry, if any
	ended   bool               // the CLI's end-of-turn record was seen
	session SessionInfo
}

// add takes the next record of the turn.
func (a *answer) add(r transcript.Record) {
	if r.IsSidechain {
		return
	}
	if r.Entrypoint != "" {
		a.session = SessionInfo{Entrypoint: r.Entrypoint, CLIVersion: r.Version}
	}
	switch r.Type {
	case "system":
		if r.Subtype == "turn_duration" || r.Subtype == "stop_hook_summary" {
			a.ended = true
		}
	case "assistant":
		if r.Message == nil || r.IsMeta {
			return
		}
		if r.IsAPIErrorMessage || r.Error != "" {
			a.banner = &r
			return
		}
		if r.Message.Model != transcript.Synthetic {
			a.addMessage(r.Message)
		}
	}
}

// addMessage takes an assistant record of the model. The CLI writes one record per
// content block, all of a message with the same id.
func (a *answer) addMessage(m *transcript.Message) {
	if m.ID != a.id {
		a.id, a.joint = m.ID, a.separator()
	}
	for _, b := range m.Content {
		if b.Type == "tool_use" {
			a.calls = append(a.calls, newCall(b, a.text.Len()))
		}
		if b.Type != "text" || b.Text == "" {
			continue
		}
		a.text.WriteString(a.joint)
		a.text.WriteString(b.Text)
		a.joint, a.lastText = "", b.Text
		a.said = StopReason(m.StopReason)
	}
	a.model, a.stop, a.seq = m.Model, StopReason(m.StopReason), m.StopSequence
	if a.usage == nil {
		a.usage = map[string]transcript.Usage{}
	}
	a.usage[m.ID] = m.Usage
}

// continues reports whether a record goes on with the last assistant message, or says
// nothing of what the assistant has done since.
func (a *answer) continues(r transcript.Record) bool {
	switch r.Type {
	case "assistant":
		return r.IsSidechain || r.Message != nil && r.Message.ID == a.id
	case "user":
		return r.IsSidechain
	}
	return true
}

// separator is what stands between the text so far and the text of a next message: a
// continuation at the token limit goes on where the text broke off, anything else is
// a new paragraph.
func (a *answer) separator() string {
	if a.text.Len() == 0 || a.said == MaxTokens || a.said == ContextWindow {
		return ""
	}
	return "\n\n"
}

// ends reports whether the last message with text is one that ends a turn by itself.
// After one without visible text the CLI asks once more.
func (a *answer) ends() bool {
	switch a.said {
	case EndTurn, StopSequence, "pause_turn":
		return trimJS(a.text.String()) != ""
	}
	return false
}

// total sums the usage of all messages of the turn.
func (a *answer) total() Usage {
	var sum Usage
	for _, u := range a.usage {
		sum.Input += u.InputTokens
		sum.CacheRead += u.CacheReadInputTokens
		sum.CacheCreation += u.CacheCreationInputTokens
		sum.Output += u.OutputTokens
	}
	return sum
}

// agreesWithStop reports whether the text ends in what the Stop hook says was the
// last text block. The CLI trims its copy as JavaScript does.
func (a *answer) agreesWithStop(last *string) bool {
	return last != nil && *last != "" && trimJS(a.lastText) == *last
}

// trimJS trims as JavaScript's String.prototype.trim: white space and line ends of
// ECMAScript, which include the byte order mark and not U+0085.
func trimJS(s string) string {
	return strings.TrimFunc(s, func(r rune) bool {
		switch {
		case r >= '\t' && r <= '\r', r == ' ', r == 0xA0, r == 0x1680, r >= 0x2000 && r <= 0x200A,
			r == 0x2028, r == 0x2029, r == 0x202F, r == 0x205F, r == 0x3000, r == 0xFEFF:
			return true
		}
		return false
	})
}
