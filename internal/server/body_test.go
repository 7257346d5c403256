package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ocp/internal/config"
)

// raw sends bytes over a connection of its own, which stays open, and reads the reply.
func (r *rig) raw(request string) reply {
	r.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		r.t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return read(res)
}

// TestMalformedBody checks that a client which is there is told of its broken body.
func TestMalformedBody(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	got := r.raw("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n")
	wantError(t, got, http.StatusBadRequest, "", "")
	if !strings.Contains(got.body, "the request body could not be read") {
		t.Errorf("got %s", got.body)
	}
}

// TestContentEncoding checks that a compressed body is refused for what it is.
func TestContentEncoding(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	for _, api := range apis {
		for _, encoding := range []string{"gzip", "br", "identity, gzip", "zstd"} {
			got := r.ask("POST", api.path, "", "Content-Encoding", encoding)
			wantType(t, encoding, got, http.StatusUnsupportedMediaType, api.kind, "Content-Encoding")
		}
		for _, encoding := range []string{"", "identity", "Identity"} {
			got := r.ask("POST", api.path, "", "Content-Encoding", encoding)
			wantType(t, encoding, got, http.StatusBadRequest, api.kind, "model")
		}
	}
}

// TestByteOrderMark checks that a mark at the start of a body is no part of its JSON.
func TestByteOrderMark(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	for _, api := range apis {
		wantType(t, api.path, r.do("POST", api.path, "", "\ufeff{}"), http.StatusBadRequest, api.kind, "model")
		wantType(t, api.path, r.do("POST", api.path, "", "\ufeff\ufeff{}"), http.StatusBadRequest, api.kind, "not valid JSON")
	}
}

func TestCharset(t *testing.T) {
	r := start(t, Options{}, oneSlot)
	for _, charset := range []string{"utf-8", "UTF-8", "utf8", "UTF8"} {
		got := r.do("POST", "/v1/chat/completions", "application/json; charset="+charset, "{}")
		wantError(t, got, http.StatusBadRequest, "", "model")
	}
}

// TestUncleanPath checks that no path gets an answer of net/http's own: neither a
// redirect, nor one without a key.
func TestUncleanPath(t *testing.T) {
	r := start(t, Options{Keys: []config.Key{key("k")}}, oneSlot)
	r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, path := range []string{"//", "//v1/models", "/v1//models", "/v1/./models", "/v1/x/../models", "//healthz", "/v1/models/a//b"} {
		wantError(t, r.ask("GET", path, ""), http.StatusUnauthorized, "invalid_api_key", "")
		wantError(t, r.ask("GET", path, "", "X-Api-Key", "k"), http.StatusNotFound, "unknown_url", "")
		got := r.ask("GET", path, "", "X-Api-Key", "k", "Anthropic-Version", "2023-06-01")
		wantMessagesError(t, got, http.StatusNotFound, "not_found_error", "path")
	}
	for _, path := range []string{"//v1/messages", "/v1/messages//count_tokens"} {
		wantMessagesError(t, r.ask("POST", path, ""), http.StatusUnauthorized, "authentication_error", "key")
		wantMessagesError(t, r.ask("POST", path, "", "X-Api-Key", "k"), http.StatusNotFound, "not_found_error", "path")
	}
}

// TestBodyMemory has slow senders hold all the memory for bodies: a request that comes
// then waits for it, and is refused in its dialect's words if it does not get it in time.
// No sender can hold it for ever.
func TestBodyMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dial := startPiped(t, Options{MaxBody: 1000, BodyMemory: 2500}, oneSlot)
		slow := func(announced ...string) {
			for _, header := range announced {
				conn := dial()
				t.Cleanup(func() { conn.Close() })
				fmt.Fprintf(conn, "POST /v1/messages HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", header)
				go io.Copy(io.Discard, conn)
			}
			time.Sleep(10 * time.Second) // of fake time; what comes then may wait for longer than these
		}
		for _, api := range apis {
			slow("Content-Length: 1000", "Transfer-Encoding: chunked")
			wantType(t, "small", r.do("POST", api.path, "", "{}"), http.StatusBadRequest, api.kind, "model")

			got := make(chan reply, 1)
			go func() { got <- r.do("POST", api.path, "", api.body+strings.Repeat(" ", 800)) }()
			synctest.Wait()
			if len(r.backend.started) > 0 {
				t.Errorf("%s: it did not wait", api.path)
			}
			s := <-r.backend.started // when the slow ones are cut off
			s.say(finished)
			if got := <-got; got.status != http.StatusOK {
				t.Errorf("%s: got %+v", api.path, got)
			}
		}

		slow("Content-Length: 1000", "Content-Length: 9999")
		slow("Content-Length: 1000", "Content-Length: 1000") // next in line, and slow as well
		var refused sync.WaitGroup
		for _, api := range apis {
			refused.Go(func() {
				got := r.do("POST", api.path, "", api.body+strings.Repeat(" ", 800))
				wantType(t, api.path, got, http.StatusTooManyRequests, "rate_limit_error", "too many large requests")
				if after := got.header.Get("Retry-After"); after != "30" {
					t.Errorf("%s: Retry-After %q", api.path, after)
				}
			})
		}
		refused.Wait()
		r.wantFree()
	})
}

// TestBodyMemoryAtShutdown checks that a request which waits for memory does not keep
// the server up.
func TestBodyMemoryAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dial := startPiped(t, Options{MaxBody: 1000, BodyMemory: 1000}, oneSlot)
		conn := dial()
		defer conn.Close()
		fmt.Fprint(conn, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
		synctest.Wait()
		got := r.send(t.Context(), wholeBody)
		synctest.Wait()
		if err := r.server.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantError(t, <-got, http.StatusServiceUnavailable, "shutdown", "")
	})
}
