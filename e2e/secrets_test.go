package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ocp/internal/messagesapi"
)

// While a turn runs, no process of the machine has a secret or a text of the
// conversation on its command line, whatever credentials are used; nor has the log.
func TestNoSecretOnCommandLines(t *testing.T) {
	const token = "sk-ant-oat01-canary-token-c07e"
	onEachCLI(t, func(t *testing.T, c cli) {
		for _, test := range []struct {
			env, header, value string
			noKey              bool
		}{
			{"", "X-Api-Key", apiKey, false},
			{"CLAUDE_CODE_OAUTH_TOKEN", "Authorization", "Bearer " + token, true},
			{"ANTHROPIC_AUTH_TOKEN", "Authorization", "Bearer " + token, true},
		} {
			p := startProxy(t, c, proxyOptions{env: []string{test.env + "=" + token}, noKey: test.noKey})
			s, gate := p.halfAnswer(t)
			secrets := append([]string{apiKey, token, p.session(t).environ(t)["OCP_HOOK_SECRET"]}, conversationCanaries...)
			p.checkCommandLines(t, secrets)
			gate.Open()
			s.mustReadAll(t)
			if got := p.model.Turns()[0].Header.Get(test.header); got != test.value {
				t.Errorf("%s is %q, want %q", test.header, got, test.value)
			}
			p.checkLog(t, secrets)
		}
	})
}

// Failing requests put nothing into the log that is not the operator's to read, and
// nothing of the host into what the client gets.
func TestFailuresTellNoSecrets(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		o := newOperator(t)
		p := startProxy(t, c, proxyOptions{state: o.state, env: o.environment()})
		text := "Hello, " + promptCanary
		good := chatBody{Model: modelName, Messages: []sentMessage{{"system", systemCanary}, {"user", text}}}
		for _, test := range []struct {
			name   string
			body   any
			answer messagesapi.Answer
			status int
		}{
			{"upstream 401", good, messagesapi.ErrorAnswer(401, "bad key "+answerCanary), 401},
			{"upstream 500", good, messagesapi.ErrorAnswer(500, answerCanary), 502},
			{"upstream 400", good, messagesapi.ErrorAnswer(400, "no such field"), 400},
			{"cut in the middle", good, messagesapi.Answer{
				Parts: []messagesapi.Part{messagesapi.Text(answerCanary + " one\ntwo\n")}, Fault: messagesapi.CutRST(messagesapi.InBlock(0, 1)),
			}, 502},
			{"no JSON", []byte(`{"model": "m", "messages": [{"role": "user", "content": "` + text + `"}`), messagesapi.Answer{}, 400},
			{"no role", []byte(`{"model": "m", "messages": [{"content": "` + text + `"}]}`), messagesapi.Answer{}, 400},
			{"unknown role", chatBody{Model: modelName, Messages: []sentMessage{{promptCanary, text}}}, messagesapi.Answer{}, 400},
			{"wrong content", chatBody{Model: modelName, Messages: []sentMessage{{"user", map[string]string{"text": text}}}}, messagesapi.Answer{}, 400},
			{"unknown part", chatBody{Model: modelName, Messages: []sentMessage{{"user", []textPart{{promptCanary, text}}}}}, messagesapi.Answer{}, 400},
			{"assistant last", chatBody{Model: modelName, Messages: []sentMessage{{"user", text}, {"assistant", text}}}, messagesapi.Answer{}, 400},
			{"no model", chatBody{Messages: []sentMessage{{"user", text}}}, messagesapi.Answer{}, 400},
		} {
			p.model.SetScript(messagesapi.Always(test.answer))
			checkFailure(t, test.name, p.postChat(withPatience(t), test.body), test.status)
		}
		eventually(t, gone, "the sessions are gone", func() bool { return len(p.sessionDirs()) == 0 })
		// A session that cannot be started: the reason names paths.
		if err := os.RemoveAll(filepath.Join(o.state, "sessions")); err != nil {
			t.Fatal(err)
		}
		checkFailure(t, "no place for a session", p.postChat(withPatience(t), good), 502)
		p.checkLog(t, append([]string{apiKey}, conversationCanaries...))
	})
}

var absolutePath = regexp.MustCompile(`/(tmp|home|root|work|usr|var|etc|proc|opt)\b`)

func checkFailure(t *testing.T, name string, reply rawReply, status int) {
	t.Helper()
	if reply.status != status {
		t.Errorf("%s: status %d, want %d: %s", name, reply.status, status, reply.body)
	}
	var headers strings.Builder
	_ = reply.header.Write(&headers)
	for what, text := range map[string]string{"body": string(reply.body), "header": headers.String()} {
		if path := absolutePath.FindString(text); path != "" {
			t.Errorf("%s: the %s holds a path: %s", name, what, text)
		}
		if strings.Contains(text, apiKey) {
			t.Errorf("%s: the %s holds the key: %s", name, what, text)
		}
	}
	if got := reply.header.Get("Content-Type"); reply.status != 0 && got != "application/json" {
		t.Errorf("%s: %s is of type %q", name, http.StatusText(reply.status), got)
	}
}

// checkCommandLines looks at every process of the machine.
func (p *proxy) checkCommandLines(t *testing.T, secrets []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	sessions := 0
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // gone
		}
		cmdline := string(data)
		if strings.Contains(cmdline, p.state) {
			sessions++
		}
		for _, secret := range secrets {
			if secret == "" {
				t.Fatal("an empty secret")
			}
			if strings.Contains(cmdline, secret) {
				t.Errorf("%s holds %q: %q", path, secret, cmdline)
			}
		}
	}
	if sessions < 2 { // ocp itself and the session
		t.Errorf("%d command lines of this proxy were looked at, want 2", sessions)
	}
}

func (p *proxy) checkLog(t *testing.T, secrets []string) {
	t.Helper()
	log := p.log.text()
	for _, secret := range secrets {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}
