package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ocp/internal/claude"
	"ocp/internal/config"
	"ocp/internal/messagesapi"
)

const (
	demoModel   = "claude-sonnet-4-6"
	demoPrompt  = "How does this answer reach me?"
	demoTimeout = time.Minute
	demoPrefix  = "ocp-demo-" // of the state directories, in the temporary folder
)

// demoCommand is the whole of OCP in one process: a scripted model, the proxy with the
// real CLI, and a client that shows what comes and when.
type demoCommand struct {
	Claude        string `placeholder:"PATH" help:"The claude binary. Default: the one on PATH, or ~/.local/bin/claude."`
	Scenario      string `default:"demo" help:"What the scripted model answers. 'list' lists the scenarios."`
	Listen        string `default:"127.0.0.1:0" help:"Address to serve on. Loopback only. Port 0 takes a free one."`
	Hold          bool   `help:"Keep serving afterwards, until interrupted."`
	HookTransport string `default:"http" enum:"http,command" help:"How the CLI's hooks reach ocp: http or command."`
	LogLevel      string `default:"warn" enum:"debug,info,warn,error" help:"The least severe log lines shown: debug, info, warn or error."`
}

// Run shows one streamed answer and checks it. An answer that does not hold what OCP
// promises is an error.
func (c *demoCommand) Run(ctx context.Context, p program) error {
	if c.Scenario == "list" {
		return listScenarios(p.stdout)
	}
	scenario, ok := messagesapi.FindScenario(c.Scenario)
	if !ok {
		return fmt.Errorf("--scenario: there is none called %q; 'ocp demo --scenario list' lists them", c.Scenario)
	}
	model, err := messagesapi.Start(messagesapi.Options{Script: scenario.Script})
	if err != nil {
		return fmt.Errorf("start the scripted model: %w", err)
	}
	defer model.Close()
	state, err := passingState(demoPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(state)
	proxy, cli, err := c.serve(ctx, p, model.URL(), state)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "Claude Code %s behind ocp on %s; the model is scripted (%s), no account is used.\n\n", cli, proxy.url(), c.Scenario)
	err = c.show(ctx, p, proxy, model, scenario)
	if err == nil && c.Hold {
		fmt.Fprintln(p.stdout, "\nServing until interrupted (Ctrl-C).")
		<-ctx.Done()
	}
	return errors.Join(err, proxy.close())
}

// passingState makes a state directory for a command that leaves nothing behind, and
// removes what those that were killed have left.
func passingState(prefix string) (string, error) {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	if err != nil {
		return "", err
	}
	for _, dir := range left {
		_ = claude.RemoveLeft(dir) // another user's cannot be removed, and need not
	}
	state, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", fmt.Errorf("make a state directory: %w", err)
	}
	return state, nil
}

// serve starts the proxy with nothing of the environment but PATH, so that no account
// can be used, and none of the operator's configuration is.
func (c *demoCommand) serve(ctx context.Context, p program, modelURL, state string) (*proxy, string, error) {
	settings, err := complete(config.Serve{
		Listen: c.Listen, Claude: c.Claude, StateDir: state, Concurrency: 2, Queue: 16, Effort: "low",
		TurnTimeout: demoTimeout, StartTimeout: demoTimeout, KeepAlive: 15 * time.Second, HookTransport: c.HookTransport,
	}, p.env)
	if err != nil {
		return nil, "", err
	}
	cli, err := claude.Version(ctx, settings.Claude)
	if err != nil {
		return nil, "", err
	}
	proxy, err := startProxy(settings, cli, scriptedEnv(p, modelURL), newLogger(p.stderr, c.LogLevel, "text"), nil)
	return proxy, cli, err
}

// scriptedEnv is the environment of a proxy before a scripted model.
func scriptedEnv(p program, modelURL string) []string {
	return []string{"PATH=" + claude.Variable(p.env, "PATH"), "ANTHROPIC_BASE_URL=" + modelURL, "ANTHROPIC_API_KEY=ocp-demo-no-account-needed"}
}

// show streams one answer, prints it as it comes, and ends with what was checked.
func (c *demoCommand) show(ctx context.Context, p program, proxy *proxy, model *messagesapi.Server, scenario messagesapi.Scenario) error {
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	start := time.Now()
	stamp := func(t time.Time) string { return fmt.Sprintf("%6d ms", t.Sub(start).Milliseconds()) }
	fmt.Fprintf(p.stdout, "%s  request: %s\n", stamp(start), demoPrompt)
	var answer demoAnswer
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	err := stream(ctx, client, proxy.url(), demoModel, []chatMessage{{"user", demoPrompt}}, func(delta string) {
		now := time.Now()
		if len(answer.deltas) == 0 {
			if asked := model.Turns(); len(asked) > 0 {
				fmt.Fprintf(p.stdout, "%s  the session asks the model (%d bytes)\n", stamp(asked[0].Arrived), len(asked[0].Body))
			}
		}
		answer.add(delta, now)
		for line := range strings.Lines(delta) {
			fmt.Fprintf(p.stdout, "%s  │ %s\n", stamp(now), strings.TrimSuffix(line, "\n"))
		}
	})
	end := time.Now()
	if err != nil {
		return fmt.Errorf("the answer failed: %w", err)
	}
	fmt.Fprintf(p.stdout, "%s  [DONE]\n\n", stamp(end))
	if err := answer.check(p.stdout, scenario, model); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "\n%s", c.tryNext(proxy.url()))
	return nil
}

