package messagesapi

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a server and a client of its own until the end of the test.
func start(t *testing.T, o Options) (*Server, *http.Client) {
	t.Helper()
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		s.Close()
	})
	return s, &http.Client{Transport: transport}
}

// bound is a context that turns a hang of the code under test into a failure.
func bound(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

const streamed = `{"model":"m-1","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`

const unstreamed = `{"model":"m-1","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`

func post(t *testing.T, ctx context.Context, c *http.Client, url, body string) *http.Response {
	t.Helper()
	response, err := tryPost(ctx, c, url, body)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

func tryPost(ctx context.Context, c *http.Client, url, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/messages", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	return c.Do(request)
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("after %q: %v", b, err)
	}
	return string(b)
}
