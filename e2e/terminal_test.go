package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ocp/internal/messagesapi"
)

// terminals are what sessions can run under.
var terminals = []string{"pty", "tmux"}

// onTerminal is the flag for one.
func onTerminal(name string) []string { return []string{"--terminal", name} }

// What must hold of answers holds with sessions in panes of tmux too, and the operator's
// own tmux, in which ocp was started, has no part in it.
func TestTmux(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		own := newOwnTmux(t)
		p := startProxy(t, c, proxyOptions{args: onTerminal("tmux"), env: own.env, ahead: true})
		for _, name := range []string{"hello", "crlf", "emoji"} {
			scenario, ok := messagesapi.FindScenario(name)
			if !ok {
				t.Fatal("no such scenario")
			}
			p.model.SetScript(scenario.Script)
			if got := p.stream(withPatience(t), user("go")).mustReadAll(t); got != scenario.Text {
				t.Errorf("%s, streamed: %s", name, difference(got, scenario.Text))
			}
			whole, err := p.complete(withPatience(t), user("go"))
			if err != nil {
				t.Fatal(err)
			}
			if got := whole.Choices[0].Message.Content; got != scenario.Text {
				t.Errorf("%s, not streamed: %s", name, difference(got, scenario.Text))
			}
		}
		p.model.SetScript(messagesapi.ByPrompt(saidTo))
		k := &talk{p: p}
		first := k.say(t, "!first, with\ttabs")
		if again := k.say(t, "And then? Größe: 漢字, emoji 😀"); again != first && !strings.Contains(p.log.text(), "could not go on") {
			t.Error("the conversation did not go on in its session")
		}
		for _, pid := range p.sessionsOf(c) {
			if environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ")); err == nil && bytes.Contains(environ, []byte("TMUX")) {
				t.Errorf("a session's environment tells of tmux: %q", environ)
			}
		}
		own.check(t)
	})
}

// ownTmux is a tmux server such as the operator may have.
type ownTmux struct{ env []string }

func newOwnTmux(t *testing.T) ownTmux {
	t.Helper()
	dir, err := os.MkdirTemp("", "ocp-own-") // short, for its socket
	if err != nil {
		t.Fatal(err)
	}
	o := ownTmux{env: []string{"TMUX_TMPDIR=" + dir}}
	o.run(t, "-f", "/dev/null", "new-session", "-d", "-s", "own", "sleep 1000")
	t.Cleanup(func() {
		o.run(t, "kill-server")
		os.RemoveAll(dir)
	})
	o.env = append(o.env, "TMUX="+o.run(t, "display-message", "-p", "#{socket_path},#{pid},0"), "TMUX_PANE=%0")
	return o
}

func (o ownTmux) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("tmux", args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, o.env[:1]...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("tmux %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (o ownTmux) check(t *testing.T) {
	t.Helper()
	if got := o.run(t, "list-panes", "-a", "-F", "#{session_name} #{pane_current_command}"); got != "own sleep" {
		t.Errorf("the operator's own tmux shows %q", got)
	}
}
