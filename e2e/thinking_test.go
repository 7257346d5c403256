package e2e

import (
	"fmt"
	"strings"
	"testing"

	"ocp/internal/messagesapi"
)

// Nothing of a model's thinking is in any byte that a client gets, or in the log.
func TestThinkingNeverLeaves(t *testing.T) {
	const marker, signature = "SECRETTHOUGHT", "c2VjcmV0LXNpZ25hdHVyZQ=="
	think := func() messagesapi.Part {
		return messagesapi.Thinking(strings.Repeat(marker+" is what the model thinks of.\n", 46), signature)
	}
	first, second := messagesapi.Text("First, this.\n"), messagesapi.Text("Then that.\n")
	answers := []struct {
		name  string
		parts []messagesapi.Part
		want  string
	}{
		{"after", []messagesapi.Part{first, think()}, first.Text},
		{"everywhere", []messagesapi.Part{think(), think(), first, think(), second, think()}, first.Text + second.Text},
		{"nothing else", []messagesapi.Part{think()}, ""},
	}
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{ahead: true})
		for _, a := range answers {
			for _, streamed := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/stream=%v", a.name, streamed), func(t *testing.T) {
					p.model.SetScript(messagesapi.Always(messagesapi.Answer{Parts: a.parts, Split: messagesapi.ByRunes(20)}))
					x, err := p.ask(withPatience(t), streamed, "go")
					if err != nil {
						t.Fatal(err)
					}
					if err := x.exact(a.want); err != nil {
						t.Error(err)
					}
					for _, secret := range []string{marker, signature, "thinking"} {
						if strings.Contains(x.raw.String(), secret) {
							t.Errorf("%q is in the response: %s", secret, x.lastBytes())
						}
					}
				})
			}
		}
		if strings.Contains(p.log.text(), marker) {
			t.Error("the log holds thinking")
		}
	})
}
