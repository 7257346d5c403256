package claudetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"ocp/internal/hook"
)

const (
	// maxInFlight is how many hook calls of one message the CLI has under way at most.
	maxInFlight = 3
	// defaultTimeout is what the CLI gives a MessageDisplay hook that names none.
	defaultTimeout = 10 * time.Second
)

// hooks are the hooks of the settings, by event.
type hooks map[string][]hookConfig

type hookConfig struct {
	Type           string            `json:"type"`
	Command        string            `json:"command"`
	URL            string            `json:"url"`
	Headers        map[string]string `json:"headers"`
	AllowedEnvVars []string          `json:"allowedEnvVars"`
	Timeout        float64           `json:"timeout"` // seconds
}

// loadHooks reads --settings, which is a path or the JSON itself.
func loadHooks(settings string) (hooks, error) {
	data := []byte(settings)
	if !strings.HasPrefix(strings.TrimSpace(settings), "{") {
		var err error
		if data, err = os.ReadFile(settings); err != nil {
			return nil, fmt.Errorf("settings: %w", err)
		}
	}
	var parsed struct {
		DisableAllHooks bool                                      `json:"disableAllHooks"`
		Hooks           map[string][]struct{ Hooks []hookConfig } `json:"hooks"`
	}
	if err := json.Unmarshal(data, &parsed); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	all := hooks{}
	if parsed.DisableAllHooks {
		return all, nil
	}
	for event, groups := range parsed.Hooks {
		for _, group := range groups {
			all[event] = append(all[event], group.Hooks...)
		}
	}
	return all, nil
}

// run runs all hooks of an event at once, and returns when each has answered or was
// given up. What they answer, and whether, changes nothing, but that one can block a
// prompt, for a reason.
func (h hooks) run(event string, payload map[string]any) (reason string, blocked bool) {
	body, err := json.Marshal(payload)
	if err != nil {
		panic(fmt.Sprintf("claudetest: %v", err)) // maps of strings and numbers always marshal
	}
	var calls sync.WaitGroup
	var blocks atomic.Pointer[string]
	for _, config := range h[event] {
		// The CLI never delivers SessionStart over HTTP.
		if config.Type == "http" && event == hook.SessionStart {
			continue
		}
		calls.Go(func() {
			var answer struct{ Decision, Reason string }
			if _ = json.Unmarshal(config.run(body), &answer); answer.Decision == "block" {
				blocks.Store(&answer.Reason)
			}
		})
	}
	calls.Wait()
	if why := blocks.Load(); why != nil {
		return *why, true
	}
	return "", false
}

// run returns what the hook has answered.
func (c hookConfig) run(body []byte) (answer []byte) {
	timeout := time.Duration(c.Timeout * float64(time.Second))
	if timeout == 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	switch c.Type {
	case "command":
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", c.Command)
		cmd.Stdin = bytes.NewReader(body)
		answer, _ = cmd.Output()
	case "http":
		answer, _ = c.post(ctx, body)
	}
	return answer
}

func (c hookConfig) post(ctx context.Context, body []byte) (answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "axios/1.0.0")
	for name, value := range c.Headers {
		req.Header.Set(name, c.expand(value))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

var variable = regexp.MustCompile(`\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?`)

// expand replaces the variables that the hook may see by their values, and others by
// nothing.
func (c hookConfig) expand(value string) string {
	return variable.ReplaceAllStringFunc(value, func(found string) string {
		name := variable.FindStringSubmatch(found)[1]
		if !slices.Contains(c.AllowedEnvVars, name) {
			return ""
		}
		return os.Getenv(name)
	})
}

// isCall reports whether the step is a hook call.
func (step Step) isCall() bool {
	switch step.Do {
	case SessionStart, Display, Stop, StopFailure:
		return true
	}
	return false
}

// isOfTurn reports whether the step is something that the CLI does in a turn alone.
func (step Step) isOfTurn() bool {
	return step.Do == Ask || step.isRecord() || step.isCall() && step.Do != SessionStart
}

// isOfBoot reports whether the step is of a boot into a conversation that is resumed.
func (step Step) isOfBoot() bool {
	return step.Do == ReadSystem || step.Do == Resume || step.Do == SessionStart
}

// payload is a hook call's event and fields. Only in a turn whose prompt was typed do they
// have a prompt_id.
func (s *standin) payload(step Step, text string) (event string, fields map[string]any) {
	session := s.options["--resume"]
	if step.Session != "" {
		session = step.Session
	}
	switch step.Do {
	case SessionStart:
		return hook.SessionStart, s.common(hook.SessionStart, session, map[string]any{"source": "resume"})
	case Display:
		return hook.MessageDisplay, s.common(hook.MessageDisplay, session, map[string]any{
			"turn_id": s.turn, "message_id": s.id(step.Message), "index": step.Index, "final": step.Final, "delta": text,
		})
	case Stop:
		fields := map[string]any{"permission_mode": "default", "stop_hook_active": false}
		if text := trimJS(text); text != "" {
			fields["last_assistant_message"] = text
		}
		return hook.Stop, s.common(hook.Stop, session, fields)
	default:
		return hook.StopFailure, s.common(hook.StopFailure, session, map[string]any{
			"error": step.Reason, "last_assistant_message": text,
		})
	}
}

// common adds what every payload has.
func (s *standin) common(event, session string, fields map[string]any) map[string]any {
	fields["hook_event_name"] = event
	fields["session_id"] = session
	fields["transcript_path"] = s.path
	fields["cwd"] = s.cwd
	if event != "SessionEnd" && s.promptID != "" { // obey says SessionEnd while the script runs
		fields["prompt_id"] = s.promptID
	}
	return fields
}

// id is the id of a message's deltas, which is neither the API's nor the transcript's.
func (s *standin) id(message string) string {
	if s.ids[message] == "" {
		s.ids[message] = newID()
	}
	return s.ids[message]
}

// trimJS trims as the CLI does, as far as scripts need it.
func trimJS(s string) string { return strings.Trim(s, " \t\r\n\v\f\u00a0\ufeff\u2028\u2029") }

func newID() string { return uuid.NewString() }
