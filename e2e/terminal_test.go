package e2e

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"

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

// An operator sees what runs, and what a session shows, until they or the session leave.
func TestWatch(t *testing.T) {
	t.Parallel()
	c := clis[len(clis)-1]
	for _, terminal := range terminals {
		t.Run(terminal, func(t *testing.T) {
			t.Parallel()
			p, s, gate := halfway(t, c, onTerminal(terminal)...)
			list := p.watch(t)
			found := regexp.MustCompile(`(?m)^([0-9a-f]{8}) +running +\d+s +` + modelName + `$`).FindStringSubmatch(list.stdout)
			if list.code != 0 || found == nil {
				t.Fatalf("the list: %+v", list)
			}
			if unknown := p.watch(t, "nothing"); unknown.code != 1 || !strings.Contains(unknown.stdout, found[1]) || !strings.Contains(unknown.stderr, `"nothing"`) {
				t.Errorf("a session that is not there: %+v", unknown)
			}

			onScreen := p.watching(t, found[1][:6])
			screen, err := pty.StartWithSize(onScreen, &pty.Winsize{Rows: 40, Cols: 120})
			if err != nil {
				t.Fatal(err)
			}
			defer screen.Close()
			readTo(t, screen, "one")
			if _, err := screen.Write([]byte("typed\r\x03")); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, screen) // an error is the terminal's end
			if err := onScreen.Wait(); err != nil {
				t.Errorf("after Ctrl-C: %v", err)
			}

			aside := p.watching(t, found[1])
			out, err := aside.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := aside.Start(); err != nil {
				t.Fatal(err)
			}
			readTo(t, out, "one")
			gate.Open()
			if text := s.mustReadAll(t); text != "one\ntwo\n" {
				t.Error(difference(text, "one\ntwo\n"))
			}
			readTo(t, out, "Session "+found[1]+" has ended.\n")
			if err := aside.Wait(); err != nil {
				t.Errorf("at the session's end: %v", err)
			}
		})
	}
}

// watching is `ocp watch` of a session, begun from within a tmux.
func (p *proxy) watching(t *testing.T, session string) *exec.Cmd {
	cmd := exec.CommandContext(withPatience(t), ocpBinary, "watch", "--state-dir", p.state, session)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=xterm-256color", "TMUX=/tmp/none,1,0"}
	return cmd
}

func readTo(t *testing.T, r io.Reader, text string) {
	t.Helper()
	var read []byte
	for buf := make([]byte, 4096); !bytes.Contains(read, []byte(text)); {
		n, err := r.Read(buf)
		if read = append(read, buf[:n]...); err != nil && !bytes.Contains(read, []byte(text)) {
			t.Fatalf("it has ended and said %q", read)
		}
	}
}

func (p *proxy) watch(t *testing.T, session ...string) ran {
	return runOcp(t, nil, append([]string{"watch", "--state-dir", p.state}, session...)...)
}
