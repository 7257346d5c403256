package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
)

// A server lingers for half a second over a connection whose request it has not read whole.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

func start(t testing.TB) *Receiver {
	r, err := Start(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// post sends a hook call as the CLI does and returns status and answer.
func post(t testing.TB, r *Receiver, secret, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, r.URL(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(SecretHeader, secret)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

const call = `{"session_id":"s1","hook_event_name":"MessageDisplay","turn_id":"t","message_id":"m","index":2,"final":true,"delta":"é\u0000<&>","new_field":[1]}`

var event = Event{Name: MessageDisplay, SessionID: "s1", TurnID: "t", MessageID: "m", Index: 2, Final: true, Delta: "é\x00<&>"}

func TestCallsReachTheirSession(t *testing.T) {
	r := start(t)
	mine, other := r.Register("s1"), r.Register("s2")
	defer mine.Close()
	defer other.Close()
	if status, answer := post(t, r, mine.Secret, call); status != http.StatusOK || answer != "{}" {
		t.Fatalf("answered %d %q, want 200 {}", status, answer)
	}
	ignoreTime := cmpopts.IgnoreFields(Event{}, "Received")
	if diff := cmp.Diff(event, <-mine.Events(), ignoreTime); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	if err := Forward(context.Background(), r.Socket(), mine.Secret, strings.NewReader(call), io.Discard); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(event, <-mine.Events(), ignoreTime); diff != "" {
		t.Errorf("forwarded event (-want +got):\n%s", diff)
	}
	if n := len(other.Events()); n != 0 {
		t.Errorf("the other session got %d events", n)
	}
	if diff := cmp.Diff(Stats{Accepted: 2}, r.Stats()); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

// A prompt is let through only if it was announced, byte for byte, and only once.
func TestPromptsAreChecked(t *testing.T) {
	r := start(t)
	route := r.Register("s1")
	defer route.Close()
	submit := func(prompt string) (answer string) {
		t.Helper()
		body, err := json.Marshal(map[string]string{"session_id": "s1", "hook_event_name": UserPromptSubmit, "prompt": prompt})
		if err != nil {
			t.Fatal(err)
		}
		_, answer = post(t, r, route.Secret, string(body))
		if got := <-route.Events(); got.Prompt != prompt || got.Blocked != (answer != goOn) {
			t.Errorf("%q: got %+v, answered %s", prompt, got, answer)
		}
		return answer
	}
	const text = "a <b>\u2028\té"
	for _, test := range []struct {
		expect, prompt, want string
	}{
		{"", text, block},
		{text, text, goOn},
		{"", text, block}, // it was for one
		{text, text + " ", block},
		{"", text, block}, // what was expected has not come
	} {
		if test.expect != "" {
			route.Expect(test.expect)
		}
		if got := submit(test.prompt); got != test.want {
			t.Errorf("expecting %q, %q was answered %s, want %s", test.expect, test.prompt, got, test.want)
		}
	}
	var answer strings.Builder
	body := `{"session_id":"s1","hook_event_name":"UserPromptSubmit","prompt":"x"}`
	if err := Forward(t.Context(), r.Socket(), route.Secret, strings.NewReader(body), &answer); err != nil || answer.String() != block {
		t.Errorf("forwarded: %q, %v", answer.String(), err)
	}
	answer.Reset()
	if err := Forward(t.Context(), r.Socket(), route.Secret, strings.NewReader(call), &answer); err != nil || answer.String() != "" {
		t.Errorf("forwarded: %q, %v", answer.String(), err)
	}
}

func TestRefusedCalls(t *testing.T) {
	r := start(t)
	route, closed := r.Register("s1"), r.Register("s1")
	defer route.Close()
	closed.Close()
	for _, test := range []struct {
		name, secret, body string
		status             int
	}{
		{"no secret", "", call, http.StatusForbidden},
		{"wrong secret", strings.Repeat("0", 64), call, http.StatusForbidden},
		{"secret of a closed route", closed.Secret, call, http.StatusForbidden},
		{"session of another", route.Secret, strings.Replace(call, "s1", "s2", 1), http.StatusForbidden},
		{"not JSON", route.Secret, "x", http.StatusBadRequest},
		{"not a hook call", route.Secret, `{"session_id":"s1"}`, http.StatusBadRequest},
		{"wrong type", route.Secret, strings.Replace(call, `"index":2`, `"index":"2"`, 1), http.StatusBadRequest},
		{"too large", route.Secret, `{"x":"` + strings.Repeat("x", MaxBody) + `"}`, http.StatusRequestEntityTooLarge},
	} {
		before := r.Stats().Refused
		status, answer := post(t, r, test.secret, test.body)
		if status != test.status {
			t.Errorf("%s: status %d, want %d", test.name, status, test.status)
		}
		if strings.Contains(answer, route.Secret) {
			t.Errorf("%s: the answer holds a secret", test.name)
		}
		if r.Stats().Refused != before+1 {
			t.Errorf("%s: not counted as refused", test.name)
		}
	}
	if n := len(route.Events()); n != 0 {
		t.Errorf("%d refused calls were handed on", n)
	}
	if err := Forward(context.Background(), r.Socket(), "wrong", strings.NewReader(call), io.Discard); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("forwarding with a wrong secret: %v, want a 403", err)
	}
	if err := Forward(context.Background(), r.Socket()+"x", route.Secret, strings.NewReader(call), io.Discard); err == nil {
		t.Error("forwarding to nowhere succeeded")
	}
}

// A session that is busy slows its own calls down and loses none.
func TestBusySessionLosesNothing(t *testing.T) {
	r := start(t)
	route := r.Register("s1")
	defer route.Close()
	const calls = 4 * routeBuffer
	failed := make(chan error, calls)
	for i := range calls {
		go func() {
			body := strings.Replace(call, `"index":2`, fmt.Sprintf(`"index":%d`, i), 1)
			failed <- Forward(context.Background(), r.Socket(), route.Secret, strings.NewReader(body), io.Discard)
		}()
	}
	seen := map[int]bool{}
	for range calls {
		seen[(<-route.Events()).Index] = true
	}
	for range calls {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if len(seen) != calls {
		t.Errorf("%d of %d calls arrived", len(seen), calls)
	}
}

// Closing a route lets go of calls that wait for it.
func TestCloseReleasesWaitingCalls(t *testing.T) {
	r := start(t)
	route := r.Register("s1")
	for range routeBuffer {
		post(t, r, route.Secret, call)
	}
	status := make(chan int)
	go func() {
		s, _ := post(t, r, route.Secret, call)
		status <- s
	}()
	route.Close()
	if got := <-status; got != http.StatusGone && got != http.StatusForbidden {
		t.Errorf("status %d, want 410 or 403", got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(call))
	f.Add([]byte(`{"hook_event_name":"Stop","session_id":"s","last_assistant_message":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := Decode(body)
		if err != nil {
			return
		}
		again, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatalf("what was decoded does not decode again: %v", err)
		}
		if diff := cmp.Diff(e, back); diff != "" {
			t.Fatalf("not the same again (-want +got):\n%s", diff)
		}
	})
}

func BenchmarkReceive(b *testing.B) {
	r := start(b)
	route := r.Register("s1")
	defer route.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	b.ReportAllocs()
	for b.Loop() {
		req, _ := http.NewRequest(http.MethodPost, r.URL(), strings.NewReader(call))
		req.Header.Set(SecretHeader, route.Secret)
		resp, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		<-route.Events()
	}
}