// tryNext are commands to go on with; without --hold nothing serves them any more.
func (c *demoCommand) tryNext(url string) string {
	intro := "Try it yourself:"
	if !c.Hold {
		hold := "ocp demo --hold"
		if c.Claude != "" {
			hold += " --claude " + c.Claude
		}
		intro = "Try it yourself, with '" + hold + "' in another terminal (it prints its own port):"
	}
	return fmt.Sprintf(`%s
  curl -N %[2]s/v1/chat/completions -H 'Content-Type: application/json' \
    -d '{"model":"%[3]s","stream":true,"messages":[{"role":"user","content":"Hello"}]}'
  curl %[2]s/v1/models
`, intro, url, demoModel)
}

// demoAnswer is what the client has received.
type demoAnswer struct {
	text   strings.Builder
	deltas []time.Time
	sizes  []int // length of the text after each delta
}

func (a *demoAnswer) add(delta string, at time.Time) {
	a.text.WriteString(delta)
	a.deltas = append(a.deltas, at)
	a.sizes = append(a.sizes, a.text.Len())
}

// check prints what OCP promises of an answer and whether it held.
func (a *demoAnswer) check(w io.Writer, scenario messagesapi.Scenario, model *messagesapi.Server) error {
	asked := model.Turns()
	if len(asked) == 0 || len(a.deltas) == 0 {
		return errors.New("nothing was streamed")
	}
	early := 0
	for _, at := range a.deltas {
		if at.Before(asked[0].LastByte()) {
			early++
		}
	}
	text := a.text.String()
	checks := []demoCheck{
		{"exact", text == scenario.Text, fmt.Sprintf("%d bytes received, %d said by the model", len(text), len(scenario.Text))},
		{"prefix-stable", a.prefixStable(scenario), fmt.Sprintf("after each of %d deltas, what was received begins the answer", len(a.deltas))},
		{"incremental", early > 0, fmt.Sprintf("%d of %d deltas came before the model's last byte", early, len(a.deltas))},
		{"interactive", bytes.Contains(asked[0].Body, []byte("cc_entrypoint=cli;")), "the session tells the model that its entrypoint is cli"},
	}
	if !scenario.HasText { // what it says is not fixed
		checks = checks[2:]
	}
	failed := 0
	for _, c := range checks {
		mark := "ok  "
		// One line comes at its end: the CLI waits for the whole of it.
		oneLine := !strings.Contains(strings.TrimSuffix(text, "\n"), "\n")
		if !c.ok && !(c.name == "incremental" && oneLine) {
			mark = "FAIL"
			failed++
		}
		fmt.Fprintf(w, "%s  %-14s %s\n", mark, c.name, c.evidence)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(checks))
	}
	return nil
}

// demoCheck is one thing that OCP promises, and what was seen of it.
type demoCheck struct {
	name     string
	ok       bool
	evidence string
}

func (a *demoAnswer) prefixStable(scenario messagesapi.Scenario) bool {
	for _, size := range a.sizes {
		if !strings.HasPrefix(scenario.Text, a.text.String()[:size]) {
			return false
		}
	}
	return true
}

// chatMessage is one message of a request to the proxy.
type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// stream asks the proxy as any client would and hands on each piece of text.
func stream(ctx context.Context, client *http.Client, url, model string, messages []chatMessage, received func(string)) error {
	body, err := json.Marshal(map[string]any{"model": model, "stream": true, "messages": messages})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		message, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		return fmt.Errorf("%s: %s", resp.Status, message)
	}
	return readStream(resp.Body, received)
}

// maxFrame bounds one line of the stream, in bytes; a delta can be the whole answer.
const maxFrame = 16 << 20

func readStream(body io.Reader, received func(string)) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxFrame)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !ok:
			continue
		case data == "[DONE]":
			return nil
		}
		var chunk struct {
			Error   *struct{ Message string }
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return fmt.Errorf("read a chunk: %w", err)
		}
		if chunk.Error != nil {
			return errors.New(chunk.Error.Message)
		}
		for _, choice := range chunk.Choices {
			if choice.Delta.Content != "" {
				received(choice.Delta.Content)
			}
		}
	}
	return errors.Join(lines.Err(), errors.New("the stream broke off"))
}

func listScenarios(w io.Writer) error {
	for _, s := range messagesapi.Scenarios() {
		if _, err := fmt.Fprintf(w, "%-20s %s\n", s.Name, s.Description); err != nil {
			return err
		}
	}
	return nil
}
