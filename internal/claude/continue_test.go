package claude

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ocp/internal/claude/claudetest"
	"ocp/internal/prompt"
	"ocp/internal/turn"
)

// lasting is a session of the stand-in that has answered and lasts, and its conversation.
func lasting(ctx context.Context, t *testing.T, l *Launcher, more ...claudetest.Step) (*Session, prompt.Conversation) {
	t.Helper()
	script := claudetest.Script{Steps: session(claudetest.Answer("You said:\n", "{prompt}"), more)}
	c := question(script, "a question").Conversation
	s := prime(t, l, script)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Give(t.Context(), c, turn.Pooled); err != nil {
		t.Fatal(err)
	}
	if r := receive(ctx, t, s, nil); r.text != "You said:\na question" || !s.Lasts() {
		t.Fatalf("got %q, %v; lasts: %v", r.text, r.err, s.Lasts())
	}
	return s, c
}

// with is the conversation with an answer and one more message.
func with(c prompt.Conversation, answer, text string) prompt.Conversation {
	c.Messages = append(slices.Clone(c.Messages),
		prompt.Message{Role: prompt.Assistant, Content: []prompt.Block{prompt.Text(answer)}},
		prompt.Message{Role: prompt.User, Content: []prompt.Block{prompt.Text(text)}})
	return c
}

func keeping(t *testing.T) *Launcher {
	l := standinLauncher(t, func(o *Options) { o.KeepSessions, o.Version = true, claudetest.Version })
	t.Cleanup(func() { closeLauncher(t, l) })
	return l
}

// A conversation goes on in its session, several times.
func TestContinue(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l := keeping(t)
	s, c := lasting(ctx, t, l, session(claudetest.Reply("m2", "Then:\n", "{prompt}"), claudetest.Reply("m3", "Last:\n", "{prompt}"))...)
	answer := "You said:\na question"
	for _, test := range []struct{ text, answer string }{
		{"a second one", "Then:\na second one"},
		{"three\n\n  lines\nof it", "Last:\nthree\n\n  lines\nof it"},
	} {
		c = with(c, answer, test.text)
		if !l.Types(prompt.Request{Conversation: c}) {
			t.Fatalf("%q may not be typed", test.text)
		}
		if err := s.Continue(ctx, c); err != nil {
			t.Fatal(err)
		}
		r := receive(ctx, t, s, nil)
		if r.text != test.answer || r.finished == nil || !r.started || !r.verified || !s.Lasts() {
			t.Fatalf("got %q, %v; started: %v, verified: %v, lasts: %v", r.text, r.err, r.started, r.verified, s.Lasts())
		}
		answer = r.text
	}
}

// A text that the box changes after all reaches no model: the session is given up, and
// says so.
func TestContinueWithAnotherText(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l := keeping(t)
	s, c := lasting(ctx, t, l, claudetest.Reply("m2", "{prompt}")...)
	c = with(c, "You said:\na question", "tab\there")
	if l.Types(prompt.Request{Conversation: c}) {
		t.Error("it may be typed")
	}
	err := s.Continue(ctx, c)
	if !errors.Is(err, errOtherText) {
		t.Errorf("got %v", err)
	}
	if r := receive(ctx, t, s, nil); r.err == nil || r.text != "" {
		t.Errorf("got %q, %v", r.text, r.err)
	}
}

// Nothing is typed without an editor, nor where the CLI would keep it in the operator's
// configuration.
func TestNothingIsTyped(t *testing.T) {
	c := with(question(claudetest.Script{}, "a question").Conversation, "an answer", "a text")
	for name, change := range map[string]func(o *Options){
		"no editor":            func(o *Options) { o.EditorCommand = nil },
		"an editor's path":     func(o *Options) { o.EditorCommand = []string{"/a b/ocp", "editor"} },
		"another CLI":          func(o *Options) { o.Version = "2.1.333" },
		"the operator's login": func(o *Options) { o.Env = []string{"HOME=" + t.TempDir()} },
		"no keeping":           func(o *Options) { o.KeepSessions = false },
	} {
		l := standinLauncher(t, func(o *Options) {
			o.KeepSessions, o.Version = true, claudetest.Version
			change(o)
		})
		if l.Types(prompt.Request{Conversation: c}) {
			t.Errorf("%s: it may be typed", name)
		}
		closeLauncher(t, l)
	}
}

// The bound of a session's start is none of a later turn's, however late that begins.
func TestContinueBeyondTheStart(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const bound = 5 * time.Second
	l := standinLauncher(t, func(o *Options) {
		o.KeepSessions, o.Version, o.StartTimeout = true, claudetest.Version, bound
	})
	t.Cleanup(func() { closeLauncher(t, l) })
	more := claudetest.Reply("m2", "{prompt}")
	more[1].After = bound // the upstream takes its time
	s, c := lasting(ctx, t, l, more...)
	if err := s.Continue(ctx, with(c, "You said:\na question", "a second one")); err != nil {
		t.Fatal(err)
	}
	if r := receive(ctx, t, s, nil); r.text != "a second one" || r.finished == nil {
		t.Errorf("got %q, %v", r.text, r.err)
	}
}

// A session whose transcript cannot be followed any more does not wait to be asked again:
// its next answer could not be checked.
func TestNoTranscriptToContinue(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l := keeping(t)
	s, c := lasting(ctx, t, l, claudetest.Reply("m2", "{prompt}")...)
	<-s.running.rests
	if err := os.Truncate(s.place.transcript, 0); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Ended():
	case <-ctx.Done():
		t.Fatal("the session goes on")
	}
	if err := s.Continue(ctx, with(c, "You said:\na question", "a second one")); err == nil {
		t.Error("it has taken a text")
	}
}

// A session does not wait to be asked again if the CLI would leave something of its answer
// out of the conversation.
func TestNoPartOfAnAnswerIsForgotten(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l := keeping(t)
	for name, blocks := range map[string][]string{
		"an answer that it takes for none": {" (no content)\n"},
		"a block of white space":           {"\n", "an answer"},
	} {
		answer := strings.Join(blocks, "")
		steps := session(claudetest.Boot(), claudetest.Deltas("m", answer), steps(claudetest.Step{Do: claudetest.Stop, Text: blocks[len(blocks)-1]}))
		for _, block := range blocks {
			steps = append(steps, claudetest.Record("m", block))
		}
		script := claudetest.Script{Steps: append(steps, claudetest.End()...)}
		s := prime(t, l, script)
		c := question(script, "a question").Conversation
		if err := s.Give(t.Context(), c, turn.Pooled); err != nil {
			t.Fatal(err)
		}
		if r := receive(ctx, t, s, nil); r.text != answer {
			t.Errorf("%s: got %q, %v", name, r.text, r.err)
		}
		select {
		case <-s.running.rests:
			t.Errorf("%s: the session can be asked again", name)
		case <-s.Ended():
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
