package e2e

import (
	"testing"

	"ocp/internal/messagesapi"
)

// exactScenarios are answers that must arrive byte for byte.
var exactScenarios = []string{
	"hello", "long-line", "big", "crlf", "control", "emoji", "emoji-bytes", "blank-lines",
	"table", "unclosed-fence", "login-lookalike", "two-blocks", "thinking", "max-tokens-once",
}

// What is streamed, what is answered unstreamed and what the model said are one text.
func TestAnswerIsExact(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{ahead: true})
		for _, name := range exactScenarios {
			t.Run(name, func(t *testing.T) {
				scenario, ok := messagesapi.FindScenario(name)
				if !ok || !scenario.HasText {
					t.Fatal("no such scenario, or one without a text")
				}
				p.model.SetScript(scenario.Script)
				s := p.stream(withPatience(t), user("go"))
				if got := s.mustReadAll(t); got != scenario.Text {
					t.Errorf("streamed: %s", difference(got, scenario.Text))
				}
				whole, err := p.complete(withPatience(t), user("go"))
				if err != nil {
					t.Fatal(err)
				}
				if got := whole.Choices[0].Message.Content; got != scenario.Text {
					t.Errorf("not streamed: %s", difference(got, scenario.Text))
				}
			})
		}
	})
}
