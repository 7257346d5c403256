package claudetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ocp/internal/hook"
	"ocp/internal/transcript"
)

// Ask is a turn as the CLI runs it: it asks the model at ANTHROPIC_BASE_URL, shows the
// answer as it comes, and records it behind Stop. Text may name one Fault.
const Ask Action = "ask"

// Asking is a session that asks the model: for its conversation, and for each prompt that
// is typed.
func Asking(fault Fault) Script {
	ask := Step{Do: Ask, Text: string(fault)}
	steps := Boot()
	if fault == Eager {
		steps = append([]Step{{Do: Ask, Text: string(fault)}}, steps...)
		ask.Text = ""
	}
	steps = append(steps, ask)
	for range 20 {
		steps = append(steps, Step{Do: Prompt}, ask)
	}
	return Script{Steps: steps}
}

// asking is what a turn of Ask needs.
type asking struct {
	*standin
	fault   Fault
	request wireRequest
	message string // its name
	blocks  []block
	shown   strings.Builder // all of the text so far
	fires   fires
}

type wireRequest struct {
	Model    string        `json:"model"`
	Stream   bool          `json:"stream"`
	System   []block       `json:"system"`
	Messages []wireMessage `json:"messages"`
	Tools    []any         `json:"tools,omitempty"`
}

type wireMessage struct {
	Role    string            `json:"role"`
	Content []json.RawMessage `json:"content"`
}

type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

const goOnText = "Continue from where you left off."

// ask runs the turn.
func (s *standin) ask(fault Fault) error {
	a := &asking{standin: s, fault: fault, message: newID(), request: wireRequest{Model: "claude-standin", Stream: true}}
	if fault == Eager {
		_, _ = a.post()
		return nil
	}
	a.converse()
	a.fault.spoil(&a.request)
	if fault == Title {
		if response, err := a.post(); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}
	response, err := a.post()
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	defer response.Body.Close()
	a.fires = fires{asking: a}
	if response.StatusCode != http.StatusOK {
		return a.failed(response.StatusCode)
	}
	if !a.read(response.Body) {
		return a.failed(0)
	}
	return a.end()
}

// converse puts the conversation into the request.
func (a *asking) converse() {
	a.request.System = []block{{"text", "cc_entrypoint=cli;"}, {"text", a.system}}
	if a.said == nil {
		for i, entry := range a.transcript.entries {
			if n := len(a.said); n == 0 || a.said[n-1].Role != entry.Message.Role {
				a.said = append(a.said, wireMessage{Role: entry.Message.Role})
			}
			m := &a.said[len(a.said)-1]
			for _, b := range entry.Message.Content {
				if b.Type != "text" || strings.TrimSpace(b.Text) != "" {
					m.Content = append(m.Content, b.Raw)
				}
				if b.Type == "tool_result" && i == len(a.transcript.entries)-1 {
					m.Content = append(m.Content, text(goOnText))
				}
			}
		}
	}
	if a.promptID != "" {
		a.said = append(a.said, wireMessage{"user", []json.RawMessage{text(a.text)}})
	}
	a.request.Messages = append(a.request.Messages, a.said...)
}

func text(s string) json.RawMessage {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(block{"text", s}) // strings always encode
	return bytes.TrimSpace(b.Bytes())
}

func (a *asking) post() (*http.Response, error) {
	body, err := json.Marshal(a.request)
	if err != nil {
		return nil, err
	}
	return http.Post(os.Getenv("ANTHROPIC_BASE_URL")+"/v1/messages", "application/json", bytes.NewReader(body))
}

// read takes the stream in, and reports whether it has come to its end.
func (a *asking) read(body io.Reader) bool {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type  string
			Block struct{ Type string }           `json:"content_block"`
			Delta struct{ Text, Thinking string } `json:"delta"`
		}
		if json.Unmarshal([]byte(data), &e) != nil {
			return false
		}
		switch e.Type {
		case "content_block_start":
			a.blocks = append(a.blocks, block{Type: e.Block.Type})
		case "content_block_delta":
			a.blocks[len(a.blocks)-1].Text += e.Delta.Text + e.Delta.Thinking
			a.shown.WriteString(e.Delta.Text)
			if a.fault == ThinkingShown && e.Delta.Thinking != "" {
				a.fires.add(e.Delta.Thinking + "\n")
			}
			a.fires.add(e.Delta.Text)
			a.leak()
		case "message_stop":
			return true
		case "error":
			return false
		}
	}
	return false
}

// leak gives what was said so far away, if that is the fault.
func (a *asking) leak() {
	name, ok := strings.CutPrefix(string(a.fault), string(Leak))
	switch {
	case a.fault == Events:
		show(`{"type":"stream_event","event":{"delta":{"type":"text_delta"}}}`)
	case !ok:
	case name == "transcript":
		a.transcript.batch.Write(encode(map[string]any{"type": "progress", "text": a.shown.String()}))
		_ = a.transcript.flush()
	case name == "debug":
		_ = os.WriteFile(a.options["--debug-file"], []byte(a.shown.String()), 0o600)
	default:
		path := filepath.Join(configDir(), name)
		_ = os.MkdirAll(filepath.Dir(path), 0o700)
		_ = os.WriteFile(path, []byte(a.shown.String()), 0o600)
	}
}

