package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"ocp/internal/messagesapi"
)

// The scripts in clients/ use each JavaScript client as its users would, unmodified. Each
// prints what came of its steps; here it is compared with what the model was scripted to
// say, and with what it was asked. A step's prompt is "[client/step] go".

const stepSystem = "Be brief."

// step is what came of one step.
type step struct {
	Text   string
	Pieces int
	Finish string
	Usage  *stepUsage
	Error  *stepError
}

type stepUsage struct{ Input, Output int }

// stepError is an error as the client raised it; Is is its class.
type stepError struct {
	Is, Type, Message, Stack string
	Status                   int
	Code                     any
}

var stepName = regexp.MustCompile(`\[([a-z-]+)/([A-Za-z]+)\] go`)

// stepPlace is where the city of a structured answer is.
const stepPlace = `{"city":"Paris"}`

// stepText is what the model says to a prompt, if nothing goes wrong.
func stepText(prompt string) string {
	return "An answer to " + prompt + "\n\n\tnaïve café 👨‍👩‍👧‍👦\r\n" + strings.Repeat("| a | line |  \n", 6) + "```\nend"
}

// stepModel is the model behind all clients. It is also what the scripts tell that a
// step's first text has come.
type stepModel struct {
	mu    sync.Mutex
	asked map[string]int               // requests by prompt; guarded by mu
	gates map[string]*messagesapi.Gate // by prompt: shut behind three lines until the first text came; guarded by mu
}

func newStepModel() *stepModel {
	return &stepModel{asked: map[string]int{}, gates: map[string]*messagesapi.Gate{}}
}

// gate returns the gate of a prompt's answers.
func (m *stepModel) gate(prompt string) *messagesapi.Gate {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gates[prompt] == nil {
		m.gates[prompt] = messagesapi.NewGate()
		for range 3 {
			m.gates[prompt].Release()
		}
	}
	return m.gates[prompt]
}

// ServeHTTP takes it that the first text of the step in the path has come.
func (m *stepModel) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	m.gate("[" + strings.TrimPrefix(r.URL.Path, "/") + "] go").Open()
}

// count counts a request and returns how many there were for its prompt.
func (m *stepModel) count(prompt string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked[prompt]++
	return m.asked[prompt]
}

func (m *stepModel) answer(r *messagesapi.Recorded) messagesapi.Answer {
	found := stepName.FindSubmatch(r.Body)
	if found == nil {
		return messagesapi.ErrorAnswer(400, "no step's prompt")
	}
	prompt, name := string(found[0]), string(found[2])
	times := m.count(prompt)
	answer := messagesapi.TextAnswer(stepText(prompt))
	answer.Usage = messagesapi.Usage{Input: 21, Output: 8}
	switch name {
	case "streamed", "responseStreamed":
		answer.Gate = m.gate(prompt)
	case "broken", "responseBroken":
		answer.Gate = m.gate(prompt)
		answer.Fault = messagesapi.CutRST(messagesapi.InBlock(0, 6))
	case "aborted":
		answer.Fault = messagesapi.Hang(messagesapi.InBlock(0, 4))
	case "structured":
		answer.Parts = []messagesapi.Part{messagesapi.Text("```json\n" + stepPlace + "\n```")}
	case "denied":
		return messagesapi.ErrorAnswer(401, "invalid x-api-key")
	case "unknown":
		return messagesapi.ErrorAnswer(404, "model: claude-none")
	case "limited":
		return messagesapi.ErrorAnswer(429, "limit is reached")
	case "retried":
		if times == 1 {
			return messagesapi.ErrorAnswer(429, "limit is reached")
		}
	}
	return answer
}

