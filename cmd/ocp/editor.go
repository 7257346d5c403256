package main

import (
	"context"
	"time"

	"ocp/internal/claude"
)

// editorTimeout bounds how long a session waits for its prompt: until it is over the
// session answers to nothing.
const editorTimeout = 10 * time.Second

// editorCommand is run by the CLI inside a session, as its external editor: it takes the
// session's next prompt from ocp.
type editorCommand struct {
	File string `arg:"" help:"The file that the CLI wants edited."`
}

func (c editorCommand) Run(ctx context.Context, p program) error {
	fifo := claude.Variable(p.env, claude.PromptVar)
	if fifo == "" {
		return errByHand
	}
	ctx, cancel := context.WithTimeout(ctx, editorTimeout)
	defer cancel()
	return claude.Edit(ctx, fifo, c.File)
}
