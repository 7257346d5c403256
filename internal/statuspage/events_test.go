package statuspage

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ocp/internal/server"
)

// follower is a browser that follows.
type follower struct {
	header http.Header
	status int
	writes chan string
	fail   bool
}

func newFollower() *follower {
	return &follower{header: http.Header{}, status: http.StatusOK, writes: make(chan string, 1000)}
}

func (f *follower) Header() http.Header              { return f.header }
func (f *follower) WriteHeader(status int)           { f.status = status }
func (f *follower) Flush()                           {}
func (f *follower) SetWriteDeadline(time.Time) error { return nil }
func (f *follower) Write(p []byte) (int, error) {
	if f.fail {
		return 0, errors.New("gone")
	}
	f.writes <- string(p)
	return len(p), nil
}

// follow has the page followed until the context ends.
func follow(ctx context.Context, p *Page, f *follower) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		p.events(f, httptest.NewRequest(http.MethodGet, "/status/events", nil).WithContext(ctx), true)
		close(done)
	}()
	return done
}

// ids are those of the sections that came in one write.
func ids(t *testing.T, frames string) string {
	t.Helper()
	var list []string
	for _, data := range strings.Split(strings.TrimSuffix(frames, "\n\n"), "\n\n") {
		id, _ := frame(t, data)
		list = append(list, id)
	}
	return strings.Join(list, " ")
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{Status: status})
		ctx, cancel := context.WithCancel(t.Context())
		f := newFollower()
		done := follow(ctx, p, f)
		if got := ids(t, <-f.writes); got != "state load turns latency failures exact usage" {
			t.Errorf("at first there came %s", got)
		}
		begun := time.Now()
		p.Observe(server.Trace{ID: "r", Model: "opus", Begun: begun, Admitted: begun})
		if got := ids(t, <-f.writes); got != "turns" {
			t.Errorf("of a turn that begins there came %s", got)
		}
		if waited := time.Since(begun); waited > freshFor {
			t.Errorf("it came %v later", waited)
		}
		if got := ids(t, <-f.writes); got != "turns" || time.Since(begun) > every+freshFor { // its figures grow
			t.Errorf("of a turn that runs there came %s", got)
		}
		end := good("r", begun)
		p.Observe(end)
		if got := ids(t, <-f.writes); got != "turns latency exact usage" {
			t.Errorf("of a turn that is over there came %s", got)
		}
		quiet := time.Now()
		if got := <-f.writes; got != ": nothing new\n\n" || time.Since(quiet) > silence+every {
			t.Errorf("in silence there came %q after %v", got, time.Since(quiet))
		}
		cancel()
		<-done
		if len(p.listeners) > 0 {
			t.Error("the listener has not left")
		}
	})
}

// TestEventsAreBounded has many listeners of which none reads, and more than there is
// room for.
func TestEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{Status: status})
		ctx, cancel := context.WithCancel(t.Context())
		var all []<-chan struct{}
		for range mostListeners {
			all = append(all, follow(ctx, p, newFollower()))
		}
		synctest.Wait()
		late := newFollower()
		<-follow(ctx, p, late)
		if late.status != http.StatusServiceUnavailable || late.header.Get("Retry-After") == "" {
			t.Errorf("one more got %d, %v", late.status, late.header)
		}
		for range 1000 {
			p.Observe(server.Trace{ID: "r", Begun: time.Now()}) // never blocks
		}
		cancel()
		for _, done := range all {
			<-done
		}
		gone := newFollower()
		gone.fail = true
		<-follow(t.Context(), p, gone)
		if len(p.listeners) > 0 {
			t.Errorf("%d listeners have not left", len(p.listeners))
		}
	})
}
