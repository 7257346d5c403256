// Package mcp is the server that offers a client's tools to the Claude Code CLI inside a
// session, over the Model Context Protocol on stdin and stdout. It runs none of them: a
// call is its client's.
package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options configure a server.
type Options struct {
	Version string
	Tools   []byte // JSON: an array of objects with name, description and inputSchema
	// Listed is called once the CLI has listed the tools and can offer them.
	Listed func(context.Context) error
}

// tool keeps the schema as it is: decoded and encoded, its numbers and its order might
// change.
type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// Serve serves until the client goes away or ctx ends.
func Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser, o Options) error {
	var tools []tool
	if err := json.Unmarshal(o.Tools, &tools); err != nil {
		return fmt.Errorf("read the tools: %w", err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "ocp", Version: o.Version}, nil)
	for _, t := range tools {
		server.AddTool(&mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema}, neverRun)
	}
	var settling sync.WaitGroup
	var once sync.Once
	failed := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(reqCtx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "server/discover" {
				return nil, errOldProtocol
			}
			result, err := next(reqCtx, method, req)
			if session, ok := req.GetSession().(*mcp.ServerSession); ok && method == "tools/list" && err == nil {
				once.Do(func() {
					settling.Go(func() {
						if err := settle(ctx, session); err == nil {
							failed <- o.Listed(ctx)
						}
					})
				})
			}
			return result, err
		}
	})
	session, err := server.Connect(ctx, &mcp.IOTransport{Reader: in, Writer: out}, nil)
	if err != nil {
		cancel()
		return fmt.Errorf("serve tools: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = session.Close() })
	err = session.Wait()
	stop()
	cancel()
	settling.Wait()
	select {
	case listed := <-failed:
		if listed != nil {
			return listed
		}
	default:
	}
	return err
}

// errOldProtocol has the CLI speak a protocol of before 2026-07-28: in that one a server
// may not send a ping.
var errOldProtocol = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found"}

// neverRun answers no call: the CLI is told by a hook to make none, and an answer would
// have it ask the model again.
func neverRun(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// settleAfter are the waits between pings, after which the CLI can offer what it has
// listed. It takes tools over in a batch, 16 ms after it has read them, and says so to
// nobody; that it answers a ping after that time shows that its loop has come that far
// (2.1.332: 18 of 18 starts, also with six busy processes on two cores; without the
// waits, 4 of 10).
var settleAfter = []time.Duration{30 * time.Millisecond, 10 * time.Millisecond}

func settle(ctx context.Context, session *mcp.ServerSession) error {
	for _, wait := range settleAfter {
		if err := session.Ping(ctx, nil); err != nil {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
	return session.Ping(ctx, nil)
}
