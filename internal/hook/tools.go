package hook

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
)

// ToolsPath is where a session's own server asks for the tools it is to offer (GET), and
// says that the CLI has taken them (POST).
const ToolsPath = "/tools"

// maxTools bounds what is read of the tools of a session, in bytes: they came in a
// request's body.
const maxTools = 64 << 20

// Offer gives a session tools, in the form that FetchTools returns, before it has started.
// Its SessionStart is then answered only when the CLI has listed them.
func (t *Route) Offer(tools []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tools, t.listed = tools, make(chan struct{})
}

// Listed reports whether the CLI has taken the session's tools, if it has any.
func (t *Route) Listed() bool {
	_, listed := t.offered()
	select {
	case <-listed:
		return true
	default:
		return listed == nil
	}
}

func (t *Route) offered() (tools []byte, listed chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tools, t.listed
}

// awaitListed waits until the session's tools were listed; false if that is not to be.
func (t *Route) awaitListed(ctx context.Context) bool {
	_, listed := t.offered()
	if listed == nil {
		return true
	}
	select {
	case <-listed:
		return true
	case <-t.closed:
	case <-ctx.Done():
	}
	return false
}

func (r *Receiver) serveTools(w http.ResponseWriter, req *http.Request) {
	route := r.route(req.Header.Get(SecretHeader))
	if route == nil {
		r.refuse(w, http.StatusForbidden, "unknown session")
		return
	}
	tools, _ := route.offered()
	if tools == nil {
		tools = []byte("[]")
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(tools)
}

func (r *Receiver) toolsListed(w http.ResponseWriter, req *http.Request) {
	route := r.route(req.Header.Get(SecretHeader))
	if route == nil {
		r.refuse(w, http.StatusForbidden, "unknown session")
		return
	}
	route.mu.Lock()
	defer route.mu.Unlock()
	select {
	case <-route.listed:
	default:
		if route.listed != nil {
			close(route.listed)
		}
	}
}

// FetchTools returns what the session was given by Offer, or an empty list. With
// ToolsListed it is what the hidden command `ocp mcp` does inside a session.
func FetchTools(ctx context.Context, socket, secret string) ([]byte, error) {
	tools, err := send(ctx, socket, secret, http.MethodGet, ToolsPath, nil, maxTools)
	if err != nil {
		return nil, fmt.Errorf("fetch tools: %w", err)
	}
	return tools, nil
}

// ToolsListed says that the CLI has taken the session's tools.
func ToolsListed(ctx context.Context, socket, secret string) error {
	if _, err := send(ctx, socket, secret, http.MethodPost, ToolsPath, nil, maxAnswer); err != nil {
		return fmt.Errorf("tell that the tools were listed: %w", err)
	}
	return nil
}

// send sends a request to the receiver at the Unix socket and returns the body of its
// answer, which must be a good one.
func send(ctx context.Context, socket, secret, method, path string, body io.Reader, most int64) ([]byte, error) {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://ocp"+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set(SecretHeader, secret)
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("refused with %s: %s", resp.Status, answer)
	}
	return answer, err
}
