package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

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

// stepFile is what is in the file that the coding agent is to write.
const stepFile = "made by a tool\n\t!é @x\n"

// stepText is what the model says to a prompt, if nothing goes wrong.
func stepText(prompt string) string {
	return "An answer to " + prompt + "\n\n\tnaïve café 👨‍👩‍👧‍👦\r\n" + strings.Repeat("| a | line |  \n", 6) + "```\nend"
}

// stepModel is the model behind all clients. It is also what the scripts tell that a
// step's first text has come.
type stepModel struct {
	file  string // that the coding agent is to write
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
	case "loop", "run":
		return m.calling(r, name, answer)
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

// calling calls the step's tool, and gives the answer once its result is there.
func (m *stepModel) calling(r *messagesapi.Recorded, name string, answer messagesapi.Answer) messagesapi.Answer {
	request, _ := r.Decode() // it was decoded before
	if last := request.Messages[len(request.Messages)-1].Content; last[len(last)-1].Type == "tool_result" || len(request.Tools) == 0 {
		return answer
	}
	call := messagesapi.ToolUse("toolu_loop", "mcp__t__weather", stepPlace)
	if name == "run" {
		input, _ := json.Marshal(map[string]string{"filePath": m.file, "content": stepFile}) // strings always marshal
		call = messagesapi.ToolUse("toolu_write", "mcp__t__write", string(input))
	}
	answer.Parts = []messagesapi.Part{messagesapi.Text("One moment."), call}
	return answer
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
