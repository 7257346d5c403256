package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"ocp/internal/claude"
	"ocp/internal/hook"
	"ocp/internal/messagesapi"
	"ocp/internal/terminal"
)

// spawned is a CLI that was started as somebody would start it by hand, with a prompt on
// its command line, before a scripted model.
type spawned struct {
	place    claude.Plain
	model    *messagesapi.Server
	tap      *tap // answers each call itself
	terminal *terminal.Terminal
}

// plainPrompt is what a spawned CLI is asked.
const plainPrompt = "Say some lines."

// spawn starts the CLI with hooks and further arguments and variables.
func (e *Env) spawn(dir string, answer messagesapi.Answer, args, env []string) (*spawned, error) {
	model, err := messagesapi.Start(messagesapi.Options{Script: messagesapi.Always(answer)})
	if err != nil {
		return nil, err
	}
	s := &spawned{model: model}
	if err := s.start(e, dir, args, env); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func mkdir(dir string) error { return os.Mkdir(dir, 0o700) }

func (s *spawned) start(e *Env, dir string, args, env []string) error {
	if err := s.settle(e, dir); err != nil {
		return err
	}
	var err error
	s.terminal, err = terminal.Start(terminal.Options{
		Path: e.CLI, Args: s.arguments(e, args), Env: append(s.place.Env, env...), Dir: s.place.Dir, Grace: -1,
	})
	return err
}

// settle makes all that the CLI needs around it.
func (s *spawned) settle(e *Env, dir string) error {
	var err error
	if s.tap, err = startTap(); err != nil {
		return err
	}
	s.tap.treat(goOn)
	s.place, err = claude.NewPlain(dir, e.scripted(s.model))
	return err
}

func (s *spawned) arguments(e *Env, args []string) []string {
	first := []string{"--model", e.model(), "--settings", plainSettings(s.tap.url()), "--name", "probe"}
	return append(append(first, args...), plainPrompt)
}

// commandLine is for a shell of another terminal's.
func (s *spawned) commandLine(e *Env, dir string) (string, error) {
	if err := s.settle(e, dir); err != nil {
		return "", err
	}
	words := append([]string{"exec", "env", "-i"}, s.place.Env...)
	words = append(append(words, e.CLI), s.arguments(e, []string{"--strict-mcp-config"})...)
	for i, w := range words[1:] {
		words[i+1] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return "cd '" + s.place.Dir + "' && " + strings.Join(words, " "), nil
}

// goOn answers a call as a hook that has nothing to say.
func goOn(context.Context, call, func(context.Context, []byte) (int, []byte)) (int, []byte) {
	return http.StatusOK, []byte("{}")
}

// plainSettings has the CLI call MessageDisplay and Stop hooks over http.
func plainSettings(url string) string {
	groups := []any{map[string]any{"hooks": []any{map[string]any{"type": "http", "url": url, "timeout": 10}}}}
	data, err := json.Marshal(map[string]any{"hooks": map[string]any{hook.MessageDisplay: groups, hook.Stop: groups}})
	if err != nil {
		panic(err) // maps of strings always marshal
	}
	return string(data)
}

// close ends the CLI and everything around it.
func (s *spawned) close() error {
	var err error
	if s.terminal != nil {
		err = s.terminal.Close()
	}
	if s.tap != nil {
		s.tap.close()
	}
	s.model.Close()
	return err
}

// answered waits until the screen shows the end of the answer, or the CLI has ended.
func (s *spawned) answered(ctx context.Context, end string) error {
	return s.shows(ctx, func(screen string) bool { return strings.Contains(screen, end) })
}

// screenEvery is how often a screen is looked at.
const screenEvery = 20 * time.Millisecond

func (s *spawned) shows(ctx context.Context, what func(screen string) bool) error {
	look := time.NewTicker(screenEvery)
	defer look.Stop()
	for !what(s.terminal.Screen()) {
		select {
		case <-look.C:
		case <-s.terminal.Done():
			if what(s.terminal.Screen()) {
				return nil
			}
			return fmt.Errorf("the CLI has ended: %s", s.terminal.Exit())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
