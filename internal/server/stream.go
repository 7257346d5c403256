package server

import (
	"net/http"
	"sync"
	"time"
)

// stream writes an SSE response. The status is sent with the first bytes, be they an
// event's or a keep-alive's; until then the request can still be answered otherwise.
type stream struct {
	x            *exchange
	keepAlive    time.Duration
	writeTimeout time.Duration
	fail         func(error) // told when a keep-alive cannot be written

	mu     sync.Mutex
	timer  *time.Timer // writes the next keep-alive; guarded by mu
	closed bool        // guarded by mu
	err    error       // the first write that failed; guarded by mu
}

// newStream makes a stream whose client is never left without a byte for longer than
// keepAlive. close must be called.
func (s *Server) newStream(x *exchange, fail func(error)) *stream {
	st := &stream{x: x, keepAlive: s.options.KeepAlive, writeTimeout: s.options.WriteTimeout, fail: fail}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.timer = time.AfterFunc(st.keepAlive, st.ping)
	return st
}

// send writes whole frames and flushes them.
func (st *stream) send(frames []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.write(frames)
}

// ping runs when nothing was written for keepAlive. If a write is under way after all,
// there is no silence to end, and that write sets the timer anew.
func (st *stream) ping() {
	if !st.mu.TryLock() {
		return
	}
	defer st.mu.Unlock()
	if st.closed {
		return
	}
	if err := st.write([]byte(st.x.dialect.keepAlive)); err != nil {
		st.fail(err)
	}
}

// close ends the keep-alives; nothing is written after it. It reports whether the
// response was begun, and so cannot be another one any more.
func (st *stream) close() (begun bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.closed = true
	st.timer.Stop()
	return st.x.status != 0
}

// abort closes the stream with a last frame, unless it was not begun: then it returns
// false and the request is still to be answered.
func (st *stream) abort(frame []byte) (begun bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.closed = true
	st.timer.Stop()
	if st.x.status == 0 {
		return false
	}
	_ = st.write(frame) // nobody is left to be told
	return true
}

// write begins the response if need be. The caller holds mu.
func (st *stream) write(p []byte) error {
	if st.err != nil {
		return st.err
	}
	if st.x.status == 0 {
		st.begin()
	}
	st.err = st.writeNow(p)
	if !st.closed {
		st.timer.Reset(st.keepAlive)
	}
	return st.err
}

func (st *stream) begin() {
	h := st.x.w.Header()
	// With the charset, since some clients take text without one for Latin-1.
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // nginx: pass on at once
	st.x.status = http.StatusOK
	st.x.w.WriteHeader(http.StatusOK)
}

func (st *stream) writeNow(p []byte) error {
	if err := st.x.control.SetWriteDeadline(time.Now().Add(st.writeTimeout)); err != nil {
		return err
	}
	if _, err := st.x.w.Write(p); err != nil {
		return err
	}
	if err := st.x.control.Flush(); err != nil || st.x.r.ProtoMajor == 1 {
		return err
	}
	// Over HTTP/2 it would end the response when it passes, with no write under way (Go 1.26).
	return st.x.control.SetWriteDeadline(time.Time{})
}
