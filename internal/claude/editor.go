package claude

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// PromptVar names the FIFO from which `ocp editor` takes a session's next prompt.
const PromptVar = "OCP_PROMPT"

// editorVars make a command the session's external editor. The CLI splits its line at
// spaces and knows no quotes (both versions): a command with a space in a word cannot be
// the editor, and there is none then.
func editorVars(command []string) []string {
	if len(command) == 0 || slices.ContainsFunc(command, func(word string) bool { return strings.ContainsAny(word, " \t\n") }) {
		return nil
	}
	line := strings.Join(command, " ")
	return []string{"VISUAL=" + line, "EDITOR=" + line}
}

// CanEdit reports whether a command can be the editor of sessions.
func CanEdit(command []string) bool { return editorVars(command) != nil }

// Edit is what `ocp editor` does inside a session: it moves the prompt that waits at the
// FIFO into the file that the CLI has made of its input box, which must be empty. If there
// is an error, the CLI leaves its box as it is.
func Edit(ctx context.Context, fifo, file string) error {
	switch info, err := os.Stat(file); {
	case err != nil:
		return fmt.Errorf("edit: %w", err)
	case info.Size() > 0:
		return errors.New("edit: the input box is not empty")
	}
	text, err := takePrompt(ctx, fifo)
	if err != nil {
		return fmt.Errorf("edit: take the prompt: %w", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("edit: %w", err)
	}
	return nil
}

// takePrompt reads a FIFO to its end. If ctx ends first, it leaves the reading behind: the
// process is about to end.
func takePrompt(ctx context.Context, fifo string) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := readFIFO(fifo)
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func readFIFO(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err == nil && len(text) == 0 {
		err = io.ErrUnexpectedEOF
	}
	return text, err
}
