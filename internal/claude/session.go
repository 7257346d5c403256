package claude

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"ocp/internal/hook"
	"ocp/internal/prompt"
	"ocp/internal/terminal"
	"ocp/internal/transcript"
	"ocp/internal/turn"
)

const (
	// killGrace is what a session with the operator's login gets to end by itself: it
	// may be writing the operator's configuration. One of OCP's own is killed at once.
	killGrace = 2 * time.Second
	// exitBound is how long the last hook calls and records of a dead session are
	// waited for.
	exitBound = 300 * time.Millisecond
)

// Key is what is fixed when a session is launched. It can then be given any
// conversation.
type Key struct {
	Model     string // as the client gave it; empty for the CLI's own default
	Effort    string // empty for the CLI's own default
	MaxTokens int    // of an answer; 0 for no limit of the client's
	Tools     bool   // the client has tools, whichever
}

// Key returns what a request needs of its session.
func (l *Launcher) Key(req prompt.Request) Key {
	return Key{Model: req.Model, Effort: cmp.Or(req.Effort, l.options.Effort), MaxTokens: req.MaxTokens, Tools: len(req.Tools) > 0}
}

// Session is one CLI process. It is primed by its Launcher, and then given one
// conversation, which it answers: its events come by Next. Close ends it. Give, then
// Next, are for one goroutine at a time; the other methods are for any.
type Session struct {
	id       string
	key      Key
	launcher *Launcher
	place    place
	terminal Terminal
	route    *hook.Route
	feed     *feed
	check    bool // it is to start, and has no turn
	spawned  time.Time

	phase atomic.Value // a Phase, for Live

	asks    chan *running // to the loop
	running *running      // set by Give

	primed chan struct{} // closed by loop: see Primed
	busy   chan struct{} // closed by loop: see Running
	stop   chan struct{}
	once   sync.Once
	done   chan struct{}
	closed error // set by loop before done is closed

	// What a check's session has shown; set before done is closed.
	hooksSilent bool // it was up and no SessionStart came
	answered    bool // its SessionEnd came
	unanswered  bool // it has ended by itself and no SessionEnd came
}

// Prime launches a session. The CLI boots up to reading its system text from a FIFO,
// and waits there for a conversation. The session lives until it is closed or its
// process ends. An error is a *turn.Error.
func (l *Launcher) Prime(key Key) (*Session, error) {
	s, err := l.start(key, false)
	if err != nil {
		return nil, &turn.Error{Kind: turn.SessionFailed, Message: "no Claude Code session could be started", Err: err}
	}
	return s, nil
}

func (l *Launcher) start(key Key, check bool) (*Session, error) {
	id := newID()
	p, err := l.newPlace(id)
	if err != nil {
		return nil, err
	}
	route := l.hooks.Register(id)
	env := append(p.environment(l.options.Env), SecretVar+"="+route.Secret, SocketVar+"="+l.hooks.Socket())
	grace := -time.Second // no grace
	switch {
	case check:
		grace = checkGrace
	case !p.private:
		grace = killGrace
	}
	spawned := time.Now()
	term, err := l.startTerminal(id, terminal.Options{
		Path:  l.options.Path,
		Args:  arguments(key, p, id),
		Env:   append(environment(l.options.Env, l.options.PassEnv, env...), limits(key)...),
		Dir:   p.cwd,
		Grace: grace,
	})
	if err != nil {
		route.Close()
		return nil, errors.Join(err, p.remove())
	}
	if err := p.note(term.Pid()); err != nil {
		l.log.Warn("a later ocp could not find this session", "session", shortID(id), "err", err)
	}
	s := &Session{
		id: id, key: key, launcher: l, place: p, terminal: term, route: route, check: check, spawned: spawned,
		feed: startFeed(p, func(c prompt.Conversation) []transcript.Entry {
			return append(l.today(c), l.told(p, key)...)
		}),
		asks:   make(chan *running),
		primed: make(chan struct{}),
		busy:   make(chan struct{}),
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
	}
	l.track(s)
	l.started.Add(1)
	l.sessions.Go(func() {
		defer close(s.done)
		defer l.untrack(s)
		s.closed = s.live()
	})
	return s, nil
}

// Give gives the session its conversation and starts its turn. An error, a *turn.Error,
// says that nothing of the conversation has reached the upstream, so that another session
// can be given it; Next returns one too. A session that is not primed yet takes it later,
// and tells by Next alone if it does not. If ctx ends first, the session must be closed.
func (s *Session) Give(ctx context.Context, c prompt.Conversation, way turn.Way) error {
	waits := isClosed(s.primed)
	r := s.newRunning(c, way)
	s.running = r
	if r.tools != nil {
		offer, err := r.tools.naming.offer(c.Tools)
		if err != nil {
			return s.notTaken(err)
		}
		s.route.Offer(offer)
	}
	select {
	case s.asks <- r:
	case <-s.done:
		r.err = s.notTaken(fmt.Errorf("claude %s", s.terminal.Exit()))
		close(r.events)
		return r.err
	}
	if !waits {
		return nil
	}
	select {
	case err := <-r.taken:
		if err != nil {
			return s.notTaken(err)
		}
		return nil
	case <-ctx.Done():
		return canceled(ctx)
	}
}

func (s *Session) notTaken(cause error) error {
	return &turn.Error{Kind: turn.SessionFailed, Message: "the Claude Code session ended before it took the conversation", Err: cause}
}

// Next returns the turn's next event; after Finished there is none, and to ask is a
// mistake. A failed turn, a cancelled ctx and a closed session are a *turn.Error.
func (s *Session) Next(ctx context.Context) (turn.Event, error) {
	select {
	case e, ok := <-s.running.events:
		if !ok {
			return nil, s.running.err
		}
		return e, nil
	case <-ctx.Done():
		return nil, canceled(ctx)
	}
}

func canceled(ctx context.Context) *turn.Error {
	return &turn.Error{Kind: turn.Canceled, Message: "the request has ended", Err: context.Cause(ctx)}
}

// ID is the session's id, a UUID.
func (s *Session) ID() string { return s.id }

// Screen is what the session shows, as text. It says nothing that can be relied on.
func (s *Session) Screen() string { return s.terminal.Screen() }

// Primed is closed when the session waits for its conversation, has taken it, or has
// ended.
func (s *Session) Primed() <-chan struct{} { return s.primed }

// Running is closed when the session's turn is under way, so that it no longer needs
// the processor for its boot, or when there will be none.
func (s *Session) Running() <-chan struct{} { return s.busy }

// Ended is closed when nothing of the session is left.
func (s *Session) Ended() <-chan struct{} { return s.done }

// Close ends the session's process group, removes what it left on disk and waits for
// all that. It may be called more than once.
func (s *Session) Close() error {
	s.once.Do(func() { close(s.stop) })
	<-s.done
	return s.closed
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
