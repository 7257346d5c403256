package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

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
