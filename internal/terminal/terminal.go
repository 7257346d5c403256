// Package terminal runs one program under a pseudo-terminal: it keeps the
// program's screen, sends it keys, and ends it together with its process group.
//
// It knows nothing of the program it runs. It keeps no history, and it reads the
// program's output as fast as it comes but draws only what it can keep up with, so
// neither a terminal's memory nor its program's pace depends on how much is written.
package terminal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

const (
	defaultRows  = 30
	defaultCols  = 100
	defaultGrace = 2 * time.Second

	// maxSide bounds rows and columns, and with them a screen's memory.
	maxSide = 500

	// drainLimit bounds the reading that follows the program's death. Output ends
	// by itself as soon as nobody holds the terminal open; only a descendant that
	// left the process group with the terminal still open makes it last this long.
	drainLimit = time.Second

	// reopenWait is how often a living program that has closed its terminal is
	// checked for having opened it again.
	reopenWait = 50 * time.Millisecond

	// maxUndrawn bounds the output that was read and waits to be drawn, in bytes.
	// Drawing is slow when the screen scrolls (measured: 3 MB/s for lines of one letter),
	// and what is undrawn when the program ends is still drawn.
	maxUndrawn = 64 << 10

	// MaxBacklog bounds the input that waits for the program to read it, in bytes.
	MaxBacklog = 1 << 20

	// maxReplyBacklog is the bound for the screen's answers to terminal queries.
	// It is far below MaxBacklog so that a program that asks and never reads
	// cannot crowd out keys.
	maxReplyBacklog = 16 << 10
)

var (
	// ErrExited is returned by Write and Resize once the program has ended.
	ErrExited = errors.New("terminal: the program has ended")

	// ErrBacklog is returned by Write when the program has left too much input unread.
	ErrBacklog = errors.New("terminal: too much unread input")
)

// Options says what to run and how.
type Options struct {
	// Path is the program, as an absolute path. It is not looked up in PATH.
	Path string

	// Args are the arguments after the program's name, which is always Path.
	Args []string

	// Env is the whole environment, as KEY=value; nothing is inherited, not even
	// when it is nil. Of several entries with the same key the last one counts.
	Env []string

	// Dir is the working directory; empty means the caller's own.
	Dir string

	// Rows and Cols are the size of the screen, 1 to 500; 0 means 30 and 100,
	// wide enough for most dialogs and messages to stay unwrapped.
	Rows, Cols int

	// Grace is how long Close waits between SIGTERM and SIGKILL. 0 means two
	// seconds; a negative value means that Close kills at once.
	Grace time.Duration
}

// Terminal is a program running under a pseudo-terminal. All methods may be
// called from any goroutine, during its life and after its end.
//
// A terminal whose program ends by itself releases everything it holds; Close is
// how to end one that does not.
type Terminal struct {
	proc   *Process
	pty    *os.File // the master side; closed by run
	screen *screen
	output *Queue // from the program to the screen
	input  *Queue // from Write and the screen to the program
	grace  time.Duration

	closeOnce sync.Once
	closeErr  error // set by run before done is closed

	exit Exit // set by run before done is closed
	done chan struct{}
}

// Start runs the program in a session of its own, whose controlling terminal is a
// new pseudo-terminal. It returns when the program is executing, or with an error
// when it cannot be executed or an option is out of range.
//
// If the calling process dies, however it dies, the kernel closes the
// pseudo-terminal and sends SIGHUP to the program.
func Start(o Options) (*Terminal, error) {
	if err := o.Complete(); err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	proc, master, err := startOnPTY(o)
	if err != nil {
		return nil, fmt.Errorf("terminal: start %s: %w", o.Path, err)
	}
	t := &Terminal{
		proc:   proc,
		pty:    master,
		output: NewQueue(),
		input:  NewQueue(),
		grace:  o.Grace,
		done:   make(chan struct{}),
	}
	// An answer that does not fit is dropped: waiting would stop the reading of output,
	// and the program may read its input only after writing.
	t.screen = newScreen(o.Rows, o.Cols, func(answer string) { _ = t.input.Put([]byte(answer), maxReplyBacklog) })
	go t.run()
	return t, nil
}

