package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"ocp/internal/messagesapi"
)

var markers = regexp.MustCompile(`marker-[A-Z2-7]{26}`)

func newMarker() string { return "marker-" + rand.Text() }

// markedAnswer is what the model says to a prompt with a marker: no two of its lines
// could be another client's.
func markedAnswer(marker string) messagesapi.Answer {
	var first, second strings.Builder
	for i := range 12 {
		fmt.Fprintf(&first, "%d: %s says *this*.\n", i, marker)
		fmt.Fprintf(&second, "%d: and %s says that.\n", i, marker)
	}
	return messagesapi.Answer{
		Parts: []messagesapi.Part{
			messagesapi.Thinking("what would "+marker+" like to hear?", "c2ln"),
			messagesapi.Text(first.String()), messagesapi.Text(second.String() + "So says " + marker),
		},
		Split: messagesapi.ByRunes(40),
		Pace:  messagesapi.Pace{Between: 5 * time.Millisecond},
	}
}

func answerMarkers() messagesapi.Script {
	return messagesapi.ByPrompt(func(prompt string) messagesapi.Answer { return markedAnswer(markers.FindString(prompt)) })
}

// askMarked has one exchange about a marker of its own and checks every byte of it.
func (p *proxy) askMarked(ctx context.Context, streamed bool) error {
	marker := newMarker()
	x, err := p.ask(ctx, streamed, "Tell me about "+marker+" in several lines.")
	if err != nil {
		return err
	}
	if err := x.exact(markedAnswer(marker).Text()); err != nil {
		return err
	}
	for _, found := range markers.FindAllString(x.raw.String(), -1) {
		if found != marker {
			return fmt.Errorf("a response about %s holds %s", marker, found)
		}
	}
	return nil
}

// checkRequests checks that every request upstream was about exactly one marker and of a
// session of its own, and that there was one for each turn.
func (p *proxy) checkRequests(t *testing.T, turns int) {
	t.Helper()
	seen, sessions := map[string]bool{}, map[string]bool{}
	for _, r := range p.model.Turns() {
		id := r.Header.Get("X-Claude-Code-Session-Id")
		if id == "" || sessions[id] {
			t.Errorf("request %d is of session %q, which had one before", r.Turn, id)
		}
		sessions[id] = true
		own := map[string]bool{}
		for _, found := range markers.FindAllString(string(r.Body), -1) {
			own[found], seen[found] = true, true
		}
		if len(own) != 1 {
			t.Errorf("request %d holds %d markers", r.Turn, len(own))
		}
	}
	if asked := len(p.model.Turns()); len(seen) != turns || asked != turns {
		t.Errorf("%d requests about %d markers, want %d", asked, len(seen), turns)
	}
}

// Eight clients at once, round after round: nobody gets a byte that is another's, and
// the model is never shown one. OCP_SOAK=1 makes it fifty rounds.
func TestClientsAreKeptApart(t *testing.T) {
	const clients, width = 8, 4
	rounds := 5
	if os.Getenv("OCP_SOAK") != "" {
		rounds = 50
	}
	onEachCLIAlone(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{ahead: true, args: []string{"--concurrency", strconv.Itoa(width)}, script: answerMarkers()})
		inParallel(clients, clients, func(client int) {
			for round := range rounds {
				if err := p.askMarked(t.Context(), (client+round)%2 == 0); err != nil {
					t.Errorf("client %d, round %d: %v", client, round, err)
				}
			}
		})
		p.checkRequests(t, clients*rounds)
	})
}

