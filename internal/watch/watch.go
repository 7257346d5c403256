// Package watch lets an operator see what the sessions of a running ocp show: a server on
// a Unix socket, which its file keeps to its user, and the client of it. It only shows:
// nothing can be typed or changed by it.
package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// lookEvery is how often a screen that is watched is looked at.
	lookEvery = 100 * time.Millisecond
	// answerBound is how long the list of sessions may take.
	answerBound = 5 * time.Second
	// maxScreen bounds one message of the server, in bytes. A screen has at most 500 times
	// 500 cells; OCP's have 30 times 100.
	maxScreen = 16 << 20
)

// List is what runs.
type List struct {
	Tmux     string    `json:"tmux,omitempty"` // the tmux server that the sessions are on, if they are
	Sessions []Session `json:"sessions"`
}

// Session is one that runs.
type Session struct {
	ID      string    `json:"id"` // also that of its session of tmux
	State   string    `json:"state"`
	Model   string    `json:"model,omitempty"`
	Started time.Time `json:"started"`

	// Screen and Ended are for the server alone.
	Screen func() string   `json:"-"`
	Ended  <-chan struct{} `json:"-"`
}

// Server tells who asks at its socket.
type Server struct {
	list   func() List
	http   *http.Server
	served sync.WaitGroup
}

// Serve listens on a Unix socket at the path, at most about 100 bytes long, in a folder
// that keeps others out. list says what runs.
func Serve(socket string, list func() List) (*Server, error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen for who watches: %w", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("listen for who watches: %w", err), listener.Close())
	}
	s := &Server{list: list}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sessions", s.sessions)
	mux.HandleFunc("GET /sessions/{id}/screens", s.screens)
	s.http = &http.Server{Handler: s.counted(mux), ReadTimeout: answerBound, MaxHeaderBytes: 16 << 10}
	s.served.Go(func() { _ = s.http.Serve(listener) })
	return s, nil
}

// counted lets Close wait for all handlers.
func (s *Server) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.served.Add(1)
		defer s.served.Done()
		h.ServeHTTP(w, r)
	})
}

// Close breaks off who watches and waits.
func (s *Server) Close() error {
	err := s.http.Close()
	s.served.Wait()
	return err
}

func (s *Server) sessions(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.list())
}

// frame is one screen, or the end of the session.
type frame struct {
	Screen string `json:"screen"`
	Ended  bool   `json:"ended,omitempty"`
}

// screens sends a session's screen, and again at each change, to the session's end.
func (s *Server) screens(w http.ResponseWriter, r *http.Request) {
	session, ok := find(s.list().Sessions, r.PathValue("id"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	send := json.NewEncoder(w)
	flush := http.NewResponseController(w)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for last, first := "", true; ; {
		ended := isClosed(session.Ended) // before the look: the last screen is shown too
		screen := session.Screen()
		if first || screen != last || ended {
			if send.Encode(frame{screen, ended}) != nil || flush.Flush() != nil || ended {
				return
			}
		}
		last, first = screen, false
		select {
		case <-look.C:
		case <-session.Ended:
		case <-r.Context().Done():
			return
		}
	}
}

func find(list []Session, id string) (Session, bool) {
	for _, s := range list {
		if s.ID == id {
			return s, true
		}
	}
	return Session{}, false
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// ErrNobody is returned if no ocp listens at the socket.
var ErrNobody = errors.New("no ocp is running there")

// ErrNoSession is returned for a session that does not run, or no more.
var ErrNoSession = errors.New("there is no such session")

// Sessions asks at the socket what runs. Errors: ErrNobody, or that the answer is none.
func Sessions(ctx context.Context, socket string) (List, error) {
	ctx, cancel := context.WithTimeout(ctx, answerBound)
	defer cancel()
	body, err := get(ctx, socket, "/sessions")
	if err != nil {
		return List{}, err
	}
	defer body.Close()
	var list List
	if err := json.NewDecoder(io.LimitReader(body, maxScreen)).Decode(&list); err != nil {
		return List{}, fmt.Errorf("read the list of sessions: %w", err)
	}
	return list, nil
}

// Screens yields the screens of a session, beginning with that of now, to its end or
// ctx's. Errors: ErrNobody, ErrNoSession, or that it broke off.
func Screens(ctx context.Context, socket, id string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		body, err := get(ctx, socket, "/sessions/"+url.PathEscape(id)+"/screens")
		if err != nil {
			yield("", err)
			return
		}
		defer body.Close()
		for decoder := json.NewDecoder(body); ; {
			var f frame
			if err := decoder.Decode(&f); err != nil {
				if ctx.Err() == nil {
					yield("", fmt.Errorf("ocp has broken off: %w", err))
				}
				return
			}
			if !yield(f.Screen, nil) || f.Ended {
				return
			}
		}
	}
}

func get(ctx context.Context, socket, path string) (io.ReadCloser, error) {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://ocp"+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, ErrNobody
	case err != nil:
		return nil, fmt.Errorf("ask ocp: %w", err)
	case resp.StatusCode == http.StatusNotFound:
		return nil, errors.Join(ErrNoSession, resp.Body.Close())
	case resp.StatusCode != http.StatusOK:
		return nil, errors.Join(fmt.Errorf("ask ocp: it answers %s", resp.Status), resp.Body.Close())
	}
	return resp.Body, nil
}
