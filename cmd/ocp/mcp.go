package main

import (
	"context"
	"io"

	"ocp/internal/hook"
	"ocp/internal/mcp"
)

// mcpCommand is run by the CLI inside a session: it offers the tools of the session's
// client.
type mcpCommand struct{}

func (mcpCommand) Run(ctx context.Context, p program) error {
	socket, secret, err := receiverOf(p)
	if err != nil {
		return err
	}
	tools, err := hook.FetchTools(ctx, socket, secret)
	if err != nil {
		return err
	}
	return mcp.Serve(ctx, io.NopCloser(p.stdin), nopCloser{p.stdout}, mcp.Options{
		Version: version(), Tools: tools,
		Listed: func(ctx context.Context) error { return hook.ToolsListed(ctx, socket, secret) },
	})
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
