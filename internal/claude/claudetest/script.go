package claudetest

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Script is what a stand-in does, one step after the other. Behind the last step it
// idles as the CLI does at its prompt: it ends by a signal, and runs its SessionEnd
// hook before it does.
type Script struct {
	Steps []Step

	// Input, if set, names a file that gets every byte the stand-in receives on its
	// terminal. The file is made with the first of them.
	Input string
}

// scriptPrefix marks a model name that is a script, filePrefix one that names its file.
const (
	scriptPrefix = "standin:"
	filePrefix   = "standin-file:"
)

// Model is the script as the model name of a request, which a launcher passes on.
func (s Script) Model() string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("claudetest: %v", err)) // structs of strings and numbers always marshal
	}
	return scriptPrefix + string(data)
}

// ModelIn writes the script to a file and returns a model name that names it, for where
// names must be short.
func (s Script) ModelIn(file string) (string, error) {
	data := strings.TrimPrefix(s.Model(), scriptPrefix)
	return filePrefix + file, os.WriteFile(file, []byte(data), 0o600)
}

// parseScript returns a plain answer for any other model name.
func parseScript(model string) (Script, error) {
	data, ok := strings.CutPrefix(model, scriptPrefix)
	if file, named := strings.CutPrefix(model, filePrefix); named {
		read, err := os.ReadFile(file)
		if err != nil {
			return Script{}, fmt.Errorf("script: %w", err)
		}
		data, ok = string(read), true
	}
	if !ok {
		return Script{Steps: Answer("You said:\n", "{prompt}")}, nil
	}
	var s Script
	if err := json.Unmarshal([]byte(data), &s); err != nil {
		return Script{}, fmt.Errorf("script: %w", err)
	}
	return s, nil
}

// Step is one thing that the stand-in does. In Text, {prompt} stands for the text of
// the conversation's last message, or of the last prompt that was typed, and {system} for
// the system text, as the stand-in found them.
type Step struct {
	Do    Action
	After time.Duration `json:",omitempty"` // waits before it does it

	Message string        `json:",omitempty"` // which message of the turn; any name
	Index   int           `json:",omitempty"` // of a delta
	Final   bool          `json:",omitempty"` // the message's last delta
	Text    string        `json:",omitempty"` // delta, text block, last text of Stop, screen, raw bytes
	Reason  string        `json:",omitempty"` // stop reason, or the word of an error
	Status  int           `json:",omitempty"` // the upstream's, of an error
	N       int           `json:",omitempty"` // exit code, number of bytes
	Session string        `json:",omitempty"` // another session id than its own for a hook call
	Halves  time.Duration `json:",omitempty"` // a record is written in two halves, this far apart

	// Async does not wait for a hook's answer. Even so at most three calls of one
	// message are under way, as with the CLI.
	Async bool `json:",omitempty"`
}

// Action is what a step does.
type Action string

// The boot, in the CLI's order.
const (
	ReadSystem   Action = "read system" // read the system text to its end
	Onboard      Action = "onboard"     // show the dialog that .claude.json calls for, if any
	Resume       Action = "resume"      // find the conversation, or exit with code 1
	SessionStart Action = "session start"
)

// Hook calls of the turn.
const (
	Display     Action = "display" // MessageDisplay
	Stop        Action = "stop"    // without Text: no last message
	StopFailure Action = "stop failure"
	Settle      Action = "settle" // wait until every call was answered or given up
)

// Transcript records. Records that follow each other are written at once.
const (
	TextRecord     Action = "text record"
	ToolRecord     Action = "tool record" // a tool_use block
	ThinkingRecord Action = "thinking record"
	MetaRecord     Action = "meta record"     // a user entry of the CLI's own
	BannerRecord   Action = "banner record"   // the CLI's own error entry
	SideRecord     Action = "side record"     // a sub-agent's text
	RequestRecords Action = "request records" // the request as it was made
	SummaryRecord  Action = "summary record"  // stop_hook_summary
	DurationRecord Action = "duration record" // turn_duration
	RawRecord      Action = "raw record"      // Text as it stands
	Stray          Action = "stray"           // write what follows into another file
)

// What else a program under a terminal can do.
const (
	// Prompt waits at the input box until a prompt is submitted there: what follows is its
	// turn. N Enters are lost before one counts, as with 2.1.207 under load.
	Prompt Action = "prompt"
	Wait   Action = "wait"
	Print  Action = "print"  // clear the screen and show Text
	Dialog Action = "dialog" // Print, wait for a key, and exit with code 1 at it
	Flood  Action = "flood"  // write N bytes to the terminal
	Deaf   Action = "deaf"   // ignore SIGTERM, SIGHUP and SIGINT
	Fork   Action = "fork"   // start a child that ignores them too and holds the terminal open
	Tell   Action = "tell"   // write a line into the FIFO that Text names
	Exit   Action = "exit"   // with code N
	Kill   Action = "kill"   // by SIGKILL, itself
)

// Lag is how long after Stop the CLI's records are on disk as a rule.
const Lag = 100 * time.Millisecond

// Boot is how every session begins.
func Boot() []Step {
	return []Step{{Do: ReadSystem}, {Do: Onboard}, {Do: Resume}, {Do: SessionStart}}
}

// Deltas displays a whole message, one call after the other.
func Deltas(message string, texts ...string) []Step {
	steps := make([]Step, len(texts))
	for i, text := range texts {
		steps[i] = Step{Do: Display, Message: message, Index: i, Text: text, Final: i == len(texts)-1}
	}
	return steps
}

// Record is a message of one text block that ended its turn.
func Record(message, text string) Step {
	return Step{Do: TextRecord, Message: message, Text: text, Reason: "end_turn"}
}

// Reply is a later turn of a session that behaves.
func Reply(message string, deltas ...string) []Step {
	text := strings.Join(deltas, "")
	return slices.Concat(
		[]Step{{Do: Prompt}},
		Deltas(message, deltas...),
		[]Step{{Do: Stop, Text: text}, {Do: Wait, After: Lag}, Record(message, text)},
		End(),
	)
}

// End is the records behind an answer.
func End() []Step { return []Step{{Do: SummaryRecord}, {Do: DurationRecord}} }

// Answer is a whole session that behaves, and answers in one message.
func Answer(deltas ...string) []Step {
	text := strings.Join(deltas, "")
	return slices.Concat(
		Boot(),
		[]Step{{Do: RequestRecords}},
		Deltas("m", deltas...),
		[]Step{{Do: Stop, Text: text}, {Do: Wait, After: Lag}, Record("m", text)},
		End(),
	)
}
