package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"ocp/internal/messagesapi"
)

// exchange is a request written by hand and the response as it came, byte for byte:
// what an SDK would hide can be looked at.
type exchange struct {
	status int
	header http.Header
	raw    bytes.Buffer // the body so far
	text   string       // the answer so far
	finish string       // finish_reason, once there
	code   string       // of the error, in an error body or an error frame
	done   bool         // [DONE] came
	chunks []chunk      // of a streamed answer

	body *bufio.Reader
	end  func() error
}

// chunk is one chunk of a stream, or a whole completion. Choices and Usage tell absent,
// null and empty apart.
type chunk struct {
	Model   string          `json:"model"`
	Choices json.RawMessage `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   *struct {
		Message, Type string
		Code          *string
	} `json:"error"`
}

type choice struct {
	Message, Delta struct{ Content string }
	FinishReason   *string `json:"finish_reason"`
}

// open sends a request and reads the response's header. The caller must close it.
func (p *proxy) open(ctx context.Context, streamed bool, prompt string, more map[string]any) (*exchange, error) {
	fields := map[string]any{
		"model": modelName, "stream": streamed,
		"messages": []map[string]string{{"role": "user", "content": prompt}},
	}
	for name, value := range more {
		fields[name] = value
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/v1/chat/completions", bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	x := &exchange{status: resp.StatusCode, header: resp.Header, end: resp.Body.Close}
	x.body = bufio.NewReader(io.TeeReader(resp.Body, &x.raw))
	return x, nil
}

// ask makes a whole exchange. An answer that is an error is none of ask's: see code.
func (p *proxy) ask(ctx context.Context, streamed bool, prompt string) (*exchange, error) {
	x, err := p.open(ctx, streamed, prompt, nil)
	if err != nil {
		return nil, err
	}
	defer x.close()
	return x, x.readAll()
}

func (x *exchange) close() { _ = x.end() }

func (x *exchange) streamed() bool {
	return strings.HasPrefix(x.header.Get("Content-Type"), "text/event-stream")
}

// readAll reads to the end of the response.
func (x *exchange) readAll() error {
	if !x.streamed() {
		data, err := io.ReadAll(x.body)
		if err != nil {
			return err
		}
		return x.take(data)
	}
	for {
		if _, err := x.line(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// line reads the next line of a stream, which is not split anywhere else.
func (x *exchange) line() (string, error) {
	line, err := x.body.ReadString('\n')
	if err != nil {
		if line != "" {
			err = fmt.Errorf("half a line, then: %w", err)
		}
		return "", err
	}
	line = strings.TrimSuffix(line, "\n")
	data, ok := strings.CutPrefix(line, "data: ")
	switch {
	case !ok:
	case x.done || x.code != "":
		return "", fmt.Errorf("%q after the end", clip(line))
	case data == "[DONE]":
		x.done = true
	default:
		return line, x.take([]byte(data))
	}
	return line, nil
}

// take reads a chunk, a completion or an error.
func (x *exchange) take(data []byte) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("not JSON: %q: %w", clip(string(data)), err)
	}
	x.chunks = append(x.chunks, c)
	if c.Error != nil {
		x.code = c.Error.Type
		if c.Error.Code != nil {
			x.code = *c.Error.Code
		}
		return nil
	}
	var choices []choice
	if err := json.Unmarshal(c.Choices, &choices); err != nil {
		return fmt.Errorf("choices: %w", err)
	}
	for _, choice := range choices {
		x.text += choice.Delta.Content + choice.Message.Content
		if choice.FinishReason != nil {
			x.finish += *choice.FinishReason
		}
	}
	return nil
}

// exact says what is wrong with an exchange that should have ended well.
func (x *exchange) exact(want string) error {
	switch {
	case x.status != http.StatusOK || x.code != "":
		return fmt.Errorf("status %d, error %q after %d bytes: %s", x.status, x.code, len(x.text), x.lastBytes())
	case x.text != want:
		return errors.New(difference(x.text, want))
	case x.finish != "stop":
		return fmt.Errorf("finish_reason %q", x.finish)
	case x.streamed() && !x.done:
		return errors.New("no [DONE]")
	}
	return nil
}

func (x *exchange) lastBytes() string {
	raw := x.raw.String()
	return raw[max(0, len(raw)-300):]
}

// inParallel calls f(0) to f(n-1), so many at a time, and waits.
func inParallel(n, atOnce int, f func(i int)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	all.Wait()
}

// scenarioByPrompt answers with the scenario that the prompt names.
func scenarioByPrompt() messagesapi.Script {
	return func(r *messagesapi.Recorded) messagesapi.Answer {
		request, _ := r.Decode()
		for _, m := range request.Messages {
			for _, b := range m.Content {
				if name, ok := strings.CutPrefix(b.Text, "scenario "); ok {
					if s, ok := messagesapi.FindScenario(strings.TrimSpace(name)); ok {
						return s.Script(r)
					}
				}
			}
		}
		return messagesapi.TextAnswer("no scenario was named")
	}
}
