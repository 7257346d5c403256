package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"

	"ocp/internal/messagesapi"
)

// gone bounds the end of a session behind its turn.
const gone = 30 * time.Second

// The canaries of one conversation.
const (
	promptCanary = "canary-prompt-4b8f"
	systemCanary = "canary-system-4b8f"
	answerCanary = "canary-answer-4b8f"
)

var conversationCanaries = []string{promptCanary, systemCanary, answerCanary}

// canaryConversation says all that must stay between the client and the model.
func canaryConversation() []openai.ChatCompletionMessageParamUnion {
	return []openai.ChatCompletionMessageParamUnion{
		openai.SystemMessage("Be brief, " + systemCanary), openai.UserMessage("Hello, " + promptCanary),
	}
}

// canaryAnswer is held by the gate after its first line.
func canaryAnswer(gate *messagesapi.Gate) messagesapi.Answer {
	return messagesapi.Answer{Parts: []messagesapi.Part{messagesapi.Text(answerCanary + " one\n\n" + answerCanary + " two\n")}, Gate: gate}
}

// halfAnswer starts a canary turn and returns when its first line has arrived; the rest
// waits for the gate.
func (p *proxy) halfAnswer(t *testing.T) (*answerStream, *messagesapi.Gate) {
	t.Helper()
	gate := messagesapi.NewGate()
	p.model.SetScript(messagesapi.Always(canaryAnswer(gate)))
	gate.Release() // before the stream is opened: its header comes with the first delta
	s := p.stream(withPatience(t), canaryConversation())
	if _, more := s.next(); !more {
		t.Fatalf("no first delta: %v", s.Err())
	}
	return s, gate
}

// leaky are variables of ocp's environment that no session may get, each with a value
// of its own that says so.
var leaky = []string{
	"SHELL", "ANTHROPIC_MODEL", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_BETAS", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_LOG",
	"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_MAX_RETRIES", "CLAUDE_CODE_EXTRA_BODY",
	"CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SIMPLE", "MAX_THINKING_TOKENS", "DISABLE_PROMPT_CACHING", "NODE_OPTIONS", "BUN_OPTIONS",
	"AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "UNRELATED", "GIT_DIR",
}

// passedOn are the variables of ocp's environment that sessions get.
var passedOn = []string{
	"PATH", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
	"ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// With a key in its environment, ocp leaves the operator's configuration alone, and
// nothing of the host gets into a session.
func TestHostDoesNotLeakIntoSessions(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		o := newOperator(t)
		o.write(t, o.credentials(), `{"claudeAiOauth":{"accessToken":""`) // broken, and no session's business
		before := snapshot(t, o.home)
		// Looked at again when ocp has ended.
		t.Cleanup(func() {
			compareSnapshots(t, before, snapshot(t, o.home), nil)
			if left := snapshot(t, o.temp); len(left) > 0 {
				t.Errorf("left in TMPDIR: %v", slices.Collect(maps.Keys(left)))
			}
		})
		env := o.environment("NAMED=canary-named", "ALSO_NAMED=canary-also", "TZ=Europe/Berlin", "USER=operator")
		for _, name := range leaky {
			env = append(env, name+"="+leak+"-"+name)
		}
		p := startProxy(t, c, proxyOptions{
			state: o.state, env: env, args: []string{"--pass-env", "NAMED,ALSO_NAMED,ABSENT"},
		})
		o.write(t, filepath.Join(o.state, "sessions", "CLAUDE.md"), "Always say "+leak)

		s, gate := p.halfAnswer(t)
		session := p.session(t)
		checkEnvironment(t, session.environ(t))
		for name, want := range map[string]string{"NAMED": "canary-named", "ALSO_NAMED": "canary-also", "TZ": "Europe/Berlin", "USER": "operator", "ANTHROPIC_API_KEY": apiKey} {
			if got := session.environ(t)[name]; got != want {
				t.Errorf("the session has %s=%q, want %q", name, got, want)
			}
		}
		gate.Open()
		s.mustReadAll(t)
		p.checkNoLeak(t, "X-Api-Key", apiKey)
		o.nothingRan(t)
		eventually(t, gone, "the session is gone", func() bool { return len(p.processes()) == 0 })
		compareSnapshots(t, before, snapshot(t, o.home), nil)
		_ = os.Remove(filepath.Join(o.state, "sessions", "CLAUDE.md"))
	})
}