// TestClients runs all clients at the same time against one proxy.
func TestClients(t *testing.T) {
	if _, err := os.Stat("clients/node_modules/.installed"); err != nil {
		t.Fatalf("the JavaScript clients are not installed: run `make clients` (%v)", err)
	}
	onEachCLI(t, func(t *testing.T, c cli) {
		model := newStepModel()
		seen := httptest.NewServer(model)
		defer seen.Close()
		p := startProxy(t, c, proxyOptions{ahead: true, args: []string{"--concurrency", "2", "--queue", "100"}, script: model.answer})
		t.Run("client", func(t *testing.T) {
			for _, client := range []stepClient{
				{
					name: "openai", script: "openai.mjs", finish: "stop",
					denied: "AuthenticationError", limited: "RateLimitError", broken: "APIError", aborted: "", // its loop just ends
					own: map[string]func(*testing.T, *proxy, step){
						"helper": checkHelper, "response": checkResponse, "responseStreamed": checkResponse, "responseHelper": checkResponse,
						"structured": checkStructured, "models": checkModels, "responseBroken": wantBroken("APIError"),
						"invalid": wantStepError("BadRequestError", 400, "at least one user message"), "unknown": wantStepError("NotFoundError", 404, "the model"),
					},
				},
				{
					name: "anthropic", script: "anthropic.mjs", finish: "end_turn",
					denied: "AuthenticationError", limited: "RateLimitError", broken: "APIError", aborted: "APIUserAbortError",
					own: map[string]func(*testing.T, *proxy, step){
						"helper": checkHelper, "count": checkCount, "models": checkModels,
						"invalid": wantStepError("BadRequestError", 400, "at least one user message"), "unknown": wantStepError("NotFoundError", 404, "the model"),
					},
				},
				{
					name: "ai-openai", script: "ai.mjs", finish: "stop",
					denied: "APICallError", limited: "APICallError", broken: "Error", aborted: "AbortError",
					own: map[string]func(*testing.T, *proxy, step){"structured": checkStructured},
				},
				{
					name: "ai-anthropic", script: "ai.mjs", finish: "stop",
					denied: "APICallError", limited: "APICallError", broken: "Error", aborted: "AbortError",
				},
				{
					name: "langchain", script: "langchain.mjs", finish: "stop",
					denied: "AuthenticationError", limited: "RateLimitError", broken: "APIError", aborted: "AbortError",
					own: map[string]func(*testing.T, *proxy, step){
						"structured": checkStructured,
						// It comes back only if it is told when, and nobody tells ocp.
						"retried": wantStepError("RateLimitError", 429, "limit is reached"),
					},
				},
			} {
				t.Run(client.name, func(t *testing.T) {
					t.Parallel()
					client.check(t, p, seen.URL)
				})
			}
			t.Run("opencode", func(t *testing.T) {
				t.Parallel()
				checkOpencode(t, p)
			})
		})
		wantSlotsFree(t, p, 2)
	})
}

// TestClientsComeBack wants that a client that is refused, since all slots are taken and
// nobody may wait, comes back by itself and is served.
func TestClientsComeBack(t *testing.T) {
	model := newStepModel()
	p := startProxy(t, clis[len(clis)-1], proxyOptions{args: []string{"--concurrency", "1", "--queue", "0"}})
	for _, c := range []stepClient{
		{name: "openai", script: "openai.mjs", finish: "stop"},
		{name: "anthropic", script: "anthropic.mjs", finish: "end_turn"},
		{name: "langchain", script: "langchain.mjs", finish: "stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			gate := messagesapi.NewGate()
			p.model.SetScript(messagesapi.Always(messagesapi.Answer{Parts: []messagesapi.Part{messagesapi.Text("ok")}, Gate: gate}))
			var first sync.WaitGroup
			defer first.Wait()
			first.Go(func() {
				client := p.client()
				params := openai.ChatCompletionNewParams{Model: modelName, Messages: user("hi")}
				// The turn before may still hold the slot.
				if _, err := client.Chat.Completions.New(withPatience(t), params, option.WithMaxRetries(5)); err != nil {
					t.Error(err)
				}
			})
			if err := gate.Arrived(withPatience(t), 1); err != nil {
				t.Fatal(err)
			}
			p.model.SetScript(model.answer)
			refusals := strings.Count(p.log.text(), "outcome=refused")
			result := startScript(t, p, c.name, c.script, "OCP_SEEN="+p.model.URL(), "OCP_STEP=whole")
			p.log.waitFor(t, refusals+1, "outcome=refused")
			gate.Open()
			steps := result()
			t.Run("whole", func(t *testing.T) { c.wantAnswer(t, p, steps["whole"]) })
		})
	}
}

