package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ocp/internal/messagesapi"
)

// Keys of the store are clients of their own: none goes on in another's session, each has
// its limits, and what each has used is told while the server runs.
func TestKeysOfTheStore(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		state := "--state-dir=" + filepath.Join(t.TempDir(), "state")
		add := func(args ...string) string {
			t.Helper()
			got := runOcp(t, nil, append([]string{"keys", "add", state}, args...)...)
			if got.code != 0 || !strings.HasPrefix(got.stdout, "sk-ocp-") {
				t.Fatalf("%+v", got)
			}
			return strings.TrimSpace(got.stdout)
		}
		keyA, keyB := add("a"), add("b", "--tokens-per-day=1")
		p := startProxy(t, c, proxyOptions{ahead: true, state: strings.TrimPrefix(state, "--state-dir="), script: messagesapi.ByPrompt(saidTo)})
		a, b := &talk{p: p, key: keyA}, &talk{p: p, key: keyB}
		first := a.say(t, "Hello.")
		b.messages = slices.Clone(a.messages)
		if b.say(t, "And then?") == first {
			t.Error("a client goes on in another's session")
		}
		a.say(t, "What else?")
		if _, _, err := b.send(withPatience(t), "Once more."); err == nil || !strings.Contains(err.Error(), "429") || !strings.Contains(err.Error(), "1 tokens a day") {
			t.Errorf("beyond its tokens a client gets %v", err)
		}

		var usage struct {
			Lines []struct {
				Name     string
				Outcomes map[string]int
				Output   int `json:"output_tokens"`
			}
		}
		eventually(t, gone, "the usage is written", func() bool {
			got := runOcp(t, nil, "usage", state, "--json")
			if err := json.Unmarshal([]byte(got.stdout), &usage); err != nil {
				t.Fatalf("%v in %+v", err, got)
			}
			return len(usage.Lines) == 2 && usage.Lines[0].Outcomes["ok"] == 2 && usage.Lines[1].Outcomes["limited"] == 1
		})
		for _, line := range usage.Lines {
			if line.Output == 0 {
				t.Errorf("no tokens of %s are counted", line.Name)
			}
		}
		secrets := []string{keyA, keyB}
		p.checkLog(t, secrets)
		for path, content := range snapshot(t, p.state) {
			if stored := strings.HasPrefix(filepath.Base(path), "ocp.db"); stored && (!strings.HasPrefix(content, "-rw------- ") || strings.Contains(content, "Hello.")) {
				t.Errorf("%s is open to others, or holds text of a conversation: %.10s", path, content)
			}
			for _, secret := range secrets {
				if strings.Contains(content, secret) {
					t.Errorf("%s holds %q", path, secret)
				}
			}
		}
	})
}