// Two clients that begin with the same words and name the same user, each with its own
// key, share nothing but those words.
func TestSameBeginning(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{env: []string{"OCP_API_KEY=one,two"}, script: answerMarkers()})
		inParallel(4, 2, func(i int) {
			marker := newMarker()
			client := openai.NewClient(option.WithBaseURL(p.url+"/v1"), option.WithAPIKey([]string{"one", "two"}[i%2]), option.WithMaxRetries(0))
			got, err := client.Chat.Completions.New(withPatience(t), openai.ChatCompletionNewParams{
				Model: modelName, User: openai.String("the same"),
				Messages: []openai.ChatCompletionMessageParamUnion{
					openai.UserMessage("Hello."), openai.AssistantMessage("Hello."), openai.UserMessage("Tell me about " + marker),
				},
			})
			if want := markedAnswer(marker).Text(); err != nil || got.Choices[0].Message.Content != want {
				t.Errorf("request %d: %v, %v", i, got, err)
			}
		})
		p.checkRequests(t, 4)
	})
}

// Twenty sessions that start at once, far more than there are cores, all answer.
func TestManySessionsStartAtOnce(t *testing.T) {
	const sessions = 20
	onEachCLIAlone(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{args: []string{"--concurrency", strconv.Itoa(sessions)}, script: answerMarkers()})
		inParallel(sessions, sessions, func(i int) {
			if err := p.askMarked(t.Context(), i%2 == 0); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
		p.checkRequests(t, sessions)
		eventually(t, 10*time.Second, "no session is left", func() bool { return len(p.sessionDirs())+len(p.processes()) == 0 })
	})
}

// With the slot and the queue taken a request is refused at once, while the others are
// not done; a client that leaves the queue frees its place.
func TestQueueFull(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{
			args: []string{"--concurrency", "1", "--queue", "1"},
			script: messagesapi.ByPrompt(func(prompt string) messagesapi.Answer {
				a := messagesapi.TextAnswer("answered\n")
				if prompt == "hang" {
					a.Fault = messagesapi.Hang(messagesapi.InBlock(0, 1))
				}
				return a
			}),
		})
		holding, release := context.WithCancel(withPatience(t))
		defer release()
		slot := p.stream(holding, user("hang"))
		if delta, _ := slot.next(); delta != "answered\n" {
			t.Fatalf("delta %q: %v", delta, slot.Err())
		}

		leaving, leave := context.WithCancel(withPatience(t))
		defer leave()
		left := p.oneOfTwoIsRefused(leaving, t)
		leave()
		if reply := <-left; reply.err == nil {
			t.Errorf("the client that left got status %d", reply.status)
		}
		p.log.wait(t, p.done, "msg=turn", "outcome=canceled")

		// The place is free: again one waits and one is refused.
		waiting := p.oneOfTwoIsRefused(withPatience(t), t)
		if p.model.Turns()[0].Outcome() != messagesapi.Pending || len(p.model.Turns()) != 1 {
			t.Errorf("the first answer was to hang all the while; %d requests", len(p.model.Turns()))
		}
		release()
		if reply := <-waiting; reply.err != nil {
			t.Error(reply.err)
		} else if err := reply.exact("answered\n"); err != nil {
			t.Error(err)
		}
	})
}

type reply struct {
	*exchange
	err error
}

// oneOfTwoIsRefused sends two requests to a full proxy that has one place in its queue.
// Which of them gets it is open. The other's refusal is checked; the replies still to
// come are in the channel that is returned.
func (p *proxy) oneOfTwoIsRefused(ctx context.Context, t *testing.T) <-chan reply {
	t.Helper()
	replies := make(chan reply, 2)
	for range 2 {
		go func() {
			x, err := p.ask(ctx, true, "go")
			replies <- reply{x, err}
		}()
	}
	refused := <-replies
	if refused.err != nil {
		t.Fatal(refused.err)
	}
	if refused.status != 429 || refused.code != "queue_full" {
		t.Errorf("status %d, code %q", refused.status, refused.code)
	}
	if seconds, err := strconv.Atoi(refused.header.Get("Retry-After")); err != nil || seconds < 1 {
		t.Errorf("Retry-After %q", refused.header.Get("Retry-After"))
	}
	return replies
}