// Without credentials in its environment, ocp's sessions use the operator's own login.
// Of the operator's files only .claude.json is written, by the CLI; no conversation and
// nothing that names a session stays.
func TestOperatorsLogin(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		o := newOperator(t)
		o.logIn(t)
		before := snapshot(t, o.home)
		var sessions []string
		check := func(ended bool) {
			t.Helper()
			compareSnapshots(t, before, snapshot(t, o.home), func(path string) bool { return o.expected(path, ended) })
			words := append(slices.Clone(conversationCanaries), sessions...)
			for _, path := range holding(t, words, o.home, o.state, o.temp) {
				// The CLI notes the last session of a folder beside its costs.
				if path != filepath.Join(o.home, ".claude.json") || len(holding(t, conversationCanaries, o.home)) > 0 {
					t.Errorf("something of a conversation or a session is left in %s", path)
				}
			}
		}
		t.Cleanup(func() { check(true) }) // when ocp has ended
		p := startProxy(t, c, proxyOptions{state: o.state, env: o.environment("ANTHROPIC_MODEL=" + leak), noKey: true})

		// One turn to its end, one whose client leaves, one that fails.
		s, gate := p.halfAnswer(t)
		checkEnvironment(t, p.session(t).environ(t))
		gate.Open()
		s.mustReadAll(t)
		s, _ = p.halfAnswer(t)
		_ = s.Close()
		p.model.SetScript(messagesapi.Always(messagesapi.ErrorAnswer(500, answerCanary)))
		if _, err := p.complete(withPatience(t), canaryConversation()); err == nil {
			t.Error("a failed turn was answered")
		}
		for _, turn := range p.model.Turns() {
			sessions = append(sessions, turn.Header.Get("X-Claude-Code-Session-Id"))
		}
		if len(sessions) != 3 {
			t.Errorf("%d turns, want 3", len(sessions))
		}
		p.checkNoLeak(t, "Authorization", "Bearer "+loginToken)
		o.nothingRan(t)
		eventually(t, gone, "the sessions are gone", func() bool { return len(p.processes())+len(p.sessionDirs()) == 0 })
		check(false)
		o.checkConfig(t, before)
	})
}

// expected reports whether the CLI may add or change a file of the operator's: its
// configuration, the backups it makes of that, and, until ocp ends, an empty memory
// folder for ocp's working directory.
func (o *operator) expected(path string, ended bool) bool {
	rel, _ := filepath.Rel(o.home, path)
	if slices.Contains([]string{".claude.json", ".claude/backups", ".claude/sessions", ".claude/session-env"}, rel) {
		return true
	}
	if strings.HasPrefix(rel, ".claude/backups/.claude.json.backup.") {
		return true
	}
	project := strings.TrimPrefix(rel, ".claude/projects/")
	return !ended && project != rel && strings.HasSuffix(strings.TrimSuffix(project, "/memory"), "-state-cwd")
}

// checkConfig checks what the CLI has made of .claude.json: it has added fields, and an
// entry for ocp's working directory.
func (o *operator) checkConfig(t *testing.T, before map[string]string) {
	t.Helper()
	path := filepath.Join(o.home, ".claude.json")
	var was, is map[string]any
	_, content, _ := strings.Cut(before[path], " ")
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &is)
	}
	if err := json.Unmarshal([]byte(content), &was); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatalf("the operator's .claude.json: %v", err)
	}
	for name, value := range was {
		if name != "numStartups" && name != "projects" && fmt.Sprint(is[name]) != fmt.Sprint(value) {
			t.Errorf("%s in .claude.json was %v, is %v", name, value, is[name])
		}
	}
	for dir := range is["projects"].(map[string]any) {
		if dir != "/somewhere" && dir != filepath.Join(o.state, "cwd") {
			t.Errorf(".claude.json has an entry for %s", dir)
		}
	}
}

