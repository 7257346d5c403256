package claude

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"ocp/internal/prompt"
	"ocp/internal/transcript"
)

const (
	// openEvery is how often a feed looks whether the CLI has come to its FIFO.
	openEvery = 2 * time.Millisecond
	// feedBound is how long the CLI may take to read its system text.
	feedBound = 30 * time.Second
)

// feed gives a session its conversation: it waits until the CLI opens the FIFO of its
// system text and until there is a conversation, puts the transcript in place, which the
// CLI looks for only after that, and writes the system text (facts, section 19).
type feed struct {
	place place
	told  func(prompt.Conversation) []transcript.Entry // what the CLI is to believe it has told the model
	take  chan prompt.Conversation

	opened chan struct{} // closed when the CLI has the FIFO open
	done   chan struct{} // closed when all is given, or err is set
	size   int64         // of the transcript as written; set before done is closed
	err    error         // set before done is closed

	once     sync.Once
	canceled chan struct{}
}

var errFeedClosed = errors.New("the session was closed before it took its conversation")

func startFeed(p place, told func(prompt.Conversation) []transcript.Entry) *feed {
	f := &feed{
		place: p, told: told, take: make(chan prompt.Conversation, 1),
		opened: make(chan struct{}), done: make(chan struct{}), canceled: make(chan struct{}),
	}
	go func() {
		defer close(f.done)
		f.size, f.err = f.run()
	}()
	return f
}

// give hands over the conversation, once.
func (f *feed) give(c prompt.Conversation) { f.take <- c }

func (f *feed) run() (int64, error) {
	fifo, err := f.open()
	if err != nil {
		return 0, fmt.Errorf("open system text FIFO: %w", err)
	}
	defer fifo.Close()
	close(f.opened)
	var c prompt.Conversation
	select {
	case c = <-f.take:
	case <-f.canceled:
		return 0, errFeedClosed
	}
	size, err := f.place.writeTranscript(entries(c, f.told(c)...))
	if err != nil {
		return 0, err
	}
	_ = fifo.SetWriteDeadline(time.Now().Add(feedBound))
	if _, err := fifo.WriteString(c.System); err != nil {
		return 0, fmt.Errorf("write system text: %w", err)
	}
	return size, nil
}

// open waits until the CLI has the other end of the FIFO open. It looks every openEvery,
// since an open that blocks could not be called off.
func (f *feed) open() (*os.File, error) {
	look := time.NewTicker(openEvery)
	defer look.Stop()
	for {
		fifo, err := os.OpenFile(f.place.system, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if !errors.Is(err, syscall.ENXIO) { // ENXIO: nobody reads yet
			return fifo, err
		}
		select {
		case <-f.canceled:
			return nil, errFeedClosed
		case <-look.C:
		}
	}
}

// waiting returns an error while the CLI has not come for its system text.
func (f *feed) waiting() error {
	select {
	case <-f.opened:
		return nil
	default:
		return errors.New("it did not get as far as reading its system text")
	}
}

// close calls the feed off and waits for it. The session's process must be gone.
func (f *feed) close() {
	f.once.Do(func() { close(f.canceled) })
	<-f.done
}
