package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"ocp/internal/messagesapi"
)

// talk is a conversation as its client keeps it.
type talk struct {
	p        *proxy
	key      string // of the client, if the proxy wants one
	messages []sentMessage
}

// what the model says in a talk. It thinks too, which a session remembers and no client
// sends.
func saidTo(prompt string) messagesapi.Answer {
	return messagesapi.Answer{Parts: []messagesapi.Part{
		messagesapi.Thinking("about "+prompt, "c2ln"), messagesapi.Text(saidText(prompt)),
	}}
}

func saidText(prompt string) string { return "# You said\r\n\n\t" + prompt + "\n\nTrailing:  \n" }

// say sends the conversation with one more message, checks the answer and what the model
// was shown, and returns the session that it was shown by.
func (k *talk) say(t *testing.T, text string) (session string) {
	t.Helper()
	got, recorded, err := k.send(withPatience(t), text)
	if err != nil {
		t.Errorf("%.80q: %v", text, err)
		return ""
	}
	if want := saidText(text); got != want {
		t.Errorf("%.80q: %s", text, difference(got, want))
	}
	request, err := recorded.Decode()
	if err != nil {
		t.Fatal(err)
	}
	var want []seenMessage
	for _, m := range k.messages {
		want = append(want, seen(m.Role, m.Content.(string)))
	}
	compareMessages(t, withoutThinking(request.Messages), want)
	if strings.Contains(string(recorded.Body), k.p.state) {
		t.Errorf("%.80q: the model was told where the session lives: %s", text, recorded.Body)
	}
	k.messages = append(k.messages, sentMessage{"assistant", got})
	return sessionOf(t, recorded)
}

