package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ocp/internal/messagesapi"
)

// fourTurns runs a turn to its end, streamed and not, one whose client leaves in the
// middle, and one that fails.
func (p *proxy) fourTurns(t *testing.T) {
	t.Helper()
	s, gate := p.halfAnswer(t)
	gate.Open()
	s.mustReadAll(t)
	if _, err := p.complete(withPatience(t), canaryConversation()); err != nil {
		t.Fatal(err)
	}
	s, _ = p.halfAnswer(t)
	_ = s.Close()
	p.model.SetScript(messagesapi.Always(messagesapi.ErrorAnswer(500, answerCanary)))
	if _, err := p.complete(withPatience(t), canaryConversation()); err == nil {
		t.Error("a failed turn was answered")
	}
	eventually(t, gone, "the sessions are gone", func() bool { return len(p.processes())+len(p.sessionDirs()) == 0 })
}

// sessionIDs are the ids of all sessions that have asked upstream.
func (p *proxy) sessionIDs() (ids []string) {
	for _, turn := range p.model.Turns() {
		ids = append(ids, turn.Header.Get("X-Claude-Code-Session-Id"))
	}
	return ids
}

// Nothing of a conversation stays on disk behind its turn, however that ends.
func TestNothingStaysOnDisk(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		o := newOperator(t)
		p := startProxy(t, c, proxyOptions{state: o.state, env: o.environment()})
		p.fourTurns(t)
		if n := len(p.model.Turns()); n != 4 {
			t.Errorf("%d requests for 4 turns", n)
		}
		words := append(slices.Clone(conversationCanaries), p.sessionIDs()...)
		for _, path := range holding(t, words, o.home, o.state, o.temp) {
			t.Errorf("something of a turn is left in %s", path)
		}
		// Where the CLI puts temporary files if it does not heed TMPDIR.
		name := strings.NewReplacer("/", "-", ".", "-").Replace(o.work)
		if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "claude-*", name+"*")); len(left) > 0 {
			t.Errorf("left outside of the session's folder: %v", left)
		}
	})
}

// With --keep-transcripts there is one file for each turn, which only its owner can
// read.
func TestKeptTranscripts(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		o := newOperator(t)
		var want []string
		check := func() {
			t.Helper()
			dir := filepath.Join(o.state, "transcripts")
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("folder of the transcripts: %v, %v", info, err)
			}
			var got []string
			for path, content := range snapshot(t, dir) {
				got = append(got, filepath.Base(path))
				if mode, text, _ := strings.Cut(content, " "); mode != "-rw-------" || !strings.Contains(text, promptCanary) {
					t.Errorf("%s: mode %s, holds the prompt: %t", path, mode, strings.Contains(text, promptCanary))
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("transcripts kept: %q, want %q", got, want)
			}
		}
		t.Cleanup(check) // when ocp has ended
		p := startProxy(t, c, proxyOptions{state: o.state, env: o.environment(), args: []string{"--keep-transcripts"}})
		p.fourTurns(t)
		for _, id := range p.sessionIDs() {
			want = append(want, id+".jsonl")
		}
		slices.Sort(want)
		check()
		for _, path := range holding(t, conversationCanaries, o.home, o.temp, filepath.Join(o.state, "sessions")) {
			t.Errorf("something of a turn is left in %s", path)
		}
	})
}

// While a turn runs, what holds a secret or a text of the conversation can be read by
// its owner alone.
func TestFilesOfARunningTurnArePrivate(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		o := newOperator(t)
		p := startProxy(t, c, proxyOptions{state: o.state, env: o.environment()})
		s, gate := p.halfAnswer(t)
		secret := p.session(t).environ(t)["OCP_HOOK_SECRET"]
		words := append(slices.Clone(conversationCanaries), apiKey, apiKey[len(apiKey)-20:], secret)
		if secret == "" {
			t.Fatal("the session has no hook secret")
		}
		found := holding(t, words, o.home, o.state, o.temp)
		if len(found) == 0 {
			t.Error("no file holds the conversation: the test looks at the wrong place")
		}
		for _, path := range found {
			if !strings.HasPrefix(path, filepath.Join(o.state, "sessions")+"/") {
				t.Errorf("%s holds a secret or a text", path)
			}
			checkMode(t, path, 0o600)
		}
		// The folders that ocp makes; the CLI's own are below them.
		session := filepath.Join(o.state, "sessions", p.sessionDirs()[0])
		for _, dir := range []string{o.state, filepath.Dir(session), session} {
			checkMode(t, dir, 0o700)
		}
		for _, name := range []string{"home", "cwd", "tmp", "config", "config/projects"} {
			checkMode(t, filepath.Join(session, name), 0o700)
		}
		gate.Open()
		s.mustReadAll(t)
	})
}

func checkMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	if info, err := os.Lstat(path); err != nil {
		t.Error(err)
	} else if got := info.Mode().Perm(); got != want {
		t.Errorf("%s has mode %v, want %v", path, got, want)
	}
}
