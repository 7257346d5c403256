package e2e

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"ocp/internal/messagesapi"
)

// TestClients runs all clients at the same time against one proxy.
func TestClients(t *testing.T) {
	if _, err := os.Stat("clients/node_modules/.installed"); err != nil {
		t.Fatalf("the JavaScript clients are not installed: run `make clients` (%v)", err)
	}
	onEachCLI(t, func(t *testing.T, c cli) {
		model := newStepModel()
		model.file = filepath.Join(t.TempDir(), "made.txt")
		loops := c.version == "2.1.332" // on the other tools cannot be called
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
					client.check(t, p, seen.URL, loops)
				})
			}
			if loops {
				t.Run("opencode", func(t *testing.T) {
					t.Parallel()
					checkOpencode(t, p, model.file)
				})
			}
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

func (c stepClient) check(t *testing.T, p *proxy, seen string, loops bool) {
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
	env := []string{"OCP_SEEN=" + seen}
	if loops {
		checks["loop"] = c.wantLoop
		env = append(env, "OCP_LOOP=1")
	}
	steps := startScript(t, p, c.name, c.script, env...)()
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
