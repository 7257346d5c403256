package server

import (
	"log/slog"
	"net/http"
	"time"
)

const (
	// idleTimeout is how long a connection may wait for its next request, so that idle
	// ones do not add up.
	idleTimeout = 2 * time.Minute
	// maxHeaderTaken is the most that is taken in of a request's line and headers, in
	// bytes: more than maxHeader, so that most of what is too large gets an answer in its
	// dialect.
	maxHeaderTaken = 256 << 10
)

// HTTP returns the HTTP server of the routes, with bounds for what comes before a request
// is one.
func (s *Server) HTTP() *http.Server {
	return &http.Server{
		Handler:                      s.Handler(),
		ReadHeaderTimeout:            s.options.HeaderTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeaderTaken,
		DisableGeneralOptionsHandler: true, // it would answer OPTIONS * without a look at it
		ErrorLog:                     slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelWarn),
	}
}
