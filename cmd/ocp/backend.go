package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"ocp/internal/claude"
	"ocp/internal/config"
	"ocp/internal/pool"
	"ocp/internal/prompt"
	"ocp/internal/server"
	"ocp/internal/store"
	"ocp/internal/turn"
)

const (
	// primedAge is how long a primed session may wait. None was seen to go bad; it bounds
	// how long a change of the machine (a login, a policy, the CLI) goes unnoticed.
	primedAge = 15 * time.Minute
	// gives is how many primed sessions a request is offered that end before they take it.
	gives = 3
)

// backend is what the server package asks for: a session for each request.
type backend struct {
	launcher *claude.Launcher
	pool     *pool.Pool[claude.Key, *claude.Session]
	kept     *pool.Kept[prompt.Digest, *claude.Session]
	log      *slog.Logger
	ending   sync.WaitGroup  // of sessions that were of no use
	recorder *store.Recorder // of usage; only reported on
}

// newBackend primes the first sessions for what a client that names no more than the
// first model of the list will ask for.
func newBackend(c config.Serve, model string, launcher *claude.Launcher, logger *slog.Logger) *backend {
	if why := launcher.Unkept(); c.Keep > 0 && why != "" {
		logger.Info("no session stays for its conversation to go on in it", "reason", why)
	}
	return &backend{
		launcher: launcher,
		pool: pool.New(pool.Options[claude.Key, *claude.Session]{
			Size: c.Pool, MaxAge: primedAge, Prime: launcher.Prime, Logger: logger,
			First: []claude.Key{launcher.Key(prompt.Request{Model: model})},
		}),
		kept: pool.NewKept[prompt.Digest, *claude.Session](pool.KeptOptions{Size: c.Keep, For: c.KeepFor, Logger: logger}),
		log:  logger,
	}
}

// Start gives the request to the session that has answered the conversation so far, to a
// primed one, or to one that is started for it.
func (b *backend) Start(ctx context.Context, req prompt.Request) (server.Session, error) {
	if session := b.goOn(ctx, req); session != nil {
		return &lent{Session: session, backend: b, request: req}, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, &turn.Error{Kind: turn.Canceled, Message: "the request ended before a session was started", Err: context.Cause(ctx)}
	}
	if err := b.launcher.Refuses(req); err != nil {
		return nil, err
	}
	var errs []error
	for range gives {
		session, waited, err := b.pool.Take(b.launcher.Key(req))
		if err != nil {
			return nil, err
		}
		way := turn.Cold
		if waited {
			way = turn.Pooled
		}
		err = session.Give(ctx, req.Conversation, way)
		if err == nil {
			return &lent{Session: session, backend: b, request: req}, nil
		}
		errs = append(errs, err, session.Close())
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// goOn returns the session that has answered the conversation so far and has taken its
// new message, or nil.
func (b *backend) goOn(ctx context.Context, req prompt.Request) *claude.Session {
	if !b.launcher.Types(req) {
		return nil
	}
	session, ok := b.kept.Take(req.History())
	if !ok {
		return nil
	}
	err := session.Continue(ctx, req.Conversation)
	if err == nil {
		return session
	}
	b.log.Warn("a conversation could not go on in its session; it takes the slower way", "err", err)
	b.ending.Go(func() { b.end(session) })
	return nil
}

func (b *backend) end(session *claude.Session) {
	if err := session.Close(); err != nil {
		b.log.Warn("session did not close well", "err", err)
	}
}

// close ends the sessions that wait. Those that run must have been closed.
func (b *backend) close() error {
	b.kept.Close()
	err := b.pool.Close()
	b.ending.Wait()
	return errors.Join(err, b.launcher.Close())
}

// lent is a session that answers a request. After a good answer it is kept, if it can be,
// and closed otherwise.
type lent struct {
	*claude.Session
	backend *backend
	request prompt.Request
	answer  strings.Builder
	good    bool // the answer is whole

	once sync.Once
	err  error // of closing it
}

func (l *lent) Next(ctx context.Context) (turn.Event, error) {
	event, err := l.Session.Next(ctx)
	switch e := event.(type) {
	case turn.Delta:
		l.answer.WriteString(e.Text)
	case turn.Finished:
		l.good = true
	}
	return event, err
}

func (l *lent) Close() error {
	l.once.Do(func() {
		if l.good && l.Lasts() && l.backend.kept.Put(l.request.Answered(l.answer.String()), l.Session) {
			return
		}
		l.err = l.Session.Close()
	})
	return l.err
}
