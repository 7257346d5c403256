package main

import "ocp/internal/terminal/tmux"

// paneCommand is run by tmux in a session's pane: it gets from ocp what to run there.
type paneCommand struct {
	Socket string `arg:"" help:"Where ocp says it."`
	Name   string `arg:"" help:"The pane."`
}

func (c paneCommand) Run() error { return tmux.RunPane(c.Socket, c.Name) }