// TestClientGuide wants docs/clients.md to name the versions that are tried.
func TestClientGuide(t *testing.T) {
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	guide := read("../docs/clients.md")
	var pinned struct{ Dependencies, OptionalDependencies map[string]string }
	if err := json.Unmarshal([]byte(read("clients/package.json")), &pinned); err != nil {
		t.Fatal(err)
	}
	for name, version := range pinned.Dependencies {
		if !strings.Contains(guide, "`"+name+"` "+version) {
			t.Errorf("the guide does not name %s %s", name, version)
		}
	}
	if version := pinned.OptionalDependencies["opencode-linux-x64-baseline"]; !strings.Contains(guide, "Tried, "+version+", headless") {
		t.Errorf("the guide does not name opencode %s", version)
	}
	module := read("../go.mod")
	for _, name := range []string{"github.com/openai/openai-go/v3", "github.com/anthropics/anthropic-sdk-go/v2"} {
		version := regexp.MustCompile(regexp.QuoteMeta(name) + ` v(\S+)`).FindStringSubmatch(module)
		if version == nil || !strings.Contains(guide, "`"+name+"` "+version[1]) {
			t.Errorf("the guide does not name %s %v", name, version)
		}
	}
}

// stepClient is a script and what it is to find that depends on the client.
type stepClient struct {
	name, script string
	finish       string // why a whole answer ended, in the client's words
	// The classes of the errors of the steps of these names.
	denied, limited, broken, aborted string
	own                              map[string]func(*testing.T, *proxy, step)
}

func (c stepClient) check(t *testing.T, p *proxy, seen string) {
	checks := map[string]func(*testing.T, *proxy, step){
		"streamed":     c.wantStreamed,
		"whole":        c.wantAnswer,
		"conversation": c.wantConversation,
		"image":        c.wantImage,
		"tools":        c.wantTools,
		"retried":      c.wantRetried,
		"denied":       wantStepError(c.denied, 401, ""),
		"limited":      wantStepError(c.limited, 429, "limit is reached"),
		"broken":       wantBroken(c.broken),
		"aborted":      c.wantAborted,
	}
	for name, check := range c.own {
		checks[name] = check
	}
	steps := startScript(t, p, c.name, c.script, "OCP_SEEN="+seen)()
	for name, check := range checks {
		t.Run(name, func(t *testing.T) {
			got, made := steps[name]
			if !made {
				t.Fatal("the script has no such step")
			}
			check(t, p, got)
		})
	}
	for name := range steps {
		if checks[name] == nil {
			t.Errorf("nothing checks the step %q", name)
		}
	}
}

// startScript starts a client's script and returns what waits for its steps. The script's
// environment is empty but for what it needs.
func startScript(t *testing.T, p *proxy, name, script string, env ...string) (result func() map[string]step) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "node", filepath.Join("clients", script), name)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "OCP_URL=" + p.url, "OCP_PNG=" + tinyPNG}, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() map[string]step {
		t.Helper()
		if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
			t.Fatalf("node %s: %v (%v)\n%s%s", script, err, context.Cause(ctx), stdout.Bytes(), stderr.Bytes())
		}
		var steps map[string]step
		if err := json.Unmarshal(stdout.Bytes(), &steps); err != nil {
			t.Fatalf("%v in %s", err, stdout.Bytes())
		}
		return steps
	}
}

// stepPrompt is that of the running test's step: the last two parts of its name.
func stepPrompt(t *testing.T) string {
	parts := strings.Split(t.Name(), "/")
	return "[" + strings.Join(parts[len(parts)-2:], "/") + "] go"
}

