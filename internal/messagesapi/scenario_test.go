package messagesapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// required are the names that others rely on.
const required = `hello demo echo long-line big crlf control emoji blank-lines table unclosed-fence
	login-lookalike thinking two-blocks tool-use max-tokens-once max-tokens-always refusal empty
	whitespace overloaded rate-limited server-error unauthorized forbidden not-found bad-request
	prompt-too-long too-large cut-before cut-inside cut-after error-event hang slow`

func TestScenarioNames(t *testing.T) {
	for _, name := range strings.Fields(required) {
		if _, ok := FindScenario(name); !ok {
			t.Errorf("no scenario %q", name)
		}
	}
	seen := map[string]bool{}
	for _, s := range Scenarios() {
		if s.Name == "" || s.Description == "" || s.Script == nil || seen[s.Name] {
			t.Errorf("scenario %q", s.Name)
		}
		seen[s.Name] = true
	}
	if _, ok := FindScenario("no-such"); ok {
		t.Error("found what is not there")
	}
}

// unpaced is the script without its waits.
func unpaced(script Script) Script {
	return func(r *Recorded) Answer {
		a := script(r)
		a.Pace = Pace{}
		return a
	}
}

// TestScenarios: each says what it says it says, and none is impossible.
func TestScenarios(t *testing.T) {
	for _, scenario := range Scenarios() {
		t.Run(scenario.Name, func(t *testing.T) {
			s, client := start(t, Options{Script: unpaced(scenario.Script)})
			if scenario.Name == "hang-before" {
				return
			}
			response := post(t, bound(t), client, s.URL(), streamed)
			if response.StatusCode != 200 {
				if body := readAll(t, response.Body); response.StatusCode < 400 || strings.Contains(body, "impossible") {
					t.Errorf("%d %s", response.StatusCode, body)
				}
				return
			}
			stream := newStreamReader(response.Body)
			if scenario.Name == "hang" {
				for stream.got.text() != scenario.Partial {
					if _, err := stream.next(); err != nil {
						t.Fatal(err)
					}
				}
				return
			}
			g, err := stream.all()
			switch scenario.Name {
			case "tool-use", "max-tokens-once", "echo":
				return // have tests of their own
			}
			if scenario.HasText && (err != nil || !g.stopped || g.text() != scenario.Text) {
				t.Errorf("%q, %v; want %q", g.text(), err, scenario.Text)
			}
			if !scenario.HasText && g.text() != scenario.Partial {
				t.Errorf("%q, want %q", g.text(), scenario.Partial)
			}
		})
	}
}

// TestSeveralMessages plays the client that goes on where it is asked to.
func TestSeveralMessages(t *testing.T) {
	for name, c := range map[string]struct{ next, separator string }{
		"tool-use":        {`{"type":"tool_result","tool_use_id":"x","content":"hello"}`, "\n\n"},
		"max-tokens-once": {`{"type":"text","text":"Resume."}`, ""},
	} {
		scenario, _ := FindScenario(name)
		s, client := start(t, Options{Script: scenario.Script})
		first, err := newStreamReader(post(t, bound(t), client, s.URL(), streamed).Body).all()
		if err != nil {
			t.Fatal(err)
		}
		body := fmt.Sprintf(`{"stream":true,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":%s},{"role":"user","content":[%s]}]}`,
			encode(first.text()), c.next)
		second, err := newStreamReader(post(t, bound(t), client, s.URL(), body).Body).all()
		if err != nil {
			t.Fatal(err)
		}
		if have := first.text() + c.separator + second.text(); have != scenario.Text || second.stopReason != "end_turn" {
			t.Errorf("%s: %q, %s; want %q", name, have, second.stopReason, scenario.Text)
		}
	}
}

func TestScenarioTexts(t *testing.T) {
	text := func(name string) string {
		s, _ := FindScenario(name)
		if !utf8.ValidString(s.Text) {
			t.Errorf("%s is not UTF-8", name)
		}
		return s.Text
	}
	if s := text("long-line"); len(s) != 4096 || strings.Contains(s, "\n") {
		t.Errorf("long-line has %d bytes", len(s))
	}
	if s := text("big"); len(s) != 4800*42 || strings.Count(s, "\n") != 4800 {
		t.Errorf("big has %d bytes", len(s))
	}
	if s := text("demo"); strings.Count(s, "\n") < 25 || !strings.Contains(s, "```") || !strings.Contains(s, "👨‍👩‍👧‍👦") {
		t.Errorf("demo has %d lines", strings.Count(s, "\n"))
	}
	if n := len(thinkingText()); n < 2000 || n > 2100 {
		t.Errorf("thinking of %d bytes", n)
	}
}

func TestSequence(t *testing.T) {
	s, client := start(t, Options{Script: Sequence()})
	ask := func() string {
		t.Helper()
		g, err := newStreamReader(post(t, bound(t), client, s.URL(), streamed).Body).all()
		if err != nil {
			t.Fatal(err)
		}
		return g.text()
	}
	if have := ask(); have != "" {
		t.Errorf("%q of nothing", have)
	}
	s.SetScript(Sequence(TextAnswer("a"), TextAnswer("b")))
	if have := ask() + ask() + ask(); have != "abb" {
		t.Errorf("%q", have)
	}
}

// TestByPrompt: many clients at once each get the answer to their own prompt.
func TestByPrompt(t *testing.T) {
	s, client := start(t, Options{Script: Echo()})
	ctx := bound(t)
	ids := make([]string, 20)
	var clients sync.WaitGroup
	for i := range ids {
		clients.Go(func() {
			prompt := fmt.Sprintf("prompt %d\r\n👍🏽", i)
			content, _ := json.Marshal(prompt)
			response, err := tryPost(ctx, client, s.URL(),
				`{"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"reminder"},{"type":"text","text":`+string(content)+`}]}]}`)
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			g, err := newStreamReader(response.Body).all()
			if err != nil || g.text() != prompt {
				t.Errorf("%q, %v; want %q", g.text(), err, prompt)
			}
			ids[i] = g.id
		})
	}
	clients.Wait()
	seen := map[string]bool{}
	for i, id := range ids {
		if !strings.HasPrefix(id, "msg_") || seen[id] {
			t.Errorf("id %d is %q", i, id)
		}
		seen[id] = true
	}
	for i, rec := range s.Turns() {
		if rec.Turn != i+1 {
			t.Errorf("turn %d is numbered %d", i+1, rec.Turn)
		}
	}
}
