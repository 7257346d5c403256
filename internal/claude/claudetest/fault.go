package claudetest

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Fault is one thing in which Ask is not like the CLI.
type Fault string

// The faults of what is shown and recorded.
const (
	Silent        Fault = "no delta is shown"
	Drawn         Fault = "deltas are without Markdown"
	Altered       Fault = "a delta is not what was said"
	TailLost      Fault = "the last delta is empty"
	Gap           Fault = "an index is left out"
	Again         Fault = "a call is made again"
	TwoMessages   Fault = "a message has two ids"
	NeverFinal    Fault = "no delta is final"
	AtTheEnd      Fault = "all is shown at the end"
	Dropping      Fault = "text is dropped while calls are under way"
	ThinkingShown Fault = "thinking is shown"
	OtherRecord   Fault = "the record is another text"
	StopTwice     Fault = "Stop is called twice"
	StopAwaited   Fault = "the record waits for the answer to Stop"
	Unmarked      Fault = "an error's record is not marked: " // and the status
	Unblocked     Fault = "a block of a prompt is ignored"
	NotCLI        Fault = "records name another entrypoint"
	Events        Fault = "events are on the screen"
	Leak          Fault = "text leaks: " // and where: transcript, debug, or a file of the configuration
)

// The faults of what is asked.
const (
	Title        Fault = "a title is asked for"
	Tools        Fault = "tools are offered"
	Large        Fault = "the request is large"
	Eager        Fault = "the model is asked at once"
	OldSystem    Fault = "the system text is left out"
	NoOdd        Fault = "odd characters are dropped from a single message"
	NoSlash      Fault = "a command is changed"
	NoExit       Fault = "exit is changed"
	NoImage      Fault = "images are left out"
	NoResult     Fault = "tool results are left out"
	Merged       Fault = "a long history is cut"
	Short        Fault = "a long text is cut"
	RunAnyway    Fault = "a turn is run on any conversation"
	MentionSent  Fault = "a mention is changed"
	ShellChanged Fault = "a shell command is changed"
	TypedChanged Fault = "what is typed is changed behind the hook"
)

// spoil does to a request what the fault says.
func (f Fault) spoil(r *wireRequest) {
	last := &r.Messages[len(r.Messages)-1]
	single := len(r.Messages) == 1 && len(last.Content) == 1
	change := func(when bool, old, new string) {
		if when {
			last.Content[0] = bytes.ReplaceAll(last.Content[0], []byte(old), []byte(new))
		}
	}
	first := string(last.Content[0])
	switch f {
	case Tools:
		r.Tools = []any{map[string]any{"name": "Bash"}}
	case Large:
		r.System[0].Text += strings.Repeat(" ", 8<<10)
	case OldSystem:
		r.System = r.System[:1]
	case NoOdd:
		change(single, `\r`, "")
	case NoSlash:
		change(single, `"/`, `"`)
	case NoExit:
		change(single, `"exit"`, `"Exit"`)
	case NoImage:
		last.Content = without(last.Content, `"image"`)
	case NoResult:
		last.Content = without(last.Content, `"tool_result"`)
	case Merged:
		if n := len(r.Messages); n > 10 {
			r.Messages = r.Messages[n-5:]
		}
	case Short:
		if len(first) > 100<<10 {
			last.Content[0] = text("cut")
		}
	case MentionSent:
		change(true, "@/", "/")
	case ShellChanged:
		change(true, "!touch", "touch")
	case TypedChanged:
		change(len(r.Messages) > 1, "e", "é")
	}
}

func without(blocks []json.RawMessage, kind string) []json.RawMessage {
	var kept []json.RawMessage
	for _, b := range blocks {
		if !bytes.Contains(b, []byte(`"type":`+kind)) {
			kept = append(kept, b)
		}
	}
	return kept
}