// askedFor are the requests that the model got for the running test's step.
func askedFor(t *testing.T, p *proxy) (found []*messagesapi.Recorded) {
	t.Helper()
	for _, r := range p.model.Turns() {
		if name := stepName.Find(r.Body); string(name) == stepPrompt(t) {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		t.Fatal("the model was not asked")
	}
	return found
}

func wantWhole(t *testing.T, got step) {
	t.Helper()
	if got.Error != nil {
		t.Fatalf("%+v", *got.Error)
	}
	if want := stepText(stepPrompt(t)); got.Text != want {
		t.Error(difference(got.Text, want))
	}
}

func (c stepClient) wantAnswer(t *testing.T, _ *proxy, got step) {
	t.Helper()
	wantWhole(t, got)
	if got.Finish != c.finish {
		t.Errorf("it ended with %q, want %q", got.Finish, c.finish)
	}
	if want := (stepUsage{Input: 21, Output: 8}); got.Usage == nil || *got.Usage != want {
		t.Errorf("the usage is %+v, want %+v", got.Usage, want)
	}
}

func (c stepClient) wantStreamed(t *testing.T, p *proxy, got step) {
	c.wantAnswer(t, p, got)
	if got.Pieces < 2 {
		t.Errorf("the answer came in %d pieces", got.Pieces)
	}
}

func (c stepClient) wantConversation(t *testing.T, p *proxy, got step) {
	c.wantAnswer(t, p, got)
	request := stepRequest(t, p)
	compareMessages(t, request.Messages, []seenMessage{seen("user", "one"), seen("assistant", "two"), seen("user", stepPrompt(t))})
	compareSystem(t, request.System, stepSystem)
}

// stepRequest is the step's one request.
func stepRequest(t *testing.T, p *proxy) messagesapi.Request {
	t.Helper()
	asked := askedFor(t, p)
	if len(asked) != 1 {
		t.Errorf("the model was asked %d times", len(asked))
	}
	request, err := asked[0].Decode()
	if err != nil {
		t.Fatal(err)
	}
	return request
}

func (c stepClient) wantImage(t *testing.T, p *proxy, got step) {
	c.wantAnswer(t, p, got)
	var images []string
	for _, block := range stepRequest(t, p).Messages[0].Content {
		if block.Type == "image" {
			images = append(images, string(block.Source))
		}
	}
	if want := []string{`{"type":"base64","media_type":"image/png","data":"` + tinyPNG + `"}`}; !slices.Equal(images, want) {
		t.Errorf("the model got the images %q", images)
	}
}

func (c stepClient) wantTools(t *testing.T, p *proxy, got step) {
	c.wantAnswer(t, p, got)
	var lines []string
	for _, m := range stepRequest(t, p).Messages {
		for _, block := range m.Content {
			if !strings.HasPrefix(block.Text, "<system-reminder>") {
				lines = append(lines, m.Role+" "+plainBlock(t, block))
			}
		}
	}
	want := []string{
		`user {"text":"` + stepPrompt(t) + `","type":"text"}`,
		`assistant {"id":"call_1","input":{"city":"Paris"},"name":"weather","type":"tool_use"}`,
		`user {"content":[{"text":"rain","type":"text"}],"tool_use_id":"call_1","type":"tool_result"}`,
		`user {"text":"Continue from where you left off.","type":"text"}`, // the CLI's own
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

// wantRetried wants that the client came back by itself.
func (c stepClient) wantRetried(t *testing.T, p *proxy, got step) {
	c.wantAnswer(t, p, got)
	asked := askedFor(t, p)
	if len(asked) != 2 {
		t.Fatalf("the model was asked %d times", len(asked))
	}
}

// wantAborted wants that the turn ended with the client: the session's own connection to
// the model is gone.
func (c stepClient) wantAborted(t *testing.T, p *proxy, got step) {
	if got.Text == "" || !strings.HasPrefix(stepText(stepPrompt(t)), got.Text) {
		t.Errorf("before it was aborted, the client got %q", got.Text)
	}
	if is := errorClass(got); is != c.aborted {
		t.Errorf("the client raised %q, want %q: %+v", is, c.aborted, got.Error)
	}
	outcome, err := askedFor(t, p)[0].Wait(withPatience(t))
	if err != nil || outcome != messagesapi.Disconnected {
		t.Errorf("the model's answer ended as %s, %v", outcome, err)
	}
}

func errorClass(got step) string {
	if got.Error == nil {
		return ""
	}
	return got.Error.Is
}

func wantStepError(class string, status int, says string) func(*testing.T, *proxy, step) {
	return func(t *testing.T, _ *proxy, got step) {
		if errorClass(got) != class || got.Error.Status != status || !strings.Contains(got.Error.Message, says) || got.Text != "" {
			t.Errorf("got %q and %+v, want %s with %d", got.Text, got.Error, class, status)
		}
	}
}

// wantBroken wants the beginning of the answer and then an error, never an end.
func wantBroken(class string) func(*testing.T, *proxy, step) {
	return func(t *testing.T, _ *proxy, got step) {
		if got.Text == "" || !strings.HasPrefix(stepText(stepPrompt(t)), got.Text) {
			t.Errorf("the client got %q", got.Text)
		}
		if errorClass(got) != class {
			t.Errorf("the client raised %+v, want %s", got.Error, class)
		}
	}
}

func checkHelper(t *testing.T, _ *proxy, got step) {
	wantWhole(t, got)
	if got.Pieces < 1 || got.Finish != "stop" && got.Finish != "end_turn" {
		t.Errorf("%d pieces, then %q", got.Pieces, got.Finish)
	}
}

func checkResponse(t *testing.T, _ *proxy, got step) {
	wantWhole(t, got)
	if got.Finish != "completed" {
		t.Errorf("it ended with %q", got.Finish)
	}
	if strings.HasSuffix(t.Name(), "responseStreamed") && got.Pieces < 2 {
		t.Errorf("the answer came in %d pieces", got.Pieces)
	}
}

func checkStructured(t *testing.T, _ *proxy, got step) {
	if got.Text != stepPlace || got.Error != nil {
		t.Errorf("got %q, %+v", got.Text, got.Error)
	}
}

func checkCount(t *testing.T, _ *proxy, got step) {
	if got.Error != nil || got.Usage == nil || got.Usage.Input < 5 || got.Usage.Input > 50 {
		t.Errorf("counted %+v, %+v", got.Usage, got.Error)
	}
}

func checkModels(t *testing.T, _ *proxy, got step) {
	if got.Error != nil || !slices.Contains(strings.Split(got.Text, "\n"), "sonnet") {
		t.Errorf("the models are %q, %+v", got.Text, got.Error)
	}
}

// wantSlotsFree wants n turns to run at the same time: no aborted turn holds a slot.
func wantSlotsFree(t *testing.T, p *proxy, n int) {
	t.Helper()
	gate := messagesapi.NewGate()
	p.model.SetScript(messagesapi.Always(messagesapi.Answer{Parts: []messagesapi.Part{messagesapi.Text("ok")}, Gate: gate}))
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if _, err := p.complete(withPatience(t), user("hi")); err != nil {
				t.Error(err)
			}
		})
	}
	if err := gate.Arrived(withPatience(t), n); err != nil {
		t.Errorf("%d turns do not run at the same time: %v", n, err)
	}
	gate.Open()
	all.Wait()
}

