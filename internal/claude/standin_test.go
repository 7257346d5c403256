package claude

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ocp/internal/claude/claudetest"
	"ocp/internal/prompt"
	"ocp/internal/turn"
)

// standinLauncher is a launcher whose CLI is the stand-in. It must be closed.
func standinLauncher(t *testing.T, change func(*Options)) *Launcher {
	t.Helper()
	o := Options{
		Path:        claudetest.Path(),
		HookCommand: claudetest.HookCommand(), EditorCommand: editorCommand(),
		StateDir: filepath.Join(t.TempDir(), "state"),
		Env:      []string{"PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=sk-ant-of-a-test"},
		// Far beyond a test's end: where a session fails, it is not for this.
		StartTimeout:  time.Hour,
		TakeUpTimeout: time.Hour,
		QuietBound:    500 * time.Millisecond,
	}
	if change != nil {
		change(&o)
	}
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// closeLauncher checks that nothing of the sessions is left, on disk or running.
func closeLauncher(t *testing.T, l *Launcher) {
	t.Helper()
	if left, err := filepath.Glob(filepath.Join(l.state.sessions(), "*")); err != nil || len(left) > 0 {
		t.Errorf("sessions have left files: %q, %v", left, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	noProcesses(t, l.state.root)
}

// noProcesses waits until no process runs whose environment names the state directory.
// A killed process takes a moment, and nothing announces the end of one that is not our
// child.
func noProcesses(t *testing.T, root string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		left := processesOf(root)
		if len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("processes are left: %q", left)
		}
	}
}

func processesOf(root string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if env, err := os.ReadFile(file); err == nil && bytes.Contains(env, []byte(root)) {
			cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			found = append(found, string(bytes.ReplaceAll(cmdline, []byte{0}, []byte(" "))))
		}
	}
	return found
}

// result is what came of a turn.
type result struct {
	started  bool
	verified bool // Verifying came
	text     string
	finished *turn.Finished
	err      *turn.Error
}

// question is a request with a script and a last message.
func question(script claudetest.Script, text string) prompt.Request {
	return prompt.Request{Model: script.Model(), Conversation: prompt.Conversation{
		System: "a system text",
		Messages: []prompt.Message{
			{Role: prompt.User, Content: []prompt.Block{prompt.Text("an earlier question")}},
			{Role: prompt.Assistant, Content: []prompt.Block{prompt.Text("an earlier answer")}},
			{Role: prompt.User, Content: []prompt.Block{prompt.Text(text)}},
		},
	}}
}

// receive takes a session's events until its turn is over. Each is shown to observe
// first, if there is one.
func receive(ctx context.Context, t *testing.T, s *Session, observe func(turn.Event)) result {
	var r result
	for {
		event, err := s.Next(ctx)
		if err != nil {
			if !errors.As(err, &r.err) {
				t.Errorf("an untyped error: %v", err)
			}
			return r
		}
		if observe != nil {
			observe(event)
		}
		switch e := event.(type) {
		case turn.Started:
			r.started = true
		case turn.Verifying:
			r.verified = true
		case turn.Delta:
			r.text += e.Text
		case turn.Finished:
			r.finished = &e
			return r
		}
	}
}

// startTurn gives a request to a session that is launched for it.
func startTurn(l *Launcher, req prompt.Request) (*Session, error) {
	s, err := l.Prime(l.Key(req))
	if err != nil {
		return nil, err
	}
	_ = s.Give(context.Background(), req.Conversation, turn.Cold) // Next tells it too
	return s, nil
}

// patience is how long a turn is waited for, which is never what a test is about.
const patience = 2 * time.Minute

// perform runs one scripted turn in a session of its own, and closes it.
func perform(t *testing.T, l *Launcher, script claudetest.Script, text string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := startTurn(l, question(script, text))
	if err != nil {
		t.Fatal(err)
	}
	r := receive(ctx, t, s, nil)
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	return r
}

// The pieces of the answer that most scripts give.
var pieces = []string{"one {prompt}\n", "two {system}\n", "\tthree 👩‍👧\n", "\nfour\n", "five, without an end"}

const marker = "marker-4711"

var (
	wholeText = strings.Join(pieces, "")
	wantText  = strings.NewReplacer("{prompt}", marker, "{system}", "a system text").Replace(wholeText)
	wantSome  = "one " + marker + "\ntwo a system text\n\tthree 👩‍👧\n" // of the first three
)

// session joins the parts of a script.
func session(parts ...[]claudetest.Step) []claudetest.Step { return slices.Concat(parts...) }

func steps(list ...claudetest.Step) []claudetest.Step { return list }

// stopNow is a Stop that fits the answer.
func stopNow() claudetest.Step { return claudetest.Step{Do: claudetest.Stop, Text: wholeText} }

func record() claudetest.Step { return claudetest.Record("m", wholeText) }

func wait(d time.Duration) claudetest.Step { return claudetest.Step{Do: claudetest.Wait, After: d} }

// deltas are the answer's hook calls, changed one by one.
func deltas(change func(i int, call *claudetest.Step)) []claudetest.Step {
	calls := claudetest.Deltas("m", pieces...)
	for i := range calls {
		change(i, &calls[i])
	}
	return calls
}

// pick reorders the answer's hook calls; an index may be left out or be there twice.
func pick(order ...int) []claudetest.Step {
	calls := claudetest.Deltas("m", pieces...)
	picked := make([]claudetest.Step, len(order))
	for i, from := range order {
		picked[i] = calls[from]
	}
	return picked
}

// together runs a subtest for each of tests, all at once: they wait much and work little.
func together[T any](t *testing.T, tests map[string]T, run func(t *testing.T, test T)) {
	var running sync.WaitGroup
	for name, test := range tests {
		running.Go(func() { t.Run(name, func(t *testing.T) { run(t, test) }) })
	}
	running.Wait()
}

// noInput checks that the stand-in has received no byte on its terminal.
func noInput(t *testing.T, path string) {
	t.Helper()
	if got, err := os.ReadFile(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the session was sent keys: %q, %v", got, err)
	}
}

// What the stand-in does by itself.
func TestStandin(t *testing.T) {
	l := standinLauncher(t, nil)
	defer closeLauncher(t, l)
	t.Run("version", func(t *testing.T) {
		got, err := Version(t.Context(), claudetest.Path())
		if err != nil || got != claudetest.Version {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("an answer without a script", func(t *testing.T) {
		req := question(claudetest.Script{}, "hello")
		req.Model = "opus"
		s, err := startTurn(l, req)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if r := receive(t.Context(), t, s, nil); r.text != "You said:\nhello" {
			t.Errorf("got %q, %v", r.text, r.err)
		}
	})
}
