package claudetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ocp/internal/transcript"
)

// transcriptFile is the session's transcript.
type transcriptFile struct {
	path    string
	session string
	cwd     string

	entrypoint string // cli, as a rule

	entries []transcript.Record // the conversation as it was found
	batch   bytes.Buffer        // records that are not yet written
	parent  any                 // uuid of the last entry; nil if there is none
	ids     map[string]string   // by message: the API's id
}

func openTranscript(config, cwd, session string) transcriptFile {
	return transcriptFile{
		path:    filepath.Join(transcript.ProjectDir(config, cwd), session+".jsonl"),
		session: session, cwd: cwd, entrypoint: "cli", ids: map[string]string{},
	}
}

// configDir is where the CLI keeps its configuration and transcripts.
func configDir() string {
	if dir := os.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir
	}
	return filepath.Join(os.Getenv("HOME"), ".claude")
}

// resume reads the conversation.
func (t *transcriptFile) resume() error {
	data, err := os.ReadFile(t.path)
	if errors.Is(err, os.ErrNotExist) {
		return t.missing()
	}
	if err != nil {
		return err
	}
	for line := range bytes.Lines(data) {
		record, err := transcript.Parse(line)
		if err != nil {
			return err
		}
		var chain struct{ UUID, Timestamp string }
		if err := json.Unmarshal(line, &chain); err != nil || chain.UUID == "" || chain.Timestamp == "" {
			return t.missing()
		}
		t.parent = chain.UUID
		if record.Type != "attachment" {
			t.entries = append(t.entries, record)
		}
	}
	if len(t.entries) == 0 {
		return t.missing()
	}
	return nil
}

// missing says in the CLI's words that there is nothing to resume.
func (t *transcriptFile) missing() error {
	return fmt.Errorf("%s found with session ID: %s", "No conversation", t.session)
}

// interrupted reports whether the conversation ends in a turn to be run again.
func (t *transcriptFile) interrupted() bool {
	last := t.entries[len(t.entries)-1]
	return last.Type == "user" && !last.IsMeta
}

// prompt is the text of the last message.
func (t *transcriptFile) prompt() string {
	if len(t.entries) == 0 {
		return ""
	}
	return t.entries[len(t.entries)-1].Message.Text()
}

// stray makes the records that follow go where nobody looks.
func (t *transcriptFile) stray() {
	t.path = filepath.Join(filepath.Dir(t.path), newID()+".jsonl")
}

// isRecord reports whether the step is one or more records.
func (step Step) isRecord() bool {
	switch step.Do {
	case TextRecord, ToolRecord, ThinkingRecord, MetaRecord, BannerRecord, SideRecord,
		RequestRecords, SummaryRecord, DurationRecord, RawRecord:
		return true
	}
	return false
}

// add puts a step's records into the batch, or writes them in halves.
func (t *transcriptFile) add(step Step, text string) error {
	if step.Do == RequestRecords {
		t.requests()
		return nil
	}
	line := []byte(text)
	if step.Do != RawRecord {
		line = t.line(step, text)
	}
	if step.Halves == 0 {
		t.batch.Write(line)
		return nil
	}
	half := len(line) / 2
	t.batch.Write(line[:half])
	if err := t.flush(); err != nil {
		return err
	}
	time.Sleep(step.Halves)
	t.batch.Write(line[half:])
	return t.flush()
}

// flush appends the batch to the file in one write.
func (t *transcriptFile) flush() error {
	if t.batch.Len() == 0 {
		return nil
	}
	file, err := os.OpenFile(t.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = t.batch.WriteTo(file)
	return err
}

// requests records the request that the turn makes, as 2.1.332 does.
func (t *transcriptFile) requests() {
	for _, entry := range t.entries {
		content := make([]json.RawMessage, len(entry.Message.Content))
		for i, block := range entry.Message.Content {
			content[i] = block.Raw
		}
		t.batch.Write(encode(map[string]any{
			"type": "api-request-blob", "message": map[string]any{"role": entry.Message.Role, "content": content},
		}))
	}
}

// user records a prompt that was typed.
func (t *transcriptFile) user(prompt, promptID string) {
	id := newID()
	t.batch.Write(encode(map[string]any{
		"parentUuid": t.parent, "uuid": id, "sessionId": t.session, "cwd": t.cwd, "version": Version,
		"timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), "userType": "external",
		"entrypoint": t.entrypoint, "isSidechain": false, "type": "user", "promptId": promptID, "promptSource": "typed",
		"message": map[string]any{"role": "user", "content": prompt},
	}))
	t.parent = id
}

// line is one record with all that the CLI puts around a message.
func (t *transcriptFile) line(step Step, text string) []byte {
	id := newID()
	record := map[string]any{
		"parentUuid": t.parent, "uuid": id, "sessionId": t.session, "cwd": t.cwd, "version": Version,
		"timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), "userType": "external",
		"entrypoint": t.entrypoint, "isSidechain": step.Do == SideRecord, "type": "assistant",
	}
	t.parent = id
	switch step.Do {
	case TextRecord, SideRecord:
		record["message"] = t.message(step, map[string]any{"type": "text", "text": text})
	case ThinkingRecord:
		record["message"] = t.message(step, map[string]any{"type": "thinking", "thinking": text, "signature": "c2lnbmVk"})
	case ToolRecord:
		record["message"] = t.message(step, map[string]any{
			"type": "tool_use", "id": "toolu_" + t.id(step.Message), "name": "Bash", "input": map[string]any{"command": text},
		})
	case MetaRecord:
		record["type"], record["isMeta"] = "user", true
		record["message"] = map[string]any{"role": "user", "content": text}
	case BannerRecord:
		record["message"] = map[string]any{
			"id": newID(), "type": "message", "role": "assistant", "model": transcript.Synthetic, "stop_reason": "stop_sequence",
			"content": []any{map[string]any{"type": "text", "text": text}}, "usage": map[string]any{},
		}
		record["isApiErrorMessage"], record["error"] = true, step.Reason
		if step.Status != 0 {
			record["apiErrorStatus"] = step.Status
		}
	case SummaryRecord:
		record["type"], record["subtype"] = "system", "stop_hook_summary"
	case DurationRecord:
		record["type"], record["subtype"], record["durationMs"] = "system", "turn_duration", 1
	}
	return encode(record)
}

// message is an assistant's message with one of its blocks; every block has a record of
// its own.
func (t *transcriptFile) message(step Step, block any) map[string]any {
	return map[string]any{
		"id": "msg_" + t.id(step.Message), "type": "message", "role": "assistant", "model": "claude-standin",
		"content": []any{block}, "stop_reason": step.Reason, "stop_sequence": nil,
		"usage": map[string]any{
			"input_tokens": 3, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 50, "output_tokens": 7,
		},
	}
}

// id is the API's id of a message, the same in all its records.
func (t *transcriptFile) id(message string) string {
	if t.ids[message] == "" {
		t.ids[message] = strings.ReplaceAll(newID(), "-", "")
	}
	return t.ids[message]
}

func encode(record map[string]any) []byte {
	line, err := json.Marshal(record)
	if err != nil {
		panic(fmt.Sprintf("claudetest: %v", err)) // what scripts hold always marshals
	}
	return append(line, '\n')
}
