package probe

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"ocp/internal/claude"
	"ocp/internal/messagesapi"
	"ocp/internal/prompt"
	"ocp/internal/transcript"
	"ocp/internal/turn"
)

// noAccount is the key that sessions before the scripted model have.
const noAccount = "ocp-probe-no-account-needed"

// lane is a scripted model and a launcher whose sessions' hook calls go through a tap.
// Its turns are OCP's own, and everything that they are made of can be seen.
type lane struct {
	env      *Env
	state    string
	model    *messagesapi.Server // nil if the upstream is the real one
	tap      *tap
	launcher *claude.Launcher
}

// laneOptions are what of a lane's launcher is not the rule.
type laneOptions struct {
	transport claude.Transport
	keep      bool
}

func (e *Env) open(dir string, script messagesapi.Script, o laneOptions) (*lane, error) {
	l := &lane{env: e, state: filepath.Join(dir, "state")}
	var err error
	env := e.Real
	if env == nil {
		if l.model, err = messagesapi.Start(messagesapi.Options{Script: script}); err != nil {
			return nil, err
		}
		env = e.scripted(l.model)
	}
	if l.tap, err = startTap(); err != nil {
		return nil, errors.Join(err, l.close())
	}
	options := claude.Options{
		Path: e.CLI, Version: e.Name, StateDir: l.state,
		HookTransport: o.transport, HookURL: l.tap.url(), HookCommand: append(e.Self[:len(e.Self):len(e.Self)], "hook"),
		EditorCommand: append(e.Self[:len(e.Self):len(e.Self)], "editor"),
		Env:           env, Effort: "low",
		KeepSessions: o.keep, KeepTranscripts: true, QuietBound: e.quiet,
	}
	if l.launcher, err = claude.New(options); err != nil {
		return nil, errors.Join(err, l.close())
	}
	l.tap.to(l.launcher.HookURL())
	return l, nil
}

// scripted is an environment in which the scripted model is asked and no account used.
func (e *Env) scripted(model *messagesapi.Server) []string {
	return []string{"PATH=" + e.Path, "ANTHROPIC_BASE_URL=" + model.URL(), "ANTHROPIC_API_KEY=" + noAccount}
}

// close ends the lane, whose sessions must be closed.
func (l *lane) close() error {
	var err error
	if l.launcher != nil {
		err = l.launcher.Close()
	}
	if l.tap != nil {
		l.tap.close()
	}
	if l.model != nil {
		l.model.Close()
	}
	return err
}

// answer is all that was seen of a turn.
type answer struct {
	deltas   []turn.Delta // as OCP hands them on
	finished turn.Finished
	failed   error // the turn's

	calls   []call              // http hook calls
	records []transcript.Record // of the turn, as they are in the end
	looks   []look              // at the transcript, while the turn ran
	asked   []*messagesapi.Recorded
	all     []*messagesapi.Recorded // requests of every kind
	screen  string                  // of a session that was kept, after its answer
}

// ask runs a turn in a session of its own. Its error says that there was no turn.
func (l *lane) ask(ctx context.Context, c prompt.Conversation) (answer, error) {
	s, err := l.prime(ctx)
	if err != nil {
		return answer{}, err
	}
	a, err := l.give(ctx, s, c, nil)
	if err != nil {
		return answer{}, errors.Join(err, s.Close())
	}
	err = l.end(s, &a)
	if ctx.Err() != nil { // it says nothing of the CLI that there was no more time
		err = errors.Join(context.Cause(ctx), err)
	}
	return a, err
}

// prime starts a session and waits until it is ready for its conversation.
func (l *lane) prime(ctx context.Context) (*claude.Session, error) {
	s, err := l.launcher.Prime(claude.Key{Model: l.env.model(), Effort: "low"})
	if err != nil {
		return nil, err
	}
	select {
	case <-s.Primed():
		return s, nil
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), s.Close())
	}
}

