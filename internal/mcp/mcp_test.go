package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The tools are listed as they are, calls get no answer, and Listed is called once the
// client has answered pings after it has listed them.
func TestServe(t *testing.T) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	const schema = `{"required":["z"],"type":"object","properties":{"z":{"maximum":1e30,"type":"number"},"a":{}},"x":12345678901234567890}`
	listed := make(chan struct{})
	served := make(chan error, 1)
	go func() {
		err := Serve(t.Context(), in, out, Options{
			Tools:  []byte(`[{"name":"f","description":"d \u2028 é","inputSchema":` + schema + `}]`),
			Listed: func(context.Context) error { close(listed); return nil },
		})
		_ = out.Close()
		served <- err
	}()
	say := func(line string) {
		if _, err := io.WriteString(toServer, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	go func() {
		say(`{"jsonrpc":"2.0","id":"probe","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
		say(`{"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}},"jsonrpc":"2.0","id":0}`)
		say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		say(`{"method":"tools/call","params":{"name":"f","arguments":{"z":1}},"jsonrpc":"2.0","id":7}`)
		say(`{"method":"tools/list","jsonrpc":"2.0","id":1}`)
	}()
	lines := bufio.NewScanner(fromServer)
	pings := 0
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Result struct {
				Tools []struct {
					Name, Description string
					Schema            json.RawMessage `json:"inputSchema"`
				}
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		switch {
		case m.Method == "ping":
			pings++
			select {
			case <-listed:
				t.Error("it was listed before the last ping")
			default:
			}
			say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{}}`)
			if pings == len(settleAfter)+1 {
				<-listed
				_ = toServer.Close()
			}
		case string(m.ID) == `"probe"` && !strings.Contains(lines.Text(), "-32601"):
			t.Errorf("a protocol without pings is spoken: %s", lines.Bytes())
		case string(m.ID) == "1":
			if got := m.Result.Tools; len(got) != 1 || got[0].Name != "f" || got[0].Description != "d \u2028 é" || string(got[0].Schema) != schema {
				t.Errorf("got %s", lines.Bytes())
			}
		case string(m.ID) == "7" && !strings.Contains(lines.Text(), "error"):
			t.Errorf("a call was answered: %s", lines.Bytes())
		}
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
