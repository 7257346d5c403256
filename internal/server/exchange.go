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

	"ocp/internal/quota"
)

// exchange is one request and its response.
type exchange struct {
	w       http.ResponseWriter
	control *http.ResponseController
	r       *http.Request
	dialect *dialect
	id      string
	begun   time.Time
	status  int         // what was sent; zero while nothing was
	turn    *turnRecord // nil if the request is not for a turn
	content *content    // of the turn; nil unless Options.LogContent
	caller  string      // the hash of the key that was sent, if keys are wanted
	key     string      // the name of that key; may be empty
	limits  quota.Limits
}

// handler answers a request, or returns an error for route to answer and log. An
// error returned after the response was begun is only logged.
type handler func(x *exchange) error

// route is the adapter between handlers and net/http: the one place where requests
// get their id, errors are written, panics end and the log line is made. No methods
// means all. Only clients with a key get past it, if there are keys.
func (s *Server) route(d *dialect, h handler, methods ...string) http.Handler {
	return s.handle(d, s.guard, h, methods)
}

// open is a route that wants no key.
func (s *Server) open(d *dialect, h handler, methods ...string) http.Handler {
	return s.handle(d, func(*exchange) error { return nil }, h, methods)
}

func (s *Server) handle(d *dialect, guard, h handler, methods []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{
			w:       w,
			control: http.NewResponseController(w),
			r:       r,
			dialect: d,
			id:      "req_" + strings.ToLower(rand.Text()),
			begun:   time.Now(),
		}
		if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
			// A Content-Length besides is not seen here. Somebody in front may have gone by it,
			// and taken for the body what would be the next request (RFC 9112, 6.3).
			w.Header().Set("Connection", "close")
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		for _, name := range d.idHeaders {
			w.Header().Set(name, x.id)
		}
		err := s.run(x, guard, h, methods)
		begun := x.status != 0
		if err != nil && !begun {
			s.writeError(x, err)
		}
		if x.turn != nil {
			s.tally.count(x.turn, err)
			s.over(x.turn, err)
		}
		s.log(x, err)
		if _, ok := err.(*panicked); ok && begun {
			panic(http.ErrAbortHandler) // half a response must not seem whole
		}
	})
}

func (s *Server) run(x *exchange, guard, h handler, methods []string) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{value: v, stack: debug.Stack()}
		}
	}()
	if x.r.ContentLength != 0 {
		s.limitReading(x) // also of what net/http reads behind a refusal
	}
	if err := checkHeader(x.r); err != nil {
		return err
	}
	if err := s.checkHost(x.r.Host); err != nil {
		return err
	}
	preflight, err := s.checkPage(x, methods)
	if err != nil {
		return err
	}
	if preflight {
		return s.writeNothing(x)
	}
	if err := guard(x); err != nil {
		return err
	}
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

// writeNothing sends a response without a body.
func (s *Server) writeNothing(x *exchange) error {
	x.status = http.StatusNoContent
	x.w.WriteHeader(x.status)
	return nil
}

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