// failed ends the turn for an error of the upstream's.
func (a *asking) failed(status int) error {
	word, ok := map[int]string{400: "invalid_request", 401: "authentication_failed", 429: "rate_limit", 529: "server_error"}[status]
	if !ok {
		word = "server_error"
	}
	const banner = "API Error"
	step := Step{Do: BannerRecord, Reason: word, Status: status}
	if a.fault == Fault(fmt.Sprint(Unmarked, status)) {
		step = Record(a.message, banner)
	}
	a.call(Step{Do: StopFailure, Reason: word}, banner)
	time.Sleep(Lag)
	if err := a.transcript.add(step, banner); err != nil {
		return err
	}
	return a.transcript.flush()
}

// end shows the rest, and records the answer behind Stop, whose hook it does not wait for.
func (a *asking) end() error {
	a.fires.end()
	answer := a.shown.String()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		a.call(Step{Do: Stop}, answer)
		if a.fault == StopTwice {
			a.call(Step{Do: Stop}, answer)
		}
	}()
	if a.fault == StopAwaited {
		<-stopped
	}
	time.Sleep(Lag)
	var content []json.RawMessage
	for _, b := range a.blocks {
		step := Record(a.message, "")
		recorded := b.Text
		switch {
		case b.Type == "thinking":
			step.Do = ThinkingRecord
		case a.fault == OtherRecord:
			recorded = strings.Replace(recorded, "line", "lime", 1)
		}
		if b.Type == "text" {
			content = append(content, text(b.Text))
		}
		if err := a.transcript.add(step, recorded); err != nil {
			return err
		}
	}
	a.said = append(a.said, wireMessage{"assistant", content})
	if err := a.transcript.flush(); err != nil {
		return err
	}
	<-stopped
	for _, step := range End() {
		if err := a.transcript.add(step, ""); err != nil {
			return err
		}
	}
	if a.plain {
		show(answer)
	}
	return a.transcript.flush()
}

// fires are the MessageDisplay calls of a message: whole lines, at most three under way;
// while there are, the text is gathered.
type fires struct {
	*asking
	index   int
	pending string
}

func (f *fires) add(text string) {
	f.pending += text
	cut := strings.LastIndex(f.pending, "\n") + 1
	if cut == 0 || f.fault == AtTheEnd || f.fault == Silent {
		return
	}
	select {
	case f.slot() <- struct{}{}:
		f.fire(f.pending[:cut], false)
		f.pending = f.pending[cut:]
	default:
		if f.fault == Dropping {
			f.pending = f.pending[cut:]
		}
	}
}

// end makes the last call when there is room, and waits for none.
func (f *fires) end() {
	if f.fault == Silent {
		return
	}
	rest := f.pending
	if f.fault == TailLost {
		rest = ""
	}
	f.calls.Add(1)
	ready := make(chan struct{})
	go func() {
		defer f.calls.Done()
		select {
		case f.slot() <- struct{}{}:
			f.fire(rest, f.fault != NeverFinal)
			close(ready)
		case <-time.After(50 * time.Millisecond):
			close(ready)
			f.slot() <- struct{}{}
			f.fire(rest, f.fault != NeverFinal)
		}
	}()
	<-ready
}

func (f *fires) slot() chan struct{} {
	slot := f.slots[f.message]
	if slot == nil {
		slot = make(chan struct{}, maxInFlight)
		f.slots[f.message] = slot
	}
	return slot
}

// fire makes a call, for which there is room. The calls of a message are begun one after
// the other.
func (f *fires) fire(text string, final bool) {
	id, index := f.message, f.index
	f.index++
	switch {
	case f.fault == Drawn:
		text = strings.NewReplacer("# ", "", "**", "", "```go", "", "* ", "- ").Replace(text)
	case f.fault == Altered:
		text = strings.ReplaceAll(text, "One more", "ONE MORE")
	case f.fault == Gap && index > 1:
		index++
	case f.fault == TwoMessages && index > 1:
		id, index = f.message+"b", index-2
	}
	_, fields := f.payload(Step{Do: Display, Message: id, Index: index, Final: final}, text)
	slot := f.slot()
	run := func() {
		f.hooks.run(hook.MessageDisplay, fields)
		if f.fault == Again && index == 0 {
			f.hooks.run(hook.MessageDisplay, fields)
		}
		<-slot
	}
	f.calls.Go(run)
}

// plainEntries are the conversation of a session that was started with a prompt.
func plainEntries(prompt string) []transcript.Record {
	return []transcript.Record{{Type: "user", Message: &transcript.Message{
		Role: "user", Content: transcript.Content{{Type: "text", Text: prompt, Raw: text(prompt)}},
	}}}
}
