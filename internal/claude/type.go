package claude

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"ocp/internal/terminal"
)

const (
	// typeBound is how long a text may take into the input box and out of it. Usual are
	// 50–150 ms (both versions); on a machine with 16 processes to a core five seconds were
	// seen.
	typeBound = 8 * time.Second
	// drawBound is how long the box may take to be drawn.
	drawBound = 2 * time.Second
	// boxLookEvery is how often the screen is looked at for the text in the box.
	boxLookEvery = 10 * time.Millisecond
	// enterEvery is how long an Enter is waited for before it is repeated: 2.1.207 loses
	// some under load, both while a text is being put into the box.
	enterEvery = 50 * time.Millisecond

	externalEditor = "\a" // Ctrl+G
	enter          = "\r"
)

// errNotTyped is wrapped by Submit's errors: the text may be in the box, or may have been
// submitted or not, so the session is good for nothing more.
var errNotTyped = errors.New("the prompt could not be put into the session's input box")

// typist submits prompts in a running session, by way of the CLI's external editor: a key
// makes the CLI run `ocp editor`, which takes the text from a FIFO, as the CLI takes its
// system text, and leaves it in the CLI's own file. Nothing of it is typed: a paste would
// be obeyed (!command), read files (a line that is an image's path), and from four lines or
// 800 characters on be wrapped by 2.1.332 in tags of its own.
type typist struct {
	terminal Terminal
	fifo     string
	bound    time.Duration // zero for typeBound
}

// Submit puts a text into the input box and submits it. The session must wait for a
// prompt, and the text be one that prompt.BoxHazard lets through. What submitted gets when
// the CLI has told of the prompt says whether it was let through, and ends the submission.
// Every error wraps errNotTyped.
func (t typist) Submit(ctx context.Context, text string, submitted <-chan error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(t.bound, typeBound), errors.New("it took too long"))
	defer cancel()
	if err := t.await(ctx); err != nil {
		return fmt.Errorf("%w: %w", errNotTyped, err)
	}
	if err := t.press(externalEditor); err != nil {
		return fmt.Errorf("%w: %w", errNotTyped, err)
	}
	if err := t.hand(ctx, text); err != nil {
		return fmt.Errorf("%w: hand it to the editor: %w", errNotTyped, err)
	}
	if err := t.enter(ctx, submitted); err != nil {
		return fmt.Errorf("%w: %w", errNotTyped, err)
	}
	return nil
}

// await waits until the box is drawn: a screen that is read while it is being drawn may not
// have it (seen on 2.1.207 under load).
func (t typist) await(ctx context.Context) error {
	drawn, cancel := context.WithTimeout(ctx, drawBound)
	defer cancel()
	look := time.NewTicker(boxLookEvery)
	defer look.Stop()
	for {
		err := t.ready()
		if !errors.Is(err, errNoBox) {
			return err
		}
		select {
		case <-drawn.Done():
			return err
		case <-t.terminal.Done():
			return err
		case <-look.C:
		}
	}
}

var errNoBox = errors.New("the box is not on the screen")

// ready wants an empty input box on the screen, and nothing that could take its keys.
func (t typist) ready() error {
	screen := t.terminal.Screen()
	switch content, ok := boxContent(screen); {
	case dialogOn(screen) != nil:
		return errors.New("there is a dialog on the screen")
	case !ok:
		return errNoBox
	case content != "":
		return errors.New("the box is not empty")
	}
	return nil
}

func (t typist) press(key string) error {
	_, err := t.terminal.Write([]byte(key))
	return err
}

// hand gives the text to the editor when it has come to the FIFO.
func (t typist) hand(ctx context.Context, text string) error {
	look := time.NewTicker(openEvery)
	defer look.Stop()
	for {
		fifo, err := os.OpenFile(t.fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			return writeAll(ctx, fifo, text)
		}
		if !errors.Is(err, syscall.ENXIO) { // ENXIO: nobody reads yet
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.terminal.Done():
			return terminal.ErrExited
		case <-look.C:
		}
	}
}

// writeAll writes a text and closes the file, whose other end may be slow or go away.
func writeAll(ctx context.Context, file *os.File, text string) error {
	defer context.AfterFunc(ctx, func() { _ = file.SetWriteDeadline(time.Now()) })()
	_, err := file.WriteString(text)
	return errors.Join(err, file.Close())
}

// enter presses Enter for the text in the box, until the prompt is submitted.
func (t typist) enter(ctx context.Context, submitted <-chan error) error {
	look := time.NewTicker(boxLookEvery)
	defer look.Stop()
	var pressed time.Time
	for {
		select {
		case err := <-submitted:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.terminal.Done():
			return terminal.ErrExited
		case <-look.C:
		}
		if time.Since(pressed) < enterEvery {
			continue
		}
		screen := t.terminal.Screen()
		if content, ok := boxContent(screen); !ok || content == "" || dialogOn(screen) != nil {
			continue
		}
		if err := t.press(enter); err != nil {
			return err
		}
		pressed = time.Now()
	}
}

// boxContent returns what is in the input box on a screen, as far as it is to be seen, or
// false if the box is not there.
//
// Of a long text there are the last lines: below a rule that says how many are above
// (2.1.332), or with the lower rule alone, when they fill the screen.
func boxContent(screen string) (content string, ok bool) {
	lines := strings.Split(screen, "\n")
	end := lastRule(lines)
	if end < 0 {
		return "", false
	}
	begin := lastRule(lines[:end])
	content = strings.TrimSpace(strings.Join(lines[begin+1:end], "\n"))
	switch {
	case begin < 0 && slices.ContainsFunc(lines[:end], outdented):
		return "", false
	case begin < 0:
		return content, content != ""
	case strings.HasPrefix(lines[begin], scrolled):
		return content, true
	}
	content, ok = strings.CutPrefix(content, cursor)
	return strings.TrimSpace(content), ok
}

// scrolled begins the upper rule of a box with more lines above, in 2.1.332.
const scrolled = "─── ↑"

// lastRule finds the last of the rules above and below the input box: they begin at the
// screen's edge, and texts do not.
func lastRule(lines []string) int {
	for i, line := range slices.Backward(lines) {
		if isRule(line) || strings.HasPrefix(line, scrolled) {
			return i
		}
	}
	return -1
}

// outdented reports whether a line cannot be one of a text in the box.
func outdented(line string) bool {
	return line != "" && !strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, cursor)
}
