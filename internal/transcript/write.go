package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// ErrEntry is wrapped by Write and Create for an entry that the CLI would not take as
// it is meant.
var ErrEntry = errors.New("transcript: bad entry")

// Entry is one message of a conversation, or something that the CLI is to believe it has
// told the model already.
type Entry struct {
	Role string // user or assistant

	// Told is, in place of a message, an attachment of the CLI's as it records them. The
	// model is shown nothing of it.
	Told any

	// Content marshals to an array of content blocks. Never a plain string: the CLI
	// takes a user's string for typed input and acts on it, and 2.1.207 crashes on an
	// assistant's.
	//
	// Its strings must be valid UTF-8. encoding/json replaces what is not by U+FFFD,
	// and nothing here can notice that; raw JSON that is not UTF-8 is refused.
	Content any
}

// entryRecord is all that both versions need of an entry to resume it.
type entryRecord struct {
	Type       string       `json:"type"`
	Message    entryMessage `json:"message"`
	UUID       string       `json:"uuid"`
	ParentUUID *string      `json:"parentUuid"` // null on the first
	Timestamp  string       `json:"timestamp"`  // 2.1.207 finds no conversation without it
}

type entryMessage struct {
	// ID is one of its own for each answer, empty for a user: 2.1.207 makes one message
	// of answers of the same id, or of none, if only tool results stand between them.
	ID      string          `json:"id,omitempty"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// toldRecord is an attachment as 2.1.332 records it. What it was rendered to is a block of
// white space, which the CLI leaves out of its requests; an empty one it would render anew.
type toldRecord struct {
	Type         string     `json:"type"`
	Attachment   any        `json:"attachment"`
	Rendered     []rendered `json:"rendered"`
	RenderedRole string     `json:"renderedRole"`
	UUID         string     `json:"uuid"`
	ParentUUID   *string    `json:"parentUuid"`
	Timestamp    string     `json:"timestamp"`
}

type rendered struct {
	Content string `json:"content"`
}

// Create writes a conversation to a new file that only its owner can read, and returns
// its length: the CLI's own records are those behind it. If path exists it is left
// alone and the error is fs.ErrExist; after any other error no file is left.
func Create(path string, entries []Entry) (n int64, err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, fmt.Errorf("transcript: create: %w", err)
	}
	n, err = Write(file, entries)
	if closeErr := file.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("transcript: create: %w", closeErr)
	}
	if err != nil {
		os.Remove(path)
		return 0, err
	}
	return n, nil
}

// Write writes a conversation as the CLI resumes it: one line for each entry, each with
// its newline, chained by fresh ids. What JSON.parse makes of a line's texts is what the
// entry holds, byte for byte. n is the number of bytes written, also after an error.
func Write(w io.Writer, entries []Entry) (n int64, err error) {
	// Each entry is a millisecond later than the one before and none is in the future,
	// so that no order the CLI may take from the times differs from ours.
	at := time.Now().UTC().Add(-time.Duration(len(entries)) * time.Millisecond)
	var parent *string
	for i, entry := range entries {
		id, err := uuid.NewRandom()
		if err != nil {
			return n, fmt.Errorf("transcript: write: %w", err)
		}
		at = at.Add(time.Millisecond)
		line, err := entry.line(id.String(), parent, at)
		if err != nil {
			return n, fmt.Errorf("%w %d: %w", ErrEntry, i, err)
		}
		written, err := w.Write(line)
		n += int64(written)
		if err != nil {
			return n, fmt.Errorf("transcript: write: %w", err)
		}
		parent = new(id.String())
	}
	return n, nil
}

func (e Entry) line(id string, parent *string, at time.Time) ([]byte, error) {
	stamp := at.Format("2006-01-02T15:04:05.000Z")
	if e.Told != nil {
		return encode(toldRecord{
			Type: "attachment", Attachment: e.Told, Rendered: []rendered{{" "}}, RenderedRole: "system",
			UUID: id, ParentUUID: parent, Timestamp: stamp,
		})
	}
	if e.Role != "user" && e.Role != "assistant" {
		return nil, errors.New("role is neither user nor assistant")
	}
	content, err := encode(e.Content)
	if err != nil {
		return nil, err
	}
	if kind(content) != '[' {
		return nil, errors.New("content is not an array of blocks")
	}
	messageID := ""
	if e.Role == "assistant" {
		messageID = "msg_" + id
	}
	line, err := encode(entryRecord{
		Type:       e.Role,
		Message:    entryMessage{ID: messageID, Role: e.Role, Content: content},
		UUID:       id,
		ParentUUID: parent,
		Timestamp:  stamp,
	})
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(line) {
		return nil, errors.New("content is not valid UTF-8")
	}
	return escapeSeparators(line), nil
}

// encode marshals without HTML escaping and ends the line.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// escapeSeparators escapes U+2028 and U+2029, which encoding/json leaves as they are in
// raw JSON: some JavaScript line readers end a line at them.
func escapeSeparators(line []byte) []byte {
	line = bytes.ReplaceAll(line, []byte("\u2028"), []byte(`\u2028`))
	return bytes.ReplaceAll(line, []byte("\u2029"), []byte(`\u2029`))
}