// give gives a session its conversation and watches the turn to its end. each, if set, is
// told of every delta.
func (l *lane) give(ctx context.Context, s *claude.Session, c prompt.Conversation, each func(turn.Delta)) (answer, error) {
	var a answer
	asked := l.asked()
	if err := s.Give(ctx, c, turn.Pooled); err != nil {
		return a, err
	}
	w := startWatch(l.transcriptOf(s))
	defer func() { a.looks = w.close() }()
	l.read(ctx, s, &a, each)
	if a.failed == nil && s.Lasts() {
		a.screen = s.Screen()
	}
	a.calls = l.tap.of(s.ID())
	a.asked, a.all = l.asked().since(asked)
	a.looks = w.close()
	return a, nil
}

// journal is what the scripted model was asked; nothing if there is none.
type journal struct{ turns, all []*messagesapi.Recorded }

func (l *lane) asked() journal {
	if l.model == nil {
		return journal{}
	}
	return journal{l.model.Turns(), l.model.Requests()}
}

// since is what has come after an earlier journal.
func (j journal) since(before journal) (turns, all []*messagesapi.Recorded) {
	return j.turns[len(before.turns):], j.all[len(before.all):]
}

// read takes the turn's events.
func (l *lane) read(ctx context.Context, s *claude.Session, a *answer, each func(turn.Delta)) {
	for {
		event, err := s.Next(ctx)
		if err != nil {
			a.failed = err
			return
		}
		switch e := event.(type) {
		case turn.Delta:
			a.deltas = append(a.deltas, e)
			if each != nil {
				each(e)
			}
		case turn.Finished:
			a.finished = e
			return
		}
	}
}

// end closes a session and adds what it has left to its answer.
func (l *lane) end(s *claude.Session, a *answer) error {
	err := s.Close()
	data, readErr := os.ReadFile(filepath.Join(l.state, "transcripts", s.ID()+".jsonl"))
	if readErr != nil && !errors.Is(readErr, fs.ErrNotExist) {
		return errors.Join(err, readErr)
	}
	a.records = ofTurn(data)
	a.calls = l.tap.of(s.ID())
	return err
}

// transcriptOf finds a session's transcript; empty if it is not there.
func (l *lane) transcriptOf(s *claude.Session) func() string {
	pattern := filepath.Join(l.state, "sessions", "*", "config", "projects", "*", s.ID()+".jsonl")
	return func() string {
		found, _ := filepath.Glob(pattern)
		if len(found) == 0 {
			return ""
		}
		return found[0]
	}
}

// ofTurn are the records that the CLI has written: those of the conversation that it was
// given name no version.
func ofTurn(data []byte) []transcript.Record {
	var list []transcript.Record
	for line := range bytes.Lines(data) {
		if r, err := transcript.Parse(line); err == nil && r.Version != "" {
			list = append(list, r)
		}
	}
	return list
}

// lookEvery is how often a turn's transcript is looked at.
const lookEvery = 20 * time.Millisecond

// look is a growth of a transcript.
type look struct {
	at   time.Time
	data []byte // all of it
}

// watch looks at a file until it is closed.
type watch struct {
	stop  chan struct{}
	once  sync.Once
	done  chan struct{}
	find  func() string
	looks []look // owned by the goroutine until done is closed
}

func startWatch(find func() string) *watch {
	w := &watch{find: find, stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.look()
			case <-w.stop:
				w.look()
				return
			}
		}
	}()
	return w
}

func (w *watch) look() {
	path := w.find()
	if path == "" {
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return // gone with its session
	}
	if n := len(w.looks); n == 0 || len(w.looks[n-1].data) != len(data) {
		w.looks = append(w.looks, look{time.Now(), data})
	}
}

// close ends the watch and returns what it has seen.
func (w *watch) close() []look {
	w.once.Do(func() { close(w.stop) })
	<-w.done
	return w.looks
}

// say is a conversation of one message.
func say(texts ...string) prompt.Conversation {
	var blocks []prompt.Block
	for _, text := range texts {
		blocks = append(blocks, prompt.Text(text))
	}
	return prompt.Conversation{Messages: []prompt.Message{{Role: prompt.User, Content: blocks}}}
}
