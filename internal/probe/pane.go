package probe

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ocp/internal/messagesapi"
)

// twoSources are different texts, which differ in what a client would show differently.
var twoSources = [2]string{
	"# Heading\n\nSome **bold** text, *slanted*.\n\n```go\nx := 1\n```\n\n* one\n* two\n\nThe end",
	"## Heading\n\nSome __bold__ text, _slanted_.\n\n```python\nx := 1\n```\n\n- one\n- two\n\nThe end",
}

// marksOfSource are the tokens that must be there if a pane is to give the text.
var marksOfSource = []struct{ name, mark string }{{"heading mark", "# "}, {"bold", "**"}, {"fence and language", "```go"}, {"bullet", "* "}}

func paneProbes() []probe {
	const use = "never takes text from the screen"
	return []probe{
		{name: "pane", run: probePane, claims: []Claim{
			{ID: "banner", Text: "the screen names the model, and where the account's plan would stand", Use: "nothing: the screen is never read for text"},
			{ID: "pane-lossy", DeadEnd: true, Text: "the screen has not the marks of the model's Markdown", Use: use},
			{ID: "pane-ambiguous", DeadEnd: true, Text: "different Markdown gives the same screen, so that there is no way back", Use: use},
		}},
		{name: "pane-tmux", run: probeTmux, claims: []Claim{
			{ID: "pane-tmux", DeadEnd: true, Text: "tmux capture-pane, plain or with attributes, has not the marks either", Use: use},
		}},
	}
}

func probePane(ctx context.Context, e *Env, dir string) (seen, error) {
	var screens [2]string
	for i, text := range twoSources {
		place := filepath.Join(dir, fmt.Sprint(i))
		if err := mkdir(place); err != nil {
			return nil, err
		}
		s, err := e.spawn(place, messagesapi.TextAnswer(text), []string{"--strict-mcp-config"}, nil)
		if err != nil {
			return nil, err
		}
		err = s.answered(ctx, "The end")
		screens[i] = s.terminal.Screen()
		if err := errors.Join(err, s.close()); err != nil {
			return nil, err
		}
	}
	return judgePane(screens), nil
}

// judgePane says what the screens of the two sources prove.
func judgePane(screens [2]string) seen {
	found := seen{}
	banner := bannerLine(screens[0])
	found.say("banner", banner != "", "%q", banner)
	shown, other := answerOn(screens[0]), answerOn(screens[1])
	kept, evidence := marksOn(shown)
	found.say("pane-lossy", kept < len(marksOfSource) && shown != "", "%s", evidence)
	found.say("pane-ambiguous", shown != "" && shown == other,
		"two sources that differ in heading, emphasis, language and bullets: the same %d lines", strings.Count(shown, "\n")+1)
	return found
}

// answerOn is what a screen shows of the answer, from its first line to its last.
func answerOn(screen string) string {
	start, end := strings.Index(screen, "Heading"), strings.LastIndex(screen, "The end")
	if start < 0 || end < start {
		return ""
	}
	start = strings.LastIndex(screen[:start], "\n") + 1
	return screen[start : end+len("The end")]
}

func marksOn(shown string) (kept int, evidence string) {
	var list []string
	for _, m := range marksOfSource {
		what := "lost"
		if strings.Contains(shown, m.mark) {
			what = "kept"
			kept++
		}
		list = append(list, m.name+": "+what)
	}
	return kept, strings.Join(list, ", ")
}

// bannerLine is the line of the banner that has the model and, behind a dot, the plan or
// how the account is billed.
func bannerLine(screen string) string {
	for line := range strings.Lines(screen) {
		line = strings.Trim(strings.TrimSpace(line), "│╭╮╰╯▐▛▜▌▝▘▀▄█ ")
		if strings.Contains(line, " · ") {
			return line
		}
	}
	return ""
}

func probeTmux(ctx context.Context, e *Env, dir string) (found seen, err error) {
	found = seen{}
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		found.skip("pane-tmux", "there is no tmux")
		return found, nil
	}
	model, err := messagesapi.Start(messagesapi.Options{Script: messagesapi.Always(messagesapi.TextAnswer(twoSources[0]))})
	if err != nil {
		return nil, err
	}
	s := &spawned{model: model}
	defer func() { err = errors.Join(err, s.close()) }()
	command, err := s.commandLine(e, dir)
	if err != nil {
		return nil, err
	}
	// A server of its own: the operator's is never spoken to.
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, tmux, append([]string{"-S", filepath.Join(dir, "tmux"), "-f", "/dev/null"}, args...)...)
		cmd.Env = []string{"PATH=" + e.Path, "TERM=xterm-256color", "LANG=C.UTF-8", "HOME=" + dir}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("new-session", "-d", "-x", "100", "-y", "30", command); err != nil {
		return nil, fmt.Errorf("tmux: %w: %s", err, out)
	}
	pane, _ := run("display-message", "-p", "#{pane_pid}")
	defer func() {
		// A CLI that has only lost its terminal goes on for a while, and writes into dir.
		if pid, err := strconv.Atoi(strings.TrimSpace(pane)); err == nil && pid > 1 {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
		stop := exec.Command(tmux, "-S", filepath.Join(dir, "tmux"), "kill-server")
		_ = stop.Run() // it ends by itself with its program
	}()
	look := time.NewTicker(5 * screenEvery)
	defer look.Stop()
	plain := ""
	for !strings.Contains(plain, "The end") {
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if plain, err = run("capture-pane", "-p"); err != nil {
			return nil, fmt.Errorf("tmux: %w: %s", err, plain)
		}
	}
	attributes, err := run("capture-pane", "-p", "-e")
	if err != nil {
		return nil, fmt.Errorf("tmux: %w: %s", err, attributes)
	}
	inPlain, evidence := marksOn(answerOn(plain))
	inBoth, withAttributes := marksOn(answerOn(attributes))
	found.say("pane-tmux", max(inPlain, inBoth) < len(marksOfSource), "-p: %s; -e: %s", evidence, withAttributes)
	return found, nil
}
