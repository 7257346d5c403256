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
//
// Later requests of a session name the one before and how many of its messages they
// keep, and have the hashes of the rest.
type inputCheck struct {
	known    []string                       // hashes of messages that an earlier turn has compared
	messages []prompt.Message               // what must follow them
	blobs    map[string]*transcript.Message // until compared
	last     request
	own      map[string]bool // hashes of the CLI's own messages
	compared []string        // the turn's first request without those; nil until then
	checks   int
	diffs    int
}

// request is an api-request record, with the hashes of all its messages.
type request struct {
	id     string
	hashes []string
}

func newInputCheck(c prompt.Conversation) *inputCheck {
	return &inputCheck{messages: c.Messages, blobs: map[string]*transcript.Message{}, own: map[string]bool{}}
}

// next is the check of the session's next turn: the answer as it was recorded, and what
// is said then, must follow what the turn has sent.
func (c *inputCheck) next(answer, question prompt.Message) *inputCheck {
	return &inputCheck{
		known: c.compared, last: c.last, own: c.own,
		messages: []prompt.Message{answer, question}, blobs: map[string]*transcript.Message{},
	}
}

// record takes note of a record. The turn's first request counts: those that follow
// it (a continuation) hold the answer too.
func (c *inputCheck) record(r transcript.Record) {
	switch {
	case r.Type == "api-request-blob" && r.Hash != "" && r.Message != nil && c.compared == nil:
		c.blobs[r.Hash] = r.Message
		c.own[r.Hash] = r.Message.Role == "system"
	case r.Type == "api-request" && len(r.Tail) > 0:
		c.request(r)
	}
}

func (c *inputCheck) request(r transcript.Record) {
	hashes := r.Tail
	if r.Keep > 0 {
		if r.Base != c.last.id || r.Keep > len(c.last.hashes) {
			return // of a request that is not known
		}
		hashes = slices.Concat(c.last.hashes[:r.Keep], r.Tail)
	}
	c.last = request{r.ID, hashes}
	if c.compared == nil {
		c.compare(hashes)
		c.blobs = nil
	}
}

// compare compares position by position. A message too many or too few is a difference.
// Messages of the role system are the CLI's own (2.1.332 sends its date to
// claude-sonnet-5-5 so); the client's system text never travels as a message.
func (c *inputCheck) compare(hashes []string) {
	hashes = slices.DeleteFunc(slices.Clone(hashes), func(hash string) bool { return c.own[hash] })
	c.compared = hashes
	for i := range max(len(hashes), len(c.known)+len(c.messages)) {
		c.checks++
		if !c.expected(hashes, i) {
			c.diffs++
		}
	}
}

// expected reports whether the message at i is the one that should be there.
func (c *inputCheck) expected(hashes []string, i int) bool {
	behind := i - len(c.known)
	switch {
	case i >= len(hashes) || behind >= len(c.messages):
		return false
	case behind < 0:
		return hashes[i] == c.known[i]
	}
	return c.same(hashes[i], c.messages[behind])
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
