package claude

import (
	"context"
	"errors"
	"sync"
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

// Session is one CLI process, which answers one conversation. Its events come by
// Next; Close ends it. Both may be called from any goroutine.
type Session struct {
	id       string
	launcher *Launcher
	place    place
	terminal *terminal.Terminal
	route    *hook.Route
	feed     *feed
	limited  bool // the client has set the token limit
	check    bool // it is to start, and has no turn

	events chan turn.Event // closed by loop after the last event
	err    error           // set by loop before events is closed
	stop   chan struct{}
	once   sync.Once
	done   chan struct{}
	closed error // set by loop before done is closed

	// What a check's session has shown; set before done is closed.
	hooksSilent bool // it was up and no SessionStart came
	unanswered  bool // it has ended by itself and no SessionEnd came
}

// start launches the CLI. It boots up to reading its system text from a FIFO; the
// conversation is put in place when it gets there.
func (l *Launcher) start(req prompt.Request, check bool) (*Session, error) {
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
	term, err := terminal.Start(terminal.Options{
		Path:  l.options.Path,
		Args:  arguments(req, p, id),
		Env:   append(environment(l.options.Env, l.options.PassEnv, env...), limits(req)...),
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
		id: id, launcher: l, place: p, terminal: term, route: route, limited: req.MaxTokens > 0, check: check,
		feed:   startFeed(p, req.Conversation),
		events: make(chan turn.Event),
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
	}
	l.sessions.Go(func() {
		defer close(s.done)
		s.closed = s.live()
	})
	return s, nil
}

// Next returns the turn's next event; after Finished there is none, and to ask is a
// mistake. A failed turn, a cancelled ctx and a closed session are a *turn.Error.
func (s *Session) Next(ctx context.Context) (turn.Event, error) {
	select {
	case e, ok := <-s.events:
		if !ok {
			return nil, s.err
		}
		return e, nil
	case <-ctx.Done():
		return nil, &turn.Error{Kind: turn.Canceled, Message: "the request has ended", Err: context.Cause(ctx)}
	}
}

// ID is the session's id, a UUID.
func (s *Session) ID() string { return s.id }

// Close ends the session's process group, removes what it left on disk and waits for
// all that. It may be called more than once.
func (s *Session) Close() error {
	s.once.Do(func() { close(s.stop) })
	<-s.done
	return s.closed
}

// live runs the session to its end and cleans up behind it.
func (s *Session) live() error {
	defer s.route.Close()
	loop := sessionLoop{
		Session: s,
		turn:    turn.New(turn.Options{Classify: classify, AtLimit: s.limited}),
		spawned: time.Now(),
	}
	loop.run()
	err := s.terminal.Close()
	s.noteFarewell()
	s.feed.close()
	if loop.follower != nil {
		loop.follower.Close()
	}
	return errors.Join(err, s.launcher.keep(s.place, s.id), s.place.remove())
}

// sessionLoop is the session's one goroutine: everything that happens in the session
// arrives here and is given to the turn, one thing after the other.
type sessionLoop struct {
	*Session
	turn     *turn.Turn
	follower *transcript.Follower // nil until the conversation is in place
	input    *inputCheck
	ended    bool // the turn is over and finish was called

	out   []turn.Event // not yet taken by Next
	quiet *time.Timer  // runs while the turn settles
	exit  *time.Timer  // runs when the process is gone

	seen   *dialog // what the last look at the screen showed
	takeUp takeUp
	stirs  int    // hook calls and records
	boxes  int    // looks that found the input box of a session that has not started
	cli    string // the CLI's version, as its records name it

	spawned, primed, started, first, stopped time.Time
	recorded                                 bool // the CLI has written a record of the turn
}

func (l *sessionLoop) run() {
	l.quiet, l.exit = stoppedTimer(), stoppedTimer()
	starting := time.NewTimer(l.launcher.options.StartTimeout)
	defer starting.Stop()
	looks := time.NewTicker(lookEvery)
	defer looks.Stop()
	fed, gone := l.feed.done, l.terminal.Done()
	var records <-chan transcript.Record
	for {
		var taker chan<- turn.Event
		var next turn.Event
		if len(l.out) > 0 {
			taker, next = l.events, l.out[0]
		} else if l.turn.Over() {
			close(l.events)
			<-l.stop
			return
		}
		select {
		case <-l.stop:
			l.end()
			return
		case taker <- next:
			l.out = l.out[1:]
		case <-fed:
			fed = nil
			records = l.follow()
		case e := <-l.route.Events():
			l.hooked(e)
		case r, ok := <-records:
			if !ok {
				records = nil
				l.fail(turn.SessionFailed, "the session's transcript could not be followed", l.follower.Err())
				break
			}
			l.record(r)
		case <-l.quiet.C:
			l.take(l.turn.Quiet())
		case <-gone:
			gone = nil
			l.poke()
			l.exit.Reset(exitBound)
		case <-l.exit.C:
			l.exited()
		case <-starting.C:
			if l.started.IsZero() && !l.working() {
				l.late()
			}
		case <-looks.C:
			if l.working() || gone == nil {
				looks.Stop()
				break
			}
			l.look()
		}
	}
}

// follow begins to read the transcript behind the conversation.
func (l *sessionLoop) follow() <-chan transcript.Record {
	l.primed = time.Now()
	if l.feed.err != nil {
		l.fail(turn.SessionFailed, "the conversation could not be given to the session", l.feed.err)
		return nil
	}
	l.input = newInputCheck(l.feed.conversation)
	var err error
	l.follower, err = transcript.Follow(l.place.transcript, l.feed.size, transcript.Options{})
	if err != nil {
		l.fail(turn.SessionFailed, "the session's transcript could not be followed", err)
		return nil
	}
	return l.follower.Records()
}

func (l *sessionLoop) hooked(e hook.Event) {
	l.stirs++
	switch e.Name {
	case hook.SessionStart:
		l.started = e.Received
		l.launcher.health.started()
	case hook.MessageDisplay:
		if l.first.IsZero() {
			l.first = e.Received
		}
	case hook.Stop, hook.StopFailure:
		l.stopped = e.Received
		l.poke()
	}
	l.take(l.turn.Hook(e))
}

func (l *sessionLoop) record(r transcript.Record) {
	l.stirs++
	l.recorded = l.recorded || ofTurn(r)
	l.input.record(r)
	l.take(l.turn.Record(r))
}

func (l *sessionLoop) poke() {
	if l.follower != nil {
		l.follower.Poke()
	}
}

// take queues what the turn yields. Deltas that the client has not taken yet are
// joined, so that a slow client costs no more memory than the answer's length.
func (l *sessionLoop) take(events []turn.Event, err error) {
	if l.ended {
		return
	}
	for _, e := range events {
		if f, ok := e.(turn.Finished); ok {
			f.Stats.InputChecks, f.Stats.InputDiffs = l.input.result()
			e = f
			l.cli = f.Session.CLIVersion
		}
		if d, ok := e.(turn.Delta); ok && len(l.out) > 0 {
			if last, ok := l.out[len(l.out)-1].(turn.Delta); ok {
				l.out[len(l.out)-1] = turn.Delta{Text: last.Text + d.Text}
				continue
			}
		}
		l.out = append(l.out, e)
	}
	if err != nil {
		l.err = err
	}
	switch {
	case l.turn.Over():
		l.ended = true
		l.finish()
	case l.turn.Settling():
		l.quiet.Reset(l.launcher.options.QuietBound)
	}
}

// finish begins to end the process once its turn is over; the client need not wait
// for it.
func (l *sessionLoop) finish() {
	if l.err == nil {
		l.err = errTurnOver
		l.launcher.health.answered(l.cli, !l.started.IsZero(), !l.first.IsZero() || !l.stopped.IsZero())
	}
	l.logStages()
	if l.place.private && !l.check {
		l.terminal.Kill()
	}
}

// errTurnOver is what Next returns when it is called after the last event.
var errTurnOver = &turn.Error{Kind: turn.SessionFailed, Message: "the turn is over"}

// fail ends the turn for a reason of the session's own.
func (l *sessionLoop) fail(kind turn.Kind, message string, cause error) {
	if l.turn.Over() {
		return
	}
	l.turn.Abort()
	l.take(nil, &turn.Error{Kind: kind, Message: message, Err: cause})
}

// end is Close while the turn was still running.
func (l *sessionLoop) end() {
	if !l.turn.Over() {
		l.fail(turn.Canceled, "the session was closed", nil)
	}
	close(l.events)
}

func (l *sessionLoop) logStages() {
	since := func(t time.Time) time.Duration {
		if t.IsZero() {
			return 0
		}
		return t.Sub(l.spawned).Round(time.Millisecond)
	}
	stats := l.turn.Stats()
	l.launcher.log.Debug("session ended its turn", "session", shortID(l.id),
		"primed", since(l.primed), "started", since(l.started), "first_delta", since(l.first), "stop", since(l.stopped),
		"over", since(time.Now()), "deltas", stats.Deltas, "reordered", stats.Reordered, "duplicates", stats.Duplicates,
		"topped_up", stats.ToppedUp)
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}
