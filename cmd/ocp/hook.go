package main

import (
	"context"
	"errors"
	"time"

	"ocp/internal/claude"
	"ocp/internal/hook"
)

// hookTimeout bounds the forwarding of one hook call; the CLI gives up by itself after ten
// seconds, or a minute where ocp may wait with its answer.
const hookTimeout = time.Minute

// hookCommand is run by the CLI inside a session: it forwards the hook call on its
// stdin. What it prints on stdout the CLI takes for an answer.
type hookCommand struct{}

func (hookCommand) Run(ctx context.Context, p program) error {
	socket, secret, err := receiverOf(p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, hookTimeout)
	defer cancel()
	return hook.Forward(ctx, socket, secret, p.stdin, p.stdout)
}

var errByHand = errors.New("this command is run by a session of ocp and not by hand")

// receiverOf is where the session that runs this process reaches ocp, and its secret.
func receiverOf(p program) (socket, secret string, err error) {
	socket, secret = claude.Variable(p.env, claude.SocketVar), claude.Variable(p.env, claude.SecretVar)
	if socket == "" || secret == "" {
		return "", "", errByHand
	}
	return socket, secret, nil
}