// Complete fills in defaults and checks ranges.
func (o *Options) Complete() error {
	if !filepath.IsAbs(o.Path) {
		return fmt.Errorf("path %q is not absolute", o.Path)
	}
	if o.Rows == 0 {
		o.Rows = defaultRows
	}
	if o.Cols == 0 {
		o.Cols = defaultCols
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	return checkSize(o.Rows, o.Cols)
}

// Command is the program, not yet on any terminal.
func (o *Options) Command() *exec.Cmd {
	env := o.Env
	if env == nil {
		env = []string{} // nil would mean the caller's own environment
	}
	return &exec.Cmd{Path: o.Path, Args: append([]string{o.Path}, o.Args...), Env: env, Dir: o.Dir}
}

func checkSize(rows, cols int) error {
	if rows < 1 || rows > maxSide || cols < 1 || cols > maxSide {
		return fmt.Errorf("size %dx%d is outside 1x1 to %dx%d", rows, cols, maxSide, maxSide)
	}
	return nil
}

// run owns the terminal: it starts every goroutine of it, waits for the program,
// and then for all of them.
func (t *Terminal) run() {
	defer close(t.done)
	var wrote, read, drawn sync.WaitGroup
	wrote.Go(t.writeInput)
	drawn.Go(t.drawOutput)
	read.Go(t.readOutput)

	t.exit = t.proc.Wait()
	// Where files have no deadlines (darwin), the kernel revokes the terminal of a
	// dead session leader, which ends the reading.
	_ = t.pty.SetReadDeadline(time.Now().Add(drainLimit))
	read.Wait()
	t.output.Close()
	drawn.Wait()
	t.input.Close()
	if err := t.pty.Close(); err != nil {
		t.closeErr = fmt.Errorf("terminal: close: %w", err)
	}
	wrote.Wait()
}

// readOutput reads what the program writes until the program is dead and nobody holds
// the terminal open, or reading is called off. It never waits for the screen: if
// drawing falls behind, the undrawn output gives way to the newest. What is skipped
// has mostly been overwritten or scrolled off by then; the screen may be wrong until
// the program redraws it.
func (t *Terminal) readOutput() {
	buf := make([]byte, 32<<10) // less than maxUndrawn, so that the newest always fits
	skipping := false
	for {
		// Before the reading: what a dead program wrote is there to be read.
		dead := t.proc.isDead()
		n, err := t.pty.Read(buf)
		if n > 0 && (skipping || t.output.Put(buf[:n], maxUndrawn) != nil) {
			t.output.Drop()
			newest := resume(buf[:n])
			skipping = newest == nil
			_ = t.output.Put(newest, maxUndrawn)
		}
		switch {
		case err == nil:
		case dead || errors.Is(err, os.ErrDeadlineExceeded):
			return
		default:
			// The program may have closed its terminal and can open it again, as
			// /dev/tty. Nothing but reading tells when.
			select {
			case <-t.proc.dead:
			case <-time.After(reopenWait):
			}
		}
	}
}

// resume returns output that can be drawn after a gap: the part of p from the first
// escape sequence or line end on, behind a CAN, which ends a sequence begun before
// the gap. It returns nil if p has no such part.
func resume(p []byte) []byte {
	const cancel = 0x18
	i := bytes.IndexAny(p, "\x1b\r\n")
	if i < 0 {
		return nil
	}
	return append([]byte{cancel}, p[i:]...)
}

// drawOutput moves the program's output to the screen until it ends.
func (t *Terminal) drawOutput() {
	buf := make([]byte, drawSize)
	for {
		n, ok := t.output.Take(buf)
		if !ok {
			return
		}
		t.screen.draw(buf[:n])
	}
}

// writeInput moves queued input into the pseudo-terminal. A failed write means that
// nobody has the terminal open, so the bytes have no reader and are dropped.
func (t *Terminal) writeInput() {
	buf := make([]byte, 4<<10)
	for {
		n, ok := t.input.Take(buf)
		if !ok {
			return
		}
		_, _ = t.pty.Write(buf[:n])
	}
}

// Write queues keys for the program, all of p or nothing. It never blocks: it
// fails with ErrBacklog when more than 1 MiB would be waiting for the program to
// read it, and with ErrExited when the program has ended. What was queued reaches
// the program in order, if it reads it.
func (t *Terminal) Write(p []byte) (int, error) {
	if err := t.input.Put(p, MaxBacklog); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Screen returns the visible text: one line per row, joined by newlines, without
// spaces at line ends and without empty lines at the end. After the program's end
// it is the last screen.
func (t *Terminal) Screen() string {
	return t.screen.text()
}

// Resize changes the size of the screen and tells the program (SIGWINCH). Sides
// are 1 to 500. After the program's end it fails with ErrExited.
func (t *Terminal) Resize(rows, cols int) error {
	if err := checkSize(rows, cols); err != nil {
		return fmt.Errorf("terminal: resize: %w", err)
	}
	// The screen first, so that what the program draws in answer finds it ready.
	t.screen.resize(rows, cols)
	if err := setSize(t.pty, rows, cols); err != nil {
		if t.proc.isDead() { // then run may have closed the pseudo-terminal
			return ErrExited
		}
		return fmt.Errorf("terminal: resize: %w", err)
	}
	return nil
}

// Pid returns the program's process id, which is also the id of its session and
// of its process group. It is meaningless once Done is closed.
func (t *Terminal) Pid() int {
	return t.proc.pid
}

// Done is closed when the program has been reaped, its output has been read to
// the end, and the terminal has released all it held.
func (t *Terminal) Done() <-chan struct{} {
	return t.done
}

// Exit returns how the program ended. Until Done is closed it returns a status
// with code -1 and no signal.
func (t *Terminal) Exit() Exit {
	select {
	case <-t.done:
		return t.exit
	default:
		return Exit{Code: -1}
	}
}

// Kill sends SIGKILL to the program's process group. It does not wait (see Done)
// and does nothing if the program has ended.
func (t *Terminal) Kill() {
	t.proc.Kill()
}

// Close ends the program and waits until everything is released: SIGTERM to the
// process group, and SIGKILL to what is left of the group as soon as the program
// is dead, or after Options.Grace. It may be called any number of times; every
// call returns after the end, with the same error, which concerns only the release
// of the pseudo-terminal.
//
// Descendants that left the process group are not ended. If they hold the
// terminal open, Close takes up to one second longer.
func (t *Terminal) Close() error {
	t.closeOnce.Do(func() {
		if t.grace > 0 && t.proc.Terminate() {
			timer := time.NewTimer(t.grace)
			defer timer.Stop()
			select {
			case <-t.done:
			case <-timer.C:
			}
		}
		t.proc.Kill()
		<-t.done
	})
	return t.closeErr
}
