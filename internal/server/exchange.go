package server

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// exchange is one request and its response.
type exchange struct {
	w       http.ResponseWriter
	control *http.ResponseController
	r       *http.Request
	id      string
	begun   time.Time
	status  int         // what was sent; zero while nothing was
	turn    *turnRecord // nil if the request is not for a turn
}

// handler answers a request, or returns an error for route to answer and log. An
// error returned after the response was begun is only logged.
type handler func(x *exchange) error

// route is the adapter between handlers and net/http: the one place where requests
// get their id, errors are written, panics end and the log line is made. No methods
// means all.
func (s *Server) route(h handler, methods ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{
			w:       w,
			control: http.NewResponseController(w),
			r:       r,
			id:      "req_" + strings.ToLower(rand.Text()),
			begun:   time.Now(),
		}
		w.Header().Set("X-Request-Id", x.id)
		err := x.run(h, methods)
		begun := x.status != 0
		if err != nil && !begun {
			s.writeError(x, err)
		}
		s.log(x, err)
		if _, ok := err.(*panicked); ok && begun {
			panic(http.ErrAbortHandler) // half a response must not seem whole
		}
	})
}

func (x *exchange) run(h handler, methods []string) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{value: v, stack: debug.Stack()}
		}
	}()
	if len(methods) > 0 && !slices.Contains(methods, x.r.Method) {
		x.w.Header().Set("Allow", strings.Join(methods, ", "))
		return methodNotAllowed(x.r.Method, methods)
	}
	return h(x)
}

// panicked is what became of a panic in a handler.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// writeJSON sends a whole response. A failure to write is the client's going.
func (s *Server) writeJSON(x *exchange, status int, body []byte) error {
	h := x.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.status = status
	_ = x.control.SetWriteDeadline(time.Now().Add(s.options.WriteTimeout))
	x.w.WriteHeader(status)
	if x.r.Method == http.MethodHead {
		return nil
	}
	if _, err := x.w.Write(body); err != nil {
		return clientGone(err)
	}
	return nil
}
