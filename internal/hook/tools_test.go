package hook

import (
	"context"
	"io"
	"strings"
	"testing"
)

// A session with tools gets them under its secret, and its SessionStart is answered once
// they were listed.
func TestOffer(t *testing.T) {
	r := start(t)
	route := r.Register("s")
	defer route.Close()
	if !route.Listed() {
		t.Error("a session without tools waits for some")
	}
	const tools = `[{"name":"f"}]`
	route.Offer([]byte(tools))
	if route.Listed() {
		t.Error("they are listed before anybody has asked")
	}
	if got, err := FetchTools(t.Context(), r.Socket(), route.Secret); err != nil || string(got) != tools {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := FetchTools(t.Context(), r.Socket(), "another"); err == nil {
		t.Error("somebody else got them")
	}
	answered := make(chan error, 1)
	go func() {
		answered <- Forward(context.Background(), r.Socket(), route.Secret, strings.NewReader(`{"hook_event_name":"SessionStart","session_id":"s"}`), io.Discard)
	}()
	<-route.Events()
	select {
	case err := <-answered:
		t.Fatalf("it was answered: %v", err)
	default:
	}
	for range 2 { // the CLI may list again
		if err := ToolsListed(t.Context(), r.Socket(), route.Secret); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-answered; err != nil || !route.Listed() {
		t.Errorf("listed: %t, %v", route.Listed(), err)
	}
}

// No tool is run, whoever's it is.
func TestToolCallIsDenied(t *testing.T) {
	r := start(t)
	route := r.Register("s")
	defer route.Close()
	var answer strings.Builder
	err := Forward(t.Context(), r.Socket(), route.Secret, strings.NewReader(`{"hook_event_name":"PreToolUse","session_id":"s"}`), &answer)
	if err != nil || !strings.Contains(answer.String(), `"continue":false`) || !strings.Contains(answer.String(), `"permissionDecision":"deny"`) {
		t.Errorf("answered %s, %v", answer.String(), err)
	}
}

// What waits for the tools of a session ends with it.
func TestOfferOfClosedSession(t *testing.T) {
	r := start(t)
	route := r.Register("s")
	route.Offer([]byte("[]"))
	answered := make(chan error, 1)
	go func() {
		answered <- Forward(context.Background(), r.Socket(), route.Secret, strings.NewReader(`{"hook_event_name":"SessionStart","session_id":"s"}`), io.Discard)
	}()
	<-route.Events()
	route.Close()
	if err := <-answered; err == nil {
		t.Error("a closed session was told to go on")
	}
}
