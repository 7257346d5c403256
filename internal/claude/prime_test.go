package claude

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"ocp/internal/claude/claudetest"
	"ocp/internal/prompt"
	"ocp/internal/turn"
)

// prime launches a session for a script.
func prime(t *testing.T, l *Launcher, script claudetest.Script) *Session {
	t.Helper()
	s, err := l.Prime(l.Key(prompt.Request{Model: script.Model()}))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A primed session waits, and then answers the conversation that it is given.
func TestPrimedSession(t *testing.T) {
	l := standinLauncher(t, nil)
	defer closeLauncher(t, l)
	s := prime(t, l, claudetest.Script{Steps: claudetest.Answer(pieces...)})
	<-s.Primed()
	if isClosed(s.Running()) || isClosed(s.Ended()) {
		t.Error("it does not wait")
	}
	if err := s.Give(t.Context(), question(claudetest.Script{}, marker).Conversation, turn.Pooled); err != nil {
		t.Fatal(err)
	}
	r := receive(t.Context(), t, s, nil)
	if r.text != wantText || r.finished == nil {
		t.Fatalf("got %q, %v", r.text, r.err)
	}
	stages := r.finished.Stages
	passed := []time.Time{stages.Spawned, stages.Given, stages.Taken, stages.Ready, stages.First, stages.Stopped, stages.Ended}
	for i, at := range passed {
		if at.IsZero() || i > 0 && at.Before(passed[i-1]) {
			t.Errorf("stage %d was not passed behind the one before: %+v", i, stages)
		}
	}
	if stages.Way != turn.Pooled || !isClosed(s.Running()) {
		t.Errorf("way %s, running %v", stages.Way, isClosed(s.Running()))
	}
	if s.Lasts() {
		t.Error("it lasts though sessions are not kept")
	}
	if err := s.Close(); err != nil || !isClosed(s.Ended()) {
		t.Errorf("close: %v", err)
	}
}

// A session that comes to nothing before it is given anything ends by itself, leaves
// nothing, says why, and can be given nothing.
func TestPrimedSessionComesToNothing(t *testing.T) {
	for name, test := range map[string]struct {
		steps []claudetest.Step
		says  string
	}{
		"it exits":            {steps(claudetest.Step{Do: claudetest.Exit, N: 3}), "exit code 3"},
		"it is killed":        {steps(claudetest.Step{Do: claudetest.Kill}), "killed"},
		"it does not come up": {steps(claudetest.Step{Do: claudetest.Deaf}, wait(time.Hour)), "not ready in time"},
		"it says why": {steps(claudetest.Step{Do: claudetest.Print, Text: "Unable to connect to Anthropic services"},
			claudetest.Step{Do: claudetest.Exit, N: 1}), "cannot connect"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			l := standinLauncher(t, func(o *Options) {
				o.StartTimeout = 2 * time.Second
				o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			})
			s := prime(t, l, claudetest.Script{Steps: test.steps})
			<-s.Ended()
			if !isClosed(s.Primed()) || !isClosed(s.Running()) {
				t.Error("who waits for it waits for ever")
			}
			if !strings.Contains(log.String(), test.says) {
				t.Errorf("the log does not say %q: %s", test.says, log.String())
			}
			err := s.Give(t.Context(), question(claudetest.Script{}, marker).Conversation, turn.Pooled)
			if r := receive(t.Context(), t, s, nil); err == nil || r.err == nil || r.err.Kind != turn.SessionFailed {
				t.Errorf("given: %v, %v", err, r.err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			closeLauncher(t, l)
		})
	}
}

// A session that waits ends at once when it is closed, deaf or not.
func TestPrimedSessionIsClosed(t *testing.T) {
	l := standinLauncher(t, nil)
	defer closeLauncher(t, l)
	s := prime(t, l, claudetest.Script{Steps: session(steps(claudetest.Step{Do: claudetest.Deaf}), claudetest.Boot())})
	<-s.Primed()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Give(t.Context(), question(claudetest.Script{}, marker).Conversation, turn.Pooled); err == nil {
		t.Error("it was given a conversation after Close")
	}
}

// One that dies just when it is given its conversation says so: another can have it.
func TestPrimedSessionDiesWhenGiven(t *testing.T) {
	l := standinLauncher(t, nil)
	defer closeLauncher(t, l)
	s := prime(t, l, claudetest.Script{Steps: claudetest.Answer(pieces...)})
	defer s.Close()
	<-s.Primed()
	s.terminal.Kill()
	<-s.terminal.Done()
	if err := s.Give(t.Context(), question(claudetest.Script{}, marker).Conversation, turn.Pooled); err == nil {
		t.Error("the dead took a conversation")
	}
}

// One that stops just before it is given its conversation is waited for no longer than its
// client waits.
func TestPrimedSessionStops(t *testing.T) {
	l := standinLauncher(t, nil)
	defer closeLauncher(t, l)
	s := prime(t, l, claudetest.Script{Steps: claudetest.Answer(pieces...)})
	defer s.Close()
	<-s.Primed()
	if err := syscall.Kill(s.terminal.Pid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	c := question(claudetest.Script{}, marker).Conversation
	c.System = strings.Repeat("s", 1<<20) // more than a FIFO holds
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.Give(ctx, c, turn.Pooled)
	if failed, ok := errors.AsType[*turn.Error](err); !ok || failed.Kind != turn.Canceled {
		t.Errorf("got %v", err)
	}
}
