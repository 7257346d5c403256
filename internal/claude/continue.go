package claude

import (
	"context"
	"errors"
	"time"

	"ocp/internal/prompt"
	"ocp/internal/turn"
)

// restBound is how long the last record of a turn is waited for that has ended well. It
// is on disk 100 to 400 ms after Stop, and seconds after it on a loaded machine (facts,
// section 1).
const restBound = 5 * time.Second

// Lasts reports, after Finished, whether the session goes on: its conversation can then
// be continued in it, unless it ends before.
func (s *Session) Lasts() bool { return s.running.lasting }

// Continue gives a session that lasts its own conversation with one more message, which
// is typed into the CLI's input box. It returns when the CLI has submitted just that. An
// error, a *turn.Error, says that it has not, and that the session is of no more use:
// another can be given the conversation.
func (s *Session) Continue(ctx context.Context, c prompt.Conversation) error {
	select {
	case <-s.running.rests:
	case <-s.done:
		return s.notTaken(errors.New("it has ended"))
	case <-ctx.Done():
		return s.notTaken(context.Cause(ctx))
	}
	text := c.Messages[len(c.Messages)-1].Content[0].Text
	r := s.newRunning(c, turn.Continued)
	s.running = r
	s.route.Expect(text)
	select {
	case s.asks <- r:
	case <-s.done:
		return s.notTaken(errors.New("it has ended"))
	}
	typist := typist{terminal: s.terminal, fifo: s.place.prompt}
	if err := typist.Submit(ctx, text, r.submitted); err != nil {
		return s.notTaken(err)
	}
	return nil
}

// Types reports whether a request's last message may be typed into a session that has had
// the rest of the conversation.
func (l *Launcher) Types(req prompt.Request) bool {
	n := len(req.Messages) - 1
	if l.unkept != "" || n < 2 || len(req.Tools) > 0 || len(req.Messages[n].Content) != 1 {
		return false
	}
	last := req.Messages[n].Content[0]
	return last.Raw == nil && !marked(last.Text) && prompt.BoxHazard(l.options.Version, last.Text) == ""
}

// Unkept is why no session is kept after its answer, in words; empty if they are.
func (l *Launcher) Unkept() string { return l.unkept }

func (l *Launcher) whyUnkept() string {
	switch {
	case !l.options.KeepSessions:
		return "it is switched off"
	case !l.private():
		// In history.jsonl and paste-cache. The variable that stops that also stops the
		// transcript (CLAUDE_CODE_SKIP_PROMPT_HISTORY, 2.1.207).
		return "with the login of the Claude Code CLI, the CLI would keep what is typed in your configuration: give ocp a token (claude setup-token) or a key"
	case editorVars(l.options.EditorCommand) == nil:
		return "there is a space in the path of ocp"
	case !prompt.BoxKnown(l.options.Version):
		return "the input box of this release of the CLI has not been measured"
	}
	return ""
}
