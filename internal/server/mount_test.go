package server

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"ocp/internal/config"
)

// echo says what a mount was told.
func echo(w http.ResponseWriter, r *http.Request, allowed bool) {
	fmt.Fprintf(w, "%s %v", r.URL.Path, allowed)
}

func TestMounts(t *testing.T) {
	mounts := []Mount{
		{Path: "/guarded", Serve: echo},
		{Path: "/{$}", Open: true, Form: true, Serve: echo},
	}
	open := start(t, Options{Mounts: mounts, Loopback: true}, oneSlot)
	keyed := start(t, Options{Mounts: mounts, Keys: []config.Key{key("k")}, Loopback: true}, oneSlot)
	for _, test := range []struct {
		name         string
		r            *rig
		method, path string
		host         string
		header       []string
		status       int
		body         string // empty if it is an error
	}{
		{"guarded, no keys", open, "GET", "/guarded", "", nil, 200, "/guarded true"},
		{"open, no keys", open, "GET", "/", "", nil, 200, "/ true"},
		{"below the open one", open, "GET", "/other", "", nil, 404, ""},
		{"another host", open, "GET", "/", "evil.example", nil, 403, ""},
		{"another origin", open, "GET", "/guarded", "", []string{"Origin", "http://evil.example"}, 403, ""},
		{"another method", open, "PUT", "/", "", nil, 405, ""},
		{"a form where none is", open, "POST", "/guarded", "", nil, 405, ""},
		{"guarded, no key", keyed, "GET", "/guarded", "", nil, 401, ""},
		{"guarded, wrong key", keyed, "GET", "/guarded", "", []string{"X-Api-Key", "no"}, 401, ""},
		{"guarded, key", keyed, "GET", "/guarded", "", []string{"Authorization", "Bearer k"}, 200, "/guarded true"},
		{"open, no key", keyed, "GET", "/", "", nil, 200, "/ false"},
		{"open, wrong key", keyed, "GET", "/", "", []string{"X-Api-Key", "no"}, 200, "/ false"},
		{"open, key", keyed, "GET", "/", "", []string{"X-Api-Key", "k"}, 200, "/ true"},
		{"open, another origin", keyed, "GET", "/", "", []string{"X-Api-Key", "k", "Origin", "http://evil.example"}, 403, ""},
	} {
		got := test.r.ask(test.method, test.path, test.host, test.header...)
		if got.status != test.status || test.body != "" && got.body != test.body {
			t.Errorf("%s: got %d %q, want %d %q", test.name, got.status, got.body, test.status, test.body)
		}
		if test.status == 200 && got.header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s: a browser would ask for a password", test.name)
		}
	}
	for form, want := range map[string]string{"key=k": "/ true", "key=no": "/ false", "": "/ false"} {
		if got := keyed.do("POST", "/", "application/x-www-form-urlencoded", form); got.body != want {
			t.Errorf("form %q: got %+v, want %s", form, got, want)
		}
	}
	if got := keyed.do("POST", "/", "application/x-www-form-urlencoded", "x="+string(make([]byte, maxForm))+"&key=k"); got.body != "/ false" {
		t.Errorf("a large form: got %+v", got)
	}
}

// TestMountEndsWithShutdown checks that a mount that goes on is told to end.
func TestMountEndsWithShutdown(t *testing.T) {
	entered := make(chan struct{})
	r := start(t, Options{Mounts: []Mount{{Path: "/long", Serve: func(w http.ResponseWriter, r *http.Request, _ bool) {
		close(entered)
		<-r.Context().Done()
		w.WriteHeader(http.StatusTeapot)
	}}}}, oneSlot)
	got := make(chan reply, 1)
	go func() { got <- r.do("GET", "/long", "", "") }()
	<-entered
	if err := r.server.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if reply := <-got; reply.status != http.StatusTeapot {
		t.Errorf("got %+v", reply)
	}
	if line := <-r.lines; line["status"] != int64(http.StatusTeapot) {
		t.Errorf("logged %v", line)
	}
}
