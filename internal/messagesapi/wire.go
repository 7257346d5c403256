package messagesapi

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"strconv"
)

// wire writes one HTTP response and tells the record what went out. It belongs to
// the goroutine of the request.
type wire struct {
	w         http.ResponseWriter
	control   *http.ResponseController
	rec       *Recorded
	requestID string
	opened    bool // the header has been sent

	sizes    []int // Answer.WriteSizes
	nextSize int   // index in sizes of the next write
	coalesce bool  // Answer.Coalesce
}

func newWire(w http.ResponseWriter, rec *Recorded) *wire {
	id := "req_01" + rand.Text()[:22]
	w.Header().Set("Request-Id", id)
	return &wire{w: w, control: http.NewResponseController(w), rec: rec, requestID: id}
}

// openStream sends the header of an SSE response, once.
func (w *wire) openStream() error {
	if w.opened {
		return nil
	}
	w.opened = true
	w.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.w.Header().Set("Cache-Control", "no-cache")
	w.w.WriteHeader(http.StatusOK)
	err := w.control.Flush()
	w.rec.wrote()
	return err
}

// event sends an SSE event in writes of the wanted sizes.
func (w *wire) event(e event) error {
	rest := e.bytes()
	for len(rest) > 0 {
		n := len(rest)
		if len(w.sizes) > 0 {
			n = min(n, w.sizes[w.nextSize%len(w.sizes)])
			w.nextSize++
		}
		if err := w.write(rest[:n], w.coalesce); err != nil {
			return err
		}
		rest = rest[n:]
	}
	w.rec.sent(e.name)
	return nil
}

// body sends a whole response, or the beginning of one of the given length.
func (w *wire) body(status int, contentType string, body []byte, length int) error {
	w.opened = true
	w.w.Header().Set("Content-Type", contentType)
	w.w.Header().Set("Content-Length", strconv.Itoa(length))
	w.w.WriteHeader(status)
	return w.write(body, false)
}

func (w *wire) json(status int, v any) error {
	body := encode(v)
	return w.body(status, "application/json", body, len(body))
}

func (w *wire) empty(status int) error {
	return w.body(status, "text/plain; charset=utf-8", nil, 0)
}

func (w *wire) apiError(e APIError) error {
	for name, values := range e.Header {
		for _, v := range values {
			w.w.Header().Add(name, v)
		}
	}
	body := e.body(w.requestID)
	return w.body(e.Status, "application/json", body, len(body))
}

func (w *wire) write(b []byte, buffered bool) error {
	if _, err := w.w.Write(b); err != nil {
		return err
	}
	if !buffered {
		if err := w.control.Flush(); err != nil {
			return err
		}
	}
	w.rec.wrote()
	return nil
}

// flush sends what is buffered. A connection that has gone shows itself at the next
// write or through the request's context, so the error is left to them.
func (w *wire) flush() {
	if w.opened {
		_ = w.control.Flush()
	}
}

// cut takes the connection from the HTTP server and closes it, with a reset if
// asked. What has been written goes out first; nothing that ends the body does. The
// error is never nil.
func (w *wire) cut(reset bool) error {
	w.flush()
	conn, _, err := w.control.Hijack()
	if err != nil {
		return fmt.Errorf("take the connection: %w", err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
	return errFaulted
}
