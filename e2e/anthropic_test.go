package e2e

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	claude "github.com/anthropics/anthropic-sdk-go/v2"
	claudeoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/google/go-cmp/cmp"

	"ocp/internal/messagesapi"
)

// claude is Anthropic's own SDK, pointed at the proxy. It does not retry by itself unless
// an option says so.
func (p *proxy) claude(options ...claudeoption.RequestOption) claude.Client {
	return claude.NewClient(append([]claudeoption.RequestOption{
		claudeoption.WithBaseURL(p.url), claudeoption.WithAPIKey("unused"), claudeoption.WithMaxRetries(0),
	}, options...)...)
}

// asking is a request of one user message.
func asking(blocks ...claude.ContentBlockParamUnion) claude.MessageNewParams {
	return claude.MessageNewParams{Model: modelName, MaxTokens: 1000, Messages: []claude.MessageParam{claude.NewUserMessage(blocks...)}}
}

// accumulate reads a stream to its end.
func accumulate(ctx context.Context, client claude.Client, params claude.MessageNewParams) (message claude.Message, pieces int, err error) {
	stream := client.Messages.NewStreaming(ctx, params)
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			return message, pieces, err
		}
		if stream.Current().Type == "content_block_delta" {
			pieces++
		}
	}
	return message, pieces, stream.Err()
}

// textOf joins the message's texts.
func textOf(message claude.Message) string {
	var b strings.Builder
	for _, block := range message.Content {
		b.WriteString(block.Text)
	}
	return b.String()
}

// TestAnthropicSDK uses the Messages API as programs written in Go do.
func TestAnthropicSDK(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{ahead: true, args: []string{"--concurrency", "1"}})
		for name, test := range map[string]func(*testing.T, *proxy){
			"stream": testClaudeStream, "errors": testClaudeErrors, "retry": testClaudeRetry, "broken": testClaudeBroken,
			"count": testClaudeCount, "stop sequence": testClaudeStop, "limit": testClaudeLimit, "conversation": testClaudeConversation,
		} {
			t.Run(name, func(t *testing.T) {
				p.model.Reset()
				test(t, p)
			})
		}
	})
}

func testClaudeStream(t *testing.T, p *proxy) {
	text := stepText("it")
	p.says(messagesapi.Answer{
		Parts: []messagesapi.Part{messagesapi.Text(text)}, Pace: messagesapi.Pace{Between: 150 * time.Millisecond},
		Usage: messagesapi.Usage{Input: 21, Output: 8, CacheRead: 5, CacheCreation: 3},
	})
	message, pieces, err := accumulate(withPatience(t), p.claude(), asking(claude.NewTextBlock("hi")))
	if err != nil {
		t.Fatal(err)
	}
	if got := textOf(message); got != text || pieces < 2 {
		t.Errorf("in %d pieces: %s", pieces, difference(got, text))
	}
	u := message.Usage
	if message.StopReason != "end_turn" || u.InputTokens != 21 || u.OutputTokens != 8 || u.CacheReadInputTokens != 5 || u.CacheCreationInputTokens != 3 {
		t.Errorf("got %s", message.RawJSON())
	}
}

func testClaudeErrors(t *testing.T, p *proxy) {
	client := p.claude()
	for status, kind := range map[int]string{
		401: "authentication_error", 404: "not_found_error", 529: "overloaded_error",
	} {
		p.says(messagesapi.ErrorAnswer(status, "no"))
		_, whole := client.Messages.New(withPatience(t), asking(claude.NewTextBlock("hi")))
		wantClaudeError(t, whole, status, kind)
	}
	p.says(messagesapi.ErrorAnswer(429, "no"))
	_, _, streamed := accumulate(withPatience(t), client, asking(claude.NewTextBlock("hi")))
	wantClaudeError(t, streamed, 429, "rate_limit_error")
	_, empty := client.Messages.New(withPatience(t), asking())
	wantClaudeError(t, empty, 400, "invalid_request_error")
}

func wantClaudeError(t *testing.T, err error, status int, kind string) {
	t.Helper()
	var e *claude.Error
	if !errors.As(err, &e) {
		t.Errorf("got %v, want an error with %d", err, status)
	} else if e.StatusCode != status || string(e.Type()) != kind || e.RequestID == "" {
		t.Errorf("got %d %s, want %d with type %q", e.StatusCode, e.RawJSON(), status, kind)
	}
}

func testClaudeRetry(t *testing.T, p *proxy) {
	p.model.SetScript(messagesapi.Sequence(messagesapi.ErrorAnswer(429, "no"), messagesapi.ErrorAnswer(529, "no"), messagesapi.TextAnswer("yes")))
	message, _, err := accumulate(withPatience(t), p.claude(claudeoption.WithMaxRetries(2)), asking(claude.NewTextBlock("hi")))
	if got := textOf(message); err != nil || got != "yes" || len(p.model.Turns()) != 3 {
		t.Errorf("got %q, %v after %d requests", got, err, len(p.model.Turns()))
	}
}

