package tmux

import (
	"encoding/json"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"ocp/internal/terminal"
)

// message is what a pane and its server say to each other, one JSON value after the other.
type message struct {
	Pane string `json:"pane,omitempty"` // a pane asks for its program

	Run *program `json:"run,omitempty"` // the answer

	Pid   int           `json:"pid,omitempty"`   // the program runs
	Errno syscall.Errno `json:"errno,omitempty"` // or it cannot, for this reason
	Error string        `json:"error,omitempty"` // in words

	Signal syscall.Signal `json:"signal,omitempty"` // for the program's group: SIGTERM or SIGKILL

	Exit *terminal.Exit `json:"exit,omitempty"` // the program has ended, and its output is drawn
}

// program is what to run.
type program struct {
	Path string   `json:"path"`
	Args []string `json:"args"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
}

// link is one end of a pane's connection.
type link struct {
	conn net.Conn
	in   *json.Decoder

	mu  sync.Mutex
	out *json.Encoder // guarded by mu
}

// sendBound is how long one message may take to send: the other end always reads.
const sendBound = 2 * time.Second

func newLink(conn net.Conn) *link {
	return &link{conn: conn, in: json.NewDecoder(conn), out: json.NewEncoder(conn)}
}

func (l *link) send(m message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(sendBound))
	return l.out.Encode(m)
}

// receive waits for a message, for ever if within is 0.
func (l *link) receive(m *message, within time.Duration) error {
	if within > 0 {
		_ = l.conn.SetReadDeadline(time.Now().Add(within))
		defer func() { _ = l.conn.SetReadDeadline(time.Time{}) }()
	}
	return l.in.Decode(m)
}

// partBound is how long a pane's process may take to end when it is let go.
const partBound = 5 * time.Second

// part lets the pane go and waits until its process has ended, which closes its end.
func (l *link) part() {
	defer l.close()
	if half, ok := l.conn.(*net.UnixConn); ok {
		_ = half.CloseWrite()
	}
	_ = l.conn.SetReadDeadline(time.Now().Add(partBound))
	_, _ = io.Copy(io.Discard, l.conn)
}

func (l *link) close() { _ = l.conn.Close() }
