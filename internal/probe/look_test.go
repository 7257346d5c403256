package probe

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ocp/internal/config"
)

// answering is the address of a server that answers every request with a body.
func answering(t *testing.T, body string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(body)) }))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// answeringTLS is the same with a certificate that nobody trusts.
func answeringTLS(t *testing.T, body string) string {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(body)) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestLookAtPort(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	for name, test := range map[string]struct {
		listen string
		want   Port
	}{
		"free":              {address, Port{}},
		"any":               {"127.0.0.1:0", Port{}},
		"none":              {"127.0.0.1", Port{Unasked: true}},
		"an ocp's":          {answering(t, `{"status":"ok","version":"1.2"}`), Port{Taken: true, OCP: "1.2"}},
		"an ocp's with TLS": {answeringTLS(t, `{"status":"ok","version":"1.3"}`), Port{Taken: true, OCP: "1.3"}},
		"another's":         {answering(t, `{"status":"up","version":"1.2"}`), Port{Taken: true}},
		"one of no JSON":    {answering(t, strings.Repeat("<", 1<<20)), Port{Taken: true}},
		"on all networks":   {":" + portOf(answering(t, `{"status":"ok","version":"3"}`)), Port{Taken: true, OCP: "3"}},
	} {
		if got := lookAtPort(t.Context(), test.listen); got != test.want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if got := lookAtPort(t.Context(), "192.0.2.1:1"); got.Err == nil {
		t.Errorf("an address of no network: got %+v", got)
	}
}

// Fix does what is safe, says it, and does nothing the second time.
func TestFix(t *testing.T) {
	dir := t.TempDir()
	keys, state := filepath.Join(dir, "keys"), filepath.Join(dir, "state")
	if err := os.WriteFile(keys, []byte("sha256:"+strings.Repeat("a", 64)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + dir, "PATH=/nowhere"}
	look := func() *Setup {
		return Look(t.Context(), config.Serve{APIKeyFile: keys, StateDir: state, Listen: "127.0.0.1:0"}, Surroundings{Env: env})
	}
	done, err := look().Fix()
	if want := "closed " + keys + " to others; made " + state; err != nil || strings.Join(done, "; ") != want {
		t.Errorf("got %q, %v", done, err)
	}
	if err := os.MkdirAll(filepath.Join(state, "sessions", "one"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(state, 0o755); err != nil {
		t.Fatal(err)
	}
	done, err = look().Fix()
	if err != nil || len(done) != 2 || !strings.HasPrefix(done[0], "closed "+state) || !strings.HasPrefix(done[1], "removed 1 sessions") {
		t.Errorf("got %q, %v", done, err)
	}
	s := look()
	if done, err := s.Fix(); err != nil || len(done) > 0 {
		t.Errorf("again: got %q, %v", done, err)
	}
	if got := s.stateDir(); got.Status != OK {
		t.Errorf("got %+v", got)
	}
	if got := s.settings(); got.Status != OK {
		t.Errorf("got %+v", got)
	}
	if got := s.instance(); got.Status != OK {
		t.Errorf("got %+v", got)
	}
}

// Fix leaves alone what is not ocp's.
func TestFixLeavesOthersAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "diary"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := Look(t.Context(), config.Serve{StateDir: dir, Listen: "x"}, Surroundings{Env: []string{"HOME=" + dir}})
	if done, err := s.Fix(); err != nil || len(done) > 0 {
		t.Errorf("got %q, %v", done, err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the folder is %v, %v", info.Mode(), err)
	}
}
