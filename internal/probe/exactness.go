package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"ocp/internal/messagesapi"
	"ocp/internal/prompt"
	"ocp/internal/turn"
)

// oddText has what an input box would drop, change or act on.
const oddText = "!ls\r\n@/etc/hostname\ttab, lone CR:\r, U+0001:\u0001, zero width:\u200b, 👨‍👩‍👧‍👦, e\u0301, a backslash\\\n  and spaces  \n"

// pixel is a PNG of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// row is a conversation that is given the exact way.
type row struct {
	id, what     string
	conversation prompt.Conversation
}

func rowsOfExactness() []row {
	image := raw(map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/png", "data": pixel}})
	document := raw(map[string]any{"type": "document", "source": map[string]any{"type": "text", "media_type": "text/plain", "data": "a document"}})
	use := raw(map[string]any{"type": "tool_use", "id": "toolu_01Probe", "name": "look", "input": map[string]any{"at": "it"}})
	result := raw(map[string]any{"type": "tool_result", "tool_use_id": "toolu_01Probe", "content": []any{map[string]any{"type": "text", "text": "what was seen"}}})
	var long prompt.Conversation
	for i := range 40 {
		long.Messages = append(long.Messages,
			message(prompt.User, prompt.Text(fmt.Sprintf("question %d: %s", i, oddText))),
			message(prompt.Assistant, prompt.Text(fmt.Sprintf("answer %d: %s", i, oddText))))
	}
	long.Messages = append(long.Messages, message(prompt.User, prompt.Text("and now?")))
	system := say("Hello.")
	system.System = "Be terse.\n\t\"Quotes\", $dollars, 👨‍👩‍👧‍👦 and a last line feed.\n"
	return []row{
		{id: "exact-text", what: "odd characters in the last message", conversation: say(oddText)},
		{id: "exact-command", what: "a last message that is /help me", conversation: say("/help me")},
		{id: "exact-exit", what: "a last message that is exit", conversation: say("exit")},
		{id: "exact-blocks", what: "a last message of texts, an image and a document", conversation: prompt.Conversation{
			Messages: []prompt.Message{message(prompt.User, prompt.Text("first\r\n"), image, document, prompt.Text("/help me"))},
		}},
		{id: "exact-tool-result", what: "a tool's use and its result", conversation: prompt.Conversation{
			Messages: []prompt.Message{message(prompt.User, prompt.Text("Look.")), message(prompt.Assistant, use), message(prompt.User, result)},
		}},
		{id: "exact-history", what: "forty questions and answers", conversation: long},
		{id: "exact-long", what: "660 KB of text", conversation: say(strings.Repeat("A long text.\r\n", 48_000) + "end")},
		{id: "exact-system", what: "a system text", conversation: system},
	}
}

func message(role prompt.Role, blocks ...prompt.Block) prompt.Message {
	return prompt.Message{Role: role, Content: blocks}
}

func raw(block map[string]any) prompt.Block {
	data, err := json.Marshal(block)
	if err != nil {
		panic(err) // maps of strings always marshal
	}
	return prompt.Block{Type: block["type"].(string), Raw: data}
}

func exactnessProbes() []probe {
	var probes []probe
	list := rowsOfExactness()
	for n, part := range [][]row{list[:4], list[4:]} {
		p := probe{name: fmt.Sprintf("exactness-%d", n+1), run: probeExactness(part)}
		for _, r := range part {
			p.claims = append(p.claims, Claim{
				ID: r.id, Relied: true, Text: "given as a transcript, this reaches the model byte for byte: " + r.what,
				Use: "gives every conversation so",
			})
		}
		probes = append(probes, p)
	}
	return append(probes, probe{name: "not-run", run: probeNotRun, claims: []Claim{
		{ID: "no-turn", Relied: true, Text: "a conversation that ends with an answer is resumed, its hooks arrive, and nothing is asked of the model", Use: "checks at its start, at no cost, that sessions work"},
	}})
}

func probeExactness(part []row) func(context.Context, *Env, string) (seen, error) {
	return func(ctx context.Context, e *Env, dir string) (seen, error) {
		l, err := e.open(dir, messagesapi.Always(messagesapi.TextAnswer("Yes.\n")), laneOptions{})
		if err != nil {
			return nil, err
		}
		found := seen{}
		for _, r := range part {
			a, err := l.ask(ctx, r.conversation)
			if err != nil {
				return found, errors.Join(err, l.close())
			}
			r.judge(found, a)
		}
		return found, l.close()
	}
}

func (r row) judge(found seen, a answer) {
	if len(a.asked) != 1 {
		found.say(r.id, false, "%d requests%s", len(a.asked), because(a.failed))
		return
	}
	request, err := a.asked[0].Decode()
	if err != nil {
		found.say(r.id, false, "%v", err)
		return
	}
	found.say(r.id, compare(request, r) == "", "%d messages in %d bytes: %s", len(request.Messages), len(a.asked[0].Body), orSame(compare(request, r)))
}

func orSame(different string) string {
	if different == "" {
		return "as given"
	}
	return different
}

// compare says what of a request is not as the row gives it; empty if nothing. The CLI's
// own are messages of the role system, and reminders before what a user says.
func compare(got messagesapi.Request, want row) string {
	var messages []messagesapi.Message
	for _, m := range got.Messages {
		if m.Role != "system" {
			messages = append(messages, m)
		}
	}
	if n := len(want.conversation.Messages); len(messages) != n {
		return fmt.Sprintf("%d messages, not %d", len(messages), n)
	}
	for i, m := range want.conversation.Messages {
		if different := compareMessage(messages[i], m.Role, m.Content); different != "" {
			return fmt.Sprintf("message %d: %s", i, different)
		}
	}
	if text := want.conversation.System; text != "" {
		if n := len(got.System); n == 0 || got.System[n-1].Text != text {
			return "the system text is another"
		}
	}
	return ""
}

func compareMessage(got messagesapi.Message, role prompt.Role, want []prompt.Block) string {
	added := len(got.Content) - len(want)
	switch {
	case got.Role != string(role):
		return "its role is " + got.Role
	case added < 0:
		return fmt.Sprintf("%d blocks, not %d", len(got.Content), len(want))
	}
	for _, b := range got.Content[:added] {
		if !strings.HasPrefix(b.Text, "<system-reminder>") {
			return "a block was put before it that is no reminder"
		}
	}
	for i, b := range got.Content[added:] {
		if b.Type != want[i].Type || b.Text != want[i].Text || want[i].Raw != nil && !sameBlock(b.Raw, want[i].Raw) {
			return fmt.Sprintf("block %d (%s) is another", i, want[i].Type)
		}
	}
	return ""
}

// sameBlock compares two blocks but for the mark for the upstream's cache.
func sameBlock(got, want []byte) bool {
	var g, w map[string]any
	if json.Unmarshal(got, &g) != nil || json.Unmarshal(want, &w) != nil {
		return false
	}
	delete(g, "cache_control")
	return reflect.DeepEqual(g, w)
}

// probeNotRun gives a conversation in which it is the user's turn, and watches for as long
// as it would have taken to run one.
func probeNotRun(ctx context.Context, e *Env, dir string) (seen, error) {
	l, err := e.open(dir, messagesapi.Always(messagesapi.TextAnswer("Yes.\n")), laneOptions{})
	if err != nil {
		return nil, err
	}
	s, err := l.prime(ctx)
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	c := say("Ready?")
	c.Messages = append(c.Messages, message(prompt.Assistant, prompt.Text("Ready.")))
	err = s.Give(ctx, c, turn.Pooled)
	started := func() bool { return l.launcher.Health().Hooks.Accepted > 0 }
	look := time.NewTicker(screenEvery)
	defer look.Stop()
	for over := time.Now().Add(askBound); err == nil && !started() && time.Now().Before(over); <-look.C {
		err = ctx.Err()
	}
	up := started()
	for over := time.Now().Add(holdFor); err == nil && up && time.Now().Before(over); <-look.C {
		err = ctx.Err()
	}
	asked := len(l.model.Turns())
	if err = errors.Join(err, s.Close(), l.close()); err != nil {
		return nil, err
	}
	found := seen{}
	found.say("no-turn", up && asked == 0, "its SessionStart came: %t; %d requests", up, asked)
	return found, nil
}