// send is say without checks. No two talks may send the same text at the same time.
func (k *talk) send(ctx context.Context, text string) (answer string, recorded *messagesapi.Recorded, err error) {
	k.messages = append(k.messages, sentMessage{"user", text})
	data, err := json.Marshal(chatBody{Model: modelName, Messages: k.messages})
	if err != nil {
		return "", nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, k.p.url+"/v1/chat/completions", bytes.NewReader(data))
	if err != nil {
		return "", nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if k.key != "" {
		req.Header.Set("Authorization", "Bearer "+k.key)
	}
	reply := k.p.do(req)
	turns := k.p.model.Turns()
	for _, r := range slices.Backward(turns) {
		if request, err := r.Decode(); err == nil && request.Prompt() == text {
			return reply.text(), r, nil
		}
	}
	return "", nil, fmt.Errorf("status %d, %s; the model was asked %d times and never that", reply.status, reply.body, len(turns))
}

func withoutThinking(messages []messagesapi.Message) []messagesapi.Message {
	messages = slices.Clone(messages)
	for i, m := range messages {
		messages[i].Content = slices.DeleteFunc(slices.Clone(m.Content), func(b messagesapi.Block) bool { return b.Type == "thinking" })
	}
	return messages
}

// sessionOf is the session id that the CLI tells the upstream.
func sessionOf(t *testing.T, r *messagesapi.Recorded) string {
	t.Helper()
	var body struct {
		Metadata struct {
			UserID string `json:"user_id"`
		}
	}
	var user struct {
		SessionID string `json:"session_id"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(body.Metadata.UserID), &user); err != nil || user.SessionID == "" {
		t.Fatalf("no session id in %q: %v", body.Metadata.UserID, err)
	}
	return user.SessionID
}

// A conversation goes on in its session as long as its texts may be typed, and in another
// one where they may not: the model is shown the same, and the answers are the same.
func TestConversationGoesOn(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		bait := newBait(t)
		p := startProxy(t, c, proxyOptions{ahead: true, script: messagesapi.ByPrompt(saidTo)})
		k := &talk{p: p}
		given := 0 // how often a session was given up
		last := k.say(t, "!first, with\ttabs\r\nand e\u0301 and a \u200b and more:  \n")
		for _, row := range []struct {
			text string
			same bool // in the session of the one before
		}{
			{"And then?", true},
			{"x", true},
			{"Größe: 漢字, emoji 😀,  two spaces,\n\n\nthree line feeds, `code` and **bold**.\n- a list\n  indented", true},
			{strings.Repeat("A long line of a long message, number and all.\n", 400) + "End.", true},
			{"!touch " + bait.touched, false},
			{"And after that?", true},
			{"/help", false},
			{"trailing space ", false},
			{"exit", false},
			{"tab\tin it", false},
			{"Last one.", true},
		} {
			session := k.say(t, row.text)
			// On a machine that is busy the input box may take too long: the log says so, each
			// time that it does.
			gaveUp := strings.Count(p.log.text(), "could not go on in its session")
			if (session == last) != (row.same && gaveUp == given) {
				t.Errorf("%.40q: in the same session: %v, want %v", row.text, session == last, row.same)
			}
			last, given = session, gaveUp
		}
		if n := len(p.model.Turns()); n != 12 {
			t.Errorf("%d requests upstream, want 12", n)
		}
		bait.check(t)
		p.log.waitFor(t, 6-given, "way=continued")
		if strings.Contains(p.log.text(), "input_diffs=1") {
			t.Error("the CLI's own records differ from what was sent")
		}
	})
}

// Conversations that begin alike stay apart: those of two callers, an edited one, a
// retried request, a branch. The model's own log shows it.
func TestConversationsAreKeptApart(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{
			ahead: true,
			args:  []string{"--keep", "8"}, env: []string{"OCP_API_KEY=key-of-a,key-of-b"}, script: messagesapi.ByPrompt(saidTo),
		})
		from := func(key string, messages []sentMessage) *talk {
			return &talk{p: p, key: key, messages: slices.Clone(messages)}
		}
		a, b := from("key-of-a", nil), from("key-of-b", nil)
		sessionA, sessionB := a.say(t, "Hello."), b.say(t, "Hello.")
		if sessionA == sessionB {
			t.Fatal("two callers share a session")
		}
		opening := slices.Clone(a.messages)
		if got := b.say(t, "I am b."); got != sessionB {
			t.Error("b's conversation went on elsewhere")
		}
		if got := a.say(t, "I am a."); got != sessionA {
			t.Error("a's conversation went on elsewhere")
		}

		branch := from("key-of-a", opening)
		if got := branch.say(t, "I am another one."); got == sessionA || got == sessionB {
			t.Error("a branch got the session of the conversation that it branched from")
		}
		retried := from("key-of-a", a.messages[:2])
		sessionRetried := retried.say(t, "I am a.")
		if sessionRetried == sessionA {
			t.Error("a retried request got the session that has its answer already")
		}
		edited := from("key-of-a", a.messages)
		edited.messages[0].Content = "Hello!"
		if got := edited.say(t, "Go on."); got == sessionA {
			t.Error("an edited conversation got the session of what it was")
		}
		stolen := from("key-of-b", a.messages)
		if got := stolen.say(t, "And then?"); got == sessionA {
			t.Error("a caller got another's session")
		}
		if got := a.say(t, "Go on."); got != sessionA && got != sessionRetried {
			t.Error("after all that, a's conversation went on where it has not been")
		}
	})
}

// Of two requests that go on with one conversation at the same time only one gets its
// session, and both get their answers.
func TestTwoGoOnAtOnce(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{ahead: true, script: messagesapi.ByPrompt(saidTo)})
		k := &talk{p: p}
		k.say(t, "Hello.")
		sessions := make([]string, 2)
		var both sync.WaitGroup
		for i := range sessions {
			both.Go(func() {
				one := &talk{p: p, messages: slices.Clone(k.messages)}
				sessions[i] = one.say(t, fmt.Sprintf("I am number %d.", i))
			})
		}
		both.Wait()
		if sessions[0] == sessions[1] {
			t.Error("one session was given to two")
		}
	})
}

// A kept session that is gone, and one whose answer was broken off, cost their
// conversation nothing but time.
func TestKeptSessionIsGone(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{ahead: true, args: []string{"--pool", "0"}, script: messagesapi.ByPrompt(saidTo)})
		k := &talk{p: p}
		first := k.say(t, "Hello.")
		if again := k.say(t, "Still there?"); again != first {
			t.Error("the session was not kept")
		}
		for _, pid := range p.sessionsOf(c) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		if again := k.say(t, "And now?"); again == first {
			t.Error("the dead has answered")
		}
	})
}

// What is primed and kept ends with ocp, however that ends.
func TestWaitingSessionsEndWithOcp(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			p := startProxy(t, c, proxyOptions{ahead: true, script: messagesapi.ByPrompt(saidTo)})
			(&talk{p: p}).say(t, "Hello.")
			eventually(t, patience, "one session is kept and one primed", func() bool { return len(p.sessionsOf(c)) == 2 })
			if err := p.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			<-p.done
			p.noSessionIsLeft(t, c)
			if sig == syscall.SIGKILL {
				next := startProxy(t, c, proxyOptions{state: p.state, script: messagesapi.ByPrompt(saidTo)})
				if left := next.sessionDirs(); len(left) > 0 {
					t.Errorf("not swept: %v", left)
				}
			}
		}
	})
}