// CLAUDE_CODE_SANDBOXED, which sessions with the operator's login have, changes nothing
// of what is sent.
func TestSandboxedChangesNothingUpstream(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		// What differs from session to session anyway.
		own := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{64}`)
		var sent [2]string
		for i, value := range []string{"", "1"} { // an empty value counts as unset
			p := startProxy(t, c, proxyOptions{env: []string{"CLAUDE_CODE_SANDBOXED=" + value}, args: []string{"--pass-env", "CLAUDE_CODE_SANDBOXED"}})
			if _, err := p.complete(withPatience(t), user("hello")); err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, r := range p.model.Requests() {
				fmt.Fprintf(&b, "%s %s\n", r.Method, r.Path)
				for _, name := range slices.Sorted(maps.Keys(r.Header)) {
					fmt.Fprintf(&b, "%s: %q\n", name, r.Header[name])
				}
				b.Write(r.Body)
			}
			sent[i] = own.ReplaceAllString(b.String(), "X")
		}
		if sent[0] != sent[1] {
			t.Errorf("without:\n%s\nwith:\n%s", sent[0], sent[1])
		}
	})
}

// checkEnvironment checks the whole environment of a session.
func checkEnvironment(t *testing.T, env map[string]string) {
	t.Helper()
	for name, value := range env {
		if strings.Contains(value, leak) {
			t.Errorf("%s of ocp's environment reaches the session", name)
		}
		if strings.HasPrefix(name, "ANTHROPIC_") && !slices.Contains(passedOn, name) || name == "CLAUDECODE" || name == "CLAUDE_CODE_ENTRYPOINT" {
			t.Errorf("the session has %s=%s", name, value)
		}
	}
	for name, want := range map[string]string{
		"CLAUDE_CODE_MAX_RETRIES": "0", "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
		"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_FEEDBACK_SURVEY": "1",
	} {
		if env[name] != want {
			t.Errorf("the session has %s=%q, want %q", name, env[name], want)
		}
	}
}

// checkNoLeak checks that nothing of the host is in any request, and what every turn's
// credentials are.
func (p *proxy) checkNoLeak(t *testing.T, header, want string) {
	t.Helper()
	for _, r := range p.model.Requests() {
		if strings.Contains(fmt.Sprint(r.Header), leak) || bytes.Contains(r.Body, []byte(leak)) || strings.Contains(r.Query, leak) {
			t.Errorf("the host leaks into %s %s: %v\n%s", r.Method, r.Path, r.Header, r.Body)
		}
	}
	for _, r := range p.model.Turns() {
		if got := r.Header.Get(header); got != want {
			t.Errorf("%s is %q, want %q", header, got, want)
		}
		request, err := r.Decode()
		if err != nil {
			t.Fatal(err)
		}
		compareMessages(t, request.Messages, []seenMessage{seen("user", "Hello, "+promptCanary)})
		compareSystem(t, request.System, "Be brief, "+systemCanary)
	}
}

// compareSnapshots reports every difference but the expected ones.
func compareSnapshots(t *testing.T, before, after map[string]string, expected func(path string) bool) {
	t.Helper()
	for path := range maps.All(before) {
		if _, there := after[path]; !there {
			t.Errorf("%s is gone", path)
		}
	}
	for path, content := range after {
		if was, there := before[path]; (!there || was != content) && (expected == nil || !expected(path)) {
			t.Errorf("%s was added or changed: %.300q, was %.300q", path, content, was)
		}
	}
}

// session is the one CLI process that runs now.
func (p *proxy) session(t *testing.T) process {
	t.Helper()
	var found []process
	for _, process := range p.processes() {
		if strings.Contains(process.cmdline, "--resume") {
			found = append(found, process)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d sessions run, want 1: %v", len(found), found)
	}
	return found[0]
}

// environ is the environment that the process was started with.
func (p process) environ(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", p.pid, "environ"))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for v := range strings.SplitSeq(strings.TrimRight(string(data), "\x00"), "\x00") {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	return env
}
