package claude

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"ocp/internal/hook"
	"ocp/internal/prompt"
	"ocp/internal/terminal"
	"ocp/internal/transcript"
)

// editorArgument makes the test binary the program that `ocp editor` is.
const editorArgument = "editor"

func editorCommand() []string { return []string{os.Args[0], editorArgument} }

// actAsEditor does not return in a test binary that a CLI has run as its editor.
func actAsEditor() {
	if len(os.Args) != 3 || os.Args[1] != editorArgument {
		return
	}
	if err := Edit(context.Background(), os.Getenv(PromptVar), os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// typing is a session, of the real CLI or of the stand-in, in which prompts are submitted
// by a typist: launched as sessions are, and driven by the test.
type typing struct {
	typist
	t        *testing.T
	route    *hook.Route
	feed     *feed
	follower *transcript.Follower
}

func startTyping(t *testing.T, l *Launcher, key Key, c prompt.Conversation) *typing {
	t.Helper()
	id := newID()
	p, err := l.newPlace(id)
	if err != nil {
		t.Fatal(err)
	}
	y := &typing{t: t, route: l.hooks.Register(id)}
	env := append(p.environment(l.options.Env), SecretVar+"="+y.route.Secret, SocketVar+"="+l.hooks.Socket())
	y.typist.fifo, y.typist.bound = p.prompt, patience
	y.typist.terminal, err = terminal.Start(terminal.Options{
		Path: l.options.Path, Args: arguments(key, p, id), Dir: p.cwd, Grace: -time.Second,
		Env: environment(l.options.Env, nil, env...),
	})
	if err != nil {
		t.Fatal(err)
	}
	y.feed = startFeed(p, nothingTold)
	y.feed.give(c)
	t.Cleanup(func() {
		y.route.Close()
		if err := errors.Join(y.terminal.Close(), p.remove()); err != nil {
			t.Error(err)
		}
		y.feed.close()
		if y.follower != nil {
			y.follower.Close()
		}
	})
	<-y.feed.done
	if y.feed.err != nil {
		t.Fatal(y.feed.err)
	}
	if y.follower, err = transcript.Follow(p.transcript, y.feed.size, transcript.Options{}); err != nil {
		t.Fatal(err)
	}
	return y
}

// finish waits until the turn is over and its last record is there.
func (y *typing) finish(ctx context.Context) {
	y.t.Helper()
	for stopped, recorded := false, false; !stopped || !recorded; {
		select {
		case e := <-y.route.Events():
			stopped = stopped || e.Name == hook.Stop
		case r := <-y.follower.Records():
			recorded = recorded || r.Subtype == "turn_duration"
		case <-ctx.Done():
			y.t.Fatalf("the turn does not end (%s)\n%s", y.terminal.Exit(), y.terminal.Screen())
		}
	}
}

// submit submits a prompt and returns what UserPromptSubmit said, if it came.
func (y *typing) submit(ctx context.Context, text string) (said *hook.Event, err error) {
	y.route.Expect(text)
	submitted, over := make(chan error, 1), make(chan error, 1)
	go func() { over <- y.Submit(ctx, text, submitted) }()
	for {
		select {
		case e := <-y.route.Events():
			if e.Name != hook.UserPromptSubmit || said != nil {
				break
			}
			said = &e
			submitted <- map[bool]error{true: errOtherText}[e.Blocked]
		case <-y.follower.Records():
		case err := <-over:
			return said, err
		}
	}
}
