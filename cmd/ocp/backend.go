package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"ocp/internal/claude"
	"ocp/internal/config"
	"ocp/internal/pool"
	"ocp/internal/prompt"
	"ocp/internal/server"
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
}

// newBackend primes the first sessions for what a client that names no more than the
// first model of the list will ask for.
func newBackend(c config.Serve, model string, launcher *claude.Launcher, logger *slog.Logger) *backend {
	return &backend{
		launcher: launcher,
		pool: pool.New(pool.Options[claude.Key, *claude.Session]{
			Size: c.Pool, MaxAge: primedAge, Prime: launcher.Prime, Logger: logger,
			First: []claude.Key{launcher.Key(prompt.Request{Model: model})},
		}),
	}
}

// Start gives the request to a primed session, or to one that is started for it.
func (b *backend) Start(ctx context.Context, req prompt.Request) (server.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, &turn.Error{Kind: turn.Canceled, Message: "the request ended before a session was started", Err: context.Cause(ctx)}
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
		err = session.Give(req.Conversation, way)
		if err == nil {
			return session, nil
		}
		errs = append(errs, err, session.Close())
	}
	return nil, errors.Join(errs...)
}

// close ends the sessions that wait. Those that run must have been closed.
func (b *backend) close() error {
	return errors.Join(b.pool.Close(), b.launcher.Close())
}
