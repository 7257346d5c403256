package server

import (
	"errors"
	"net/http"
)

// A Mount is a route that another package answers. Its requests go the way of all others:
// what a web page of another origin sends is refused, and so is a request without a key if
// keys are wanted.
type Mount struct {
	Path string // as http.ServeMux takes it, without a method: it answers GET and HEAD
	Form bool   // it also answers POST, with a key in the form's field "key"
	Open bool   // it is called without a key too, and told so

	// Serve answers. allowed is false only if the mount is open, keys are wanted and none
	// that is known was sent. The request's context ends with Drain and Shutdown too.
	Serve func(w http.ResponseWriter, r *http.Request, allowed bool)
}

// maxForm bounds a form's body, in bytes.
const maxForm = 4 << 10

func (s *Server) mount(m Mount) http.Handler {
	methods := []string{http.MethodGet, http.MethodHead}
	if m.Form {
		methods = append(methods, http.MethodPost)
	}
	allowed := func(x *exchange) error {
		if x.r.Method == http.MethodPost {
			s.limitReading(x)
			x.r.Body = http.MaxBytesReader(x.w, x.r.Body, maxForm)
			if key := x.r.PostFormValue("key"); key != "" {
				x.r.Header.Set("X-Api-Key", key)
			}
		}
		return s.guard(x)
	}
	serve := func(x *exchange, allowed bool) error {
		ctx, cancel := endsWith(x.r.Context(), s.pages)
		defer cancel(nil)
		m.Serve(&mounted{x.w, x}, x.r.WithContext(ctx), allowed)
		return nil
	}
	if !m.Open {
		return s.handle(openaiDialect, allowed, func(x *exchange) error { return serve(x, true) }, methods)
	}
	return s.open(openaiDialect, func(x *exchange) error {
		err := allowed(x)
		if err != nil && !isUnauthorized(err) {
			return err
		}
		x.w.Header().Del("WWW-Authenticate") // a browser would ask for a password
		return serve(x, err == nil)
	}, methods...)
}

func isUnauthorized(err error) bool {
	f, ok := errors.AsType[*fault](err)
	return ok && f.status == http.StatusUnauthorized
}

// mounted notes the status that a mount sends, for the log.
type mounted struct {
	http.ResponseWriter
	x *exchange
}

// Unwrap is for http.ResponseController.
func (m *mounted) Unwrap() http.ResponseWriter { return m.ResponseWriter }

func (m *mounted) WriteHeader(status int) {
	m.x.status = status
	m.ResponseWriter.WriteHeader(status)
}

func (m *mounted) Write(p []byte) (int, error) {
	if m.x.status == 0 {
		m.x.status = http.StatusOK
	}
	return m.ResponseWriter.Write(p)
}
