package probe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"ocp/internal/claude"
	"ocp/internal/hook"
	"ocp/internal/messagesapi"
	"ocp/internal/prompt"
)

// boxed are texts that prompt.BoxHazard lets through, of the kinds that come nearest to
// what it does not.
var boxed = []string{
	"Plain words.",
	"Größe, 中文, Привет, עברית, a no-break\u00a0space, and 𝔘𝔫𝔦.",
	"  begins with spaces, has  two,\n\n\n\nand blank lines\n  and an indented end.",
	"Mentions in it: me@example.org, @word, a/b, C:\\dir\\file, #1, $5 and\\\nso on.",
	"(code) `x` **bold** | a | b | <b>html</b> {\"key\": [1]} 100%.",
	strings.Repeat("A text of more than 800 characters and four lines, which a paste would wrap.\n", 20) + "The end.",
}

func boxProbes() []probe {
	return []probe{{name: "box", run: probeBox, claims: []Claim{
		{ID: "box-exact", Relied: true, Text: "a text that is let through to the input box reaches the model byte for byte, behind the conversation as it was", Use: "lets a conversation go on in its session"},
		{ID: "box-blocks", Relied: true, Text: "a prompt that UserPromptSubmit blocks is not sent to the model", Use: "blocks every text that the box has changed"},
	}}}
}

func probeBox(ctx context.Context, e *Env, dir string) (seen, error) {
	l, err := e.open(dir, messagesapi.Always(messagesapi.TextAnswer("Yes.\n")), laneOptions{keep: true})
	if err != nil {
		return nil, err
	}
	s, err := l.prime(ctx)
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	found := seen{}
	err = l.box(ctx, s, found)
	var a answer
	return found, errors.Join(err, l.end(s, &a), l.close())
}

func (l *lane) box(ctx context.Context, s *claude.Session, found seen) error {
	c := say("Hello.")
	a, err := l.give(ctx, s, c, nil)
	if err != nil {
		return err
	}
	for i, text := range boxed {
		c = goneOn(c, text)
		before := len(l.model.Turns())
		if a.failed == nil {
			a = answer{failed: s.Continue(ctx, c)}
		}
		if a.failed == nil {
			l.read(ctx, s, &a, nil)
		}
		a.asked = l.model.Turns()[before:]
		row{id: "box-exact", conversation: c}.judge(found, a)
		if v := found["box-exact"]; v.status != OK {
			found.say("box-exact", false, "text %d of %d: %s%s", i+1, len(boxed), v.evidence, because(a.failed))
			found.skip("box-blocks", "no conversation went on")
			return nil
		}
	}
	found.say("box-exact", true, "%d texts, up to %d bytes", len(boxed), len(boxed[len(boxed)-1]))
	l.blocked(ctx, s, goneOn(c, "This is never to be sent."), found)
	return nil
}

// goneOn is a conversation after the model's answer and one more message.
func goneOn(c prompt.Conversation, text string) prompt.Conversation {
	c.Messages = append(c.Messages[:len(c.Messages):len(c.Messages)],
		message(prompt.Assistant, prompt.Text("Yes.\n")), message(prompt.User, prompt.Text(text)))
	return c
}

const blockReason = "this is a probe"

// blocked submits a prompt that the tap blocks in the receiver's place, and waits until the
// screen says so or the model is asked.
func (l *lane) blocked(ctx context.Context, s *claude.Session, c prompt.Conversation, found seen) {
	l.tap.treat(func(ctx context.Context, c call, pass func(context.Context, []byte) (int, []byte)) (int, []byte) {
		if c.Name == hook.UserPromptSubmit {
			return http.StatusOK, fmt.Appendf(nil, `{"decision":"block","reason":%q}`, blockReason)
		}
		return pass(ctx, nil)
	})
	before := len(l.model.Turns())
	ctx, cancel := context.WithCancel(ctx)
	tried := make(chan error, 1)
	go func() { tried <- s.Continue(ctx, c) }()
	look := time.NewTicker(screenEvery)
	defer look.Stop()
	shown := false
	for !shown && len(l.model.Turns()) == before {
		select {
		case <-look.C:
			shown = strings.Contains(s.Screen(), blockReason)
			continue
		case err := <-tried:
			tried <- err
		}
		break
	}
	cancel()
	<-tried
	asked := len(l.model.Turns()) - before
	found.say("box-blocks", shown && asked == 0, "the screen gives the reason: %t; %d requests", shown, asked)
}