// opencodeProgram is opencode's own binary, which npm has only for this platform here.
const opencodeProgram = "clients/node_modules/opencode-linux-x64-baseline/bin/opencode"

// checkOpencode asks the coding agent opencode a question, headless. It offers its tools
// and answers with text. It must ask nothing of the internet.
func checkOpencode(t *testing.T, p *proxy) {
	program, err := filepath.Abs(opencodeProgram)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		if runtime.GOOS+"/"+runtime.GOARCH == "linux/amd64" {
			t.Fatal(err)
		}
		t.Skip("opencode is installed on linux/amd64 alone")
	}
	trap := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// It asks npm for its plugins' types, whatever it is told, and does without.
		if r.URL.Path != "/@opencode-ai/plugin" {
			t.Errorf("opencode asked for %s %s", r.Method, r.URL)
		}
		http.NotFound(w, r)
	}))
	defer trap.Close()
	config := fmt.Sprintf(`{
		"model": "ocp/sonnet", "autoupdate": false, "share": "disabled",
		"provider": {"ocp": {
			"npm": "@ai-sdk/openai-compatible", "name": "OCP",
			"options": {"baseURL": %q, "apiKey": "unused"},
			"models": {"sonnet": {"name": "Sonnet"}}
		}}
	}`, p.url+"/v1")
	const prompt = "[opencode/run] go"
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "run", "--format", "json", "--title", "a title", prompt)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "OPENCODE_CONFIG_CONTENT=" + config,
		"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_SHARE=1",
		"OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
		"HTTP_PROXY=" + trap.URL, "HTTPS_PROXY=" + trap.URL, "NO_PROXY=127.0.0.1", "npm_config_registry=" + trap.URL,
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("opencode: %v\n%s%s", err, out, stderr.Bytes())
	}
	var text strings.Builder
	for line := range strings.Lines(string(out)) {
		var event struct {
			Type string
			Part struct {
				Text, Reason string
				Tokens       struct{ Input, Output int }
			}
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		text.WriteString(event.Part.Text)
		if part := event.Part; event.Type == "step_finish" && (part.Reason != "stop" || part.Tokens.Input != 21 || part.Tokens.Output != 8) {
			t.Errorf("it ended with %s", line)
		}
	}
	// It takes white space off the end, of which there is none.
	if want := stepText(prompt); text.String() != want {
		t.Errorf("%s\n%s%s", difference(text.String(), want), out, stderr.Bytes())
	}
	for _, r := range p.model.Turns() {
		if strings.Contains(string(r.Body), prompt) {
			if request, err := r.Decode(); err != nil || len(request.Tools) > 0 || !strings.Contains(string(r.Body), "opencode") {
				t.Errorf("the model was asked with %d tools (%v): %s", len(request.Tools), err, clip(string(r.Body)))
			}
		}
	}
}