// An answer that breaks off ends with an error behind its beginning.
func testClaudeBroken(t *testing.T, p *proxy) {
	text := stepText("it")
	gate := messagesapi.NewGate()
	gate.Release()
	p.says(messagesapi.Answer{Parts: []messagesapi.Part{messagesapi.Text(text)}, Gate: gate, Fault: messagesapi.CutRST(messagesapi.InBlock(0, 3))})
	client := p.claude()
	stream := client.Messages.NewStreaming(withPatience(t), asking(claude.NewTextBlock("hi")))
	got := ""
	for stream.Next() {
		if delta := stream.Current().Delta.Text; delta != "" {
			got += delta
			gate.Open()
		}
	}
	var e *claude.Error
	if err := stream.Err(); !errors.As(err, &e) && !strings.Contains(err.Error(), "api_error") || got == "" || !strings.HasPrefix(text, got) {
		t.Errorf("got %q, then %v", got, err)
	}
}

func testClaudeCount(t *testing.T, p *proxy) {
	client := p.claude()
	got, err := client.Messages.CountTokens(withPatience(t), claude.MessageCountTokensParams{
		Model: modelName, Messages: asking(claude.NewTextBlock(strings.Repeat("seven c", 100))).Messages,
	})
	if err != nil || got.InputTokens < 200 || got.InputTokens > 250 {
		t.Errorf("got %v, %v", got, err)
	}
	if n := len(p.model.Turns()); n > 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

func testClaudeStop(t *testing.T, p *proxy) {
	p.says(messagesapi.Answer{
		Parts: []messagesapi.Part{messagesapi.Text("a line\nanother EN" + "D\n" + strings.Repeat("more\n", 500))},
		Pace:  messagesapi.Pace{Between: 50 * time.Millisecond},
	})
	params := asking(claude.NewTextBlock("hi"))
	params.StopSequences = []string{"STOP", "END"}
	message, _, err := accumulate(withPatience(t), p.claude(), params)
	if err != nil {
		t.Fatal(err)
	}
	if got := textOf(message); got != "a line\nanother " || message.StopReason != "stop_sequence" || message.StopSequence != "END" {
		t.Errorf("got %q and %s", got, message.RawJSON())
	}
	if outcome, err := p.model.Turns()[0].Wait(withPatience(t)); err != nil || outcome != messagesapi.Disconnected {
		t.Errorf("the session was not ended: the model's answer was %s (%v)", outcome, err)
	}
}

func testClaudeLimit(t *testing.T, p *proxy) {
	p.model.SetScript(messagesapi.ByRequest(func(r messagesapi.Request) messagesapi.Answer {
		a := messagesapi.Answer{Parts: []messagesapi.Part{messagesapi.Text("one\ntwo thr")}, StopReason: "max_tokens"}
		if len(r.Messages) > 1 { // the CLI's own wish for a continuation
			a = messagesapi.Answer{Parts: []messagesapi.Part{messagesapi.Text("ee")}, Pace: messagesapi.Pace{First: time.Second}}
		}
		return a
	}))
	params := asking(claude.NewTextBlock("hi"))
	params.MaxTokens = 17
	client := p.claude()
	message, err := client.Messages.New(withPatience(t), params)
	if err != nil {
		t.Fatal(err)
	}
	if got := textOf(*message); got != "one\ntwo thr" || message.StopReason != "max_tokens" {
		t.Errorf("got %q and %s", got, message.RawJSON())
	}
	if limit := p.firstRequest(t).MaxTokens; limit != 17 {
		t.Errorf("the model was asked for %d tokens, want 17", limit)
	}
}

// The model gets system texts, an image, calls and their results as they were sent.
func testClaudeConversation(t *testing.T, p *proxy) {
	p.says(messagesapi.TextAnswer("ok"))
	client := p.claude()
	message, err := client.Messages.New(withPatience(t), claude.MessageNewParams{
		Model: modelName, MaxTokens: 1000, System: []claude.TextBlockParam{{Text: "Be brief."}, {Text: "Be kind."}},
		Messages: []claude.MessageParam{
			claude.NewUserMessage(claude.NewImageBlockBase64("image/png", tinyPNG), claude.NewTextBlock("what?")),
			claude.NewAssistantMessage(claude.NewTextBlock("let me see"), claude.NewToolUseBlock("call_1", map[string]string{"city": "Paris"}, "weather")),
			claude.NewUserMessage(claude.NewToolResultBlock("call_1", "rain", false), claude.NewTextBlock("and?")),
		},
	})
	if err != nil || textOf(*message) != "ok" {
		t.Fatalf("got %v, %v", message, err)
	}
	request := p.firstRequest(t)
	compareSystem(t, request.System, "Be brief.\n\nBe kind.")
	var lines []string
	for _, m := range request.Messages {
		for _, block := range m.Content {
			if !strings.HasPrefix(block.Text, "<system-reminder>") {
				lines = append(lines, m.Role+" "+plainBlock(t, block))
			}
		}
	}
	want := []string{
		`user {"source":{"data":"` + tinyPNG + `","media_type":"image/png","type":"base64"},"type":"image"}`,
		`user {"text":"what?","type":"text"}`,
		`assistant {"text":"let me see","type":"text"}`,
		`assistant {"id":"call_1","input":{"city":"Paris"},"name":"weather","type":"tool_use"}`,
		`user {"content":[{"text":"rain","type":"text"}],"tool_use_id":"call_1","type":"tool_result"}`,
		`user {"text":"and?","type":"text"}`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

// Keys of clients open all routes, in either header, and reach neither a session nor a log.
func TestClientKeys(t *testing.T) {
	const first, second = "canary-client-key-71aa", "canary-client-key-93bb"
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{env: []string{"OCP_API_KEY=" + first + "," + second}})
		gate := messagesapi.NewGate()
		gate.Release()
		p.says(messagesapi.Answer{Parts: []messagesapi.Part{messagesapi.Text("one\ntwo\n")}, Gate: gate})

		for _, wrong := range []claude.Client{
			p.claude(claudeoption.WithAPIKey("wrong")), p.claude(claudeoption.WithAPIKey(first[1:])),
			claude.NewClient(claudeoption.WithBaseURL(p.url), claudeoption.WithAuthToken("wrong"), claudeoption.WithMaxRetries(0)),
		} {
			_, err := wrong.Messages.New(withPatience(t), asking(claude.NewTextBlock("hi")))
			wantClaudeError(t, err, 401, "authentication_error")
		}
		if reply := p.postChat(withPatience(t), chatBody{Model: modelName, Messages: []sentMessage{{"user", "hi"}}}); reply.status != 401 {
			t.Errorf("without a key: %d %s", reply.status, reply.body)
		}
		if n := len(p.model.Turns()); n > 0 {
			t.Errorf("the model was asked %d times", n)
		}

		byHeader := p.claude(claudeoption.WithAPIKey(first))
		stream := byHeader.Messages.NewStreaming(withPatience(t), asking(claude.NewTextBlock("hi")))
		got := ""
		for stream.Next() {
			if delta := stream.Current().Delta.Text; delta != "" {
				if got == "" {
					p.checkKeysAreKept(t, first, second)
					gate.Open()
				}
				got += delta
			}
		}
		if err := stream.Err(); err != nil || got != "one\ntwo\n" {
			t.Errorf("got %q, %v", got, err)
		}
		byToken := claude.NewClient(claudeoption.WithBaseURL(p.url), claudeoption.WithAuthToken(second), claudeoption.WithMaxRetries(0))
		if message, err := byToken.Messages.New(withPatience(t), asking(claude.NewTextBlock("hi"))); err != nil || textOf(*message) != "one\ntwo\n" {
			t.Errorf("got %v, %v", message, err)
		}
		for _, r := range p.model.Turns() {
			if r.Header.Get("X-Api-Key") != apiKey {
				t.Errorf("the upstream was sent the key %q", r.Header.Get("X-Api-Key"))
			}
		}
		resp, err := http.Get(p.url + "/healthz")
		if err != nil || resp.Body.Close() != nil || resp.StatusCode != 200 {
			t.Errorf("healthz: %v, %v", resp, err)
		}
		p.checkLog(t, []string{first, second, first[1:]})
	})
}

// checkKeysAreKept wants none of the keys in the environment or on the command line of a
// session, or in its files.
func (p *proxy) checkKeysAreKept(t *testing.T, keys ...string) {
	t.Helper()
	p.checkCommandLines(t, keys)
	sessions := p.processes()
	if len(sessions) == 0 {
		t.Error("no session runs")
	}
	for _, s := range sessions {
		environ, err := os.ReadFile(filepath.Join("/proc", s.pid, "environ"))
		if err != nil {
			continue // gone
		}
		for _, key := range keys {
			if strings.Contains(string(environ), key) {
				t.Errorf("process %s has the key in its environment: %s", s.pid, s.cmdline)
			}
		}
	}
	if paths := holding(t, keys, p.state); len(paths) > 0 {
		t.Errorf("the key is in %v", paths)
	}
}
