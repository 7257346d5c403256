package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves one session with that screen until the test ends.
func serve(t *testing.T, s Session) (socket string, server *Server) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	server, err := Serve(socket, func() List { return List{Tmux: "ocp-x", Sessions: []Session{s}} })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return socket, server
}

func TestSessions(t *testing.T) {
	want := Session{ID: "abc", State: "running", Model: "m", Started: time.Now()}
	socket, server := serve(t, want)
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v; want it closed to others", info.Mode(), err)
	}
	got, err := Sessions(t.Context(), socket)
	if diff := cmp.Diff(List{Tmux: "ocp-x", Sessions: []Session{want}}, got, cmpopts.EquateApproxTime(0)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	server.Close()
	if _, err := Sessions(t.Context(), socket); !errors.Is(err, ErrNobody) {
		t.Errorf("after its end: %v, want ErrNobody", err)
	}
}

// A watcher gets the screen of now, each change, and the last screen; then it ends.
func TestScreens(t *testing.T) {
	var screen atomic.Value
	screen.Store("first")
	ended := make(chan struct{})
	socket, _ := serve(t, Session{ID: "abc", Screen: func() string { return screen.Load().(string) }, Ended: ended})
	next := map[string]func(){
		"first": func() { screen.Store("second ❯\n\ttab") },
		"second ❯\n\ttab": func() {
			screen.Store("last")
			close(ended)
		},
	}
	var got []string
	for s, err := range Screens(t.Context(), socket, "abc") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s)
		if change := next[s]; change != nil {
			change()
		}
	}
	if diff := cmp.Diff([]string{"first", "second ❯\n\ttab", "last"}, got); diff != "" {
		t.Errorf("screens (-want +got):\n%s", diff)
	}
}

func TestScreensEnd(t *testing.T) {
	open := Session{ID: "abc", Screen: func() string { return "x" }, Ended: make(chan struct{})}
	for _, test := range []struct {
		name, id string
		then     func(*Server, context.CancelFunc)
		want     error
	}{
		{"no such session", "abd", nil, ErrNoSession},
		{"the watcher leaves", "abc", func(_ *Server, cancel context.CancelFunc) { cancel() }, nil},
		{"the server closes", "abc", func(s *Server, _ context.CancelFunc) { s.Close() }, errAny},
	} {
		t.Run(test.name, func(t *testing.T) {
			socket, server := serve(t, open)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var last error
			for _, err := range Screens(ctx, socket, test.id) {
				if last = err; err == nil {
					test.then(server, cancel)
				}
			}
			if !errors.Is(last, test.want) && (test.want != errAny || last == nil) {
				t.Errorf("ended with %v, want %v", last, test.want)
			}
		})
	}
}

var errAny = errors.New("any error")
