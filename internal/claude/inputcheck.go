package claude

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"ocp/internal/prompt"
	"ocp/internal/transcript"
)

// inputCheck compares what the CLI records of its request (2.1.332: one
// api-request-blob record a message, in order) with what the client sent. 2.1.207 has
// no such records, and nothing is compared.
type inputCheck struct {
	messages []prompt.Message
	next     int // the message that the next record is compared with
	diffs    int
}

func newInputCheck(c prompt.Conversation) *inputCheck {
	return &inputCheck{messages: c.Messages}
}

// reminder opens the blocks that the CLI itself puts into a user message.
const reminder = "<system-reminder>"

func (c *inputCheck) record(r transcript.Record) {
	if r.Type != "api-request-blob" || r.Message == nil || c.next >= len(c.messages) {
		return
	}
	want := c.messages[c.next]
	c.next++
	if r.Message.Role != string(want.Role) || !sameBlocks(r.Message.Content, want.Content) {
		c.diffs++
	}
}

// sameBlocks reports whether got is want, with nothing but the CLI's reminders before it.
func sameBlocks(got transcript.Content, want []prompt.Block) bool {
	added := len(got) - len(want)
	if added < 0 {
		return false
	}
	for _, b := range got[:added] {
		if b.Type != "text" || !strings.HasPrefix(b.Text, reminder) {
			return false
		}
	}
	return slices.EqualFunc(got[added:], want, func(g transcript.Block, w prompt.Block) bool {
		return g.Type == w.Type && g.Text == w.Text && (w.Raw == nil || sameJSON(g.Raw, w.Raw))
	})
}

// sameJSON compares two blocks, whatever the order of their fields.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// result returns how many messages were compared and how many differed.
func (c *inputCheck) result() (checks, diffs int) {
	if c == nil {
		return 0, 0
	}
	return c.next, c.diffs
}
