package claude

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"ocp/internal/prompt"
	"ocp/internal/transcript"
)

// inputCheck compares what the CLI records of its request with what the client sent.
//
// 2.1.332 writes an api-request record with a hash for each message of the request, and
// before it an api-request-blob record for each message that is not an entry of the
// transcript as it stands: in practice the last one, which the CLI's reminders are put
// into. A hash is the SHA-256 of the message as JSON with sorted keys and no spaces.
// 2.1.207 has no such records, and nothing is compared.
type inputCheck struct {
	messages []prompt.Message
	blobs    map[string]*transcript.Message // until compared
	compared bool
	checks   int
	diffs    int
}

func newInputCheck(c prompt.Conversation) *inputCheck {
	return &inputCheck{messages: c.Messages, blobs: map[string]*transcript.Message{}}
}

// record takes note of a record. The turn's first request counts: those that follow
// it (a continuation) hold the answer too.
func (c *inputCheck) record(r transcript.Record) {
	switch {
	case c.compared:
	case r.Type == "api-request-blob" && r.Hash != "" && r.Message != nil:
		c.blobs[r.Hash] = r.Message
	case r.Type == "api-request" && len(r.Tail) > 0 && r.Keep == 0:
		c.compared = true
		c.compare(r.Tail)
		c.blobs = nil
	}
}

// compare compares position by position. A message too many or too few is a difference.
// Messages of the role system are the CLI's own (2.1.332 sends its date to
// claude-sonnet-5-5 so); the client's system text never travels as a message.
func (c *inputCheck) compare(hashes []string) {
	hashes = slices.DeleteFunc(slices.Clone(hashes), func(hash string) bool {
		own, ok := c.blobs[hash]
		return ok && own.Role == "system"
	})
	for i := range max(len(hashes), len(c.messages)) {
		c.checks++
		if i >= len(hashes) || i >= len(c.messages) || !c.same(hashes[i], c.messages[i]) {
			c.diffs++
		}
	}
}

func (c *inputCheck) same(hash string, want prompt.Message) bool {
	if got, ok := c.blobs[hash]; ok {
		return got.Role == string(want.Role) && sameBlocks(got.Content, want.Content)
	}
	return hash == messageHash(want)
}

// reminder opens the blocks that the CLI itself puts into a user message.
const reminder = "<system-reminder>"

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

// messageHash is the CLI's hash of a message.
func messageHash(m prompt.Message) string {
	var b bytes.Buffer
	b.WriteString(`{"content":[`)
	for i, block := range m.Content {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(canonical(block))
	}
	b.WriteString(`],"role":"` + string(m.Role) + `"}`)
	sum := sha256.Sum256(b.Bytes())
	return hex.EncodeToString(sum[:])
}

// canonical is a block as JavaScript writes it with its keys sorted.
func canonical(block prompt.Block) []byte {
	value := any(map[string]any{"type": block.Type, "text": block.Text})
	if block.Raw != nil {
		decoder := json.NewDecoder(bytes.NewReader(block.Raw))
		decoder.UseNumber()
		if decoder.Decode(&value) != nil {
			return nil
		}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return nil
	}
	return unescapeSeparators(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// unescapeSeparators undoes what encoding/json escapes and JavaScript does not: U+2028
// and U+2029.
func unescapeSeparators(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\u202`)) {
		return data
	}
	var out []byte
	for i := 0; i < len(data); i++ {
		switch rest := data[i:]; {
		case bytes.HasPrefix(rest, []byte(`\u2028`)):
			out = append(out, "\u2028"...)
			i += 5
		case bytes.HasPrefix(rest, []byte(`\u2029`)):
			out = append(out, "\u2029"...)
			i += 5
		case rest[0] == '\\':
			out = append(out, rest[:2]...) // the escaped character is no escape itself
			i++
		default:
			out = append(out, rest[0])
		}
	}
	return out
}

// result returns how many messages were compared and how many differed.
func (c *inputCheck) result() (checks, diffs int) {
	if c == nil {
		return 0, 0
	}
	return c.checks, c.diffs
}
