package messagesapi

import (
	"slices"
	"strings"
	"time"
)

// Scenario is a named script: one thing that a model or its API may do.
type Scenario struct {
	Name        string
	Description string
	// Text is the exact text of the answer if HasText: the text blocks of a message
	// joined, a continuation after max_tokens joined on, the message after a tool
	// behind one blank line. Where the Claude Code CLI asks again of itself (empty,
	// whitespace, max-tokens-always) it is the text of each message.
	Text    string
	HasText bool
	// Partial is the text sent before the break, in scenarios whose stream breaks
	// or is refused.
	Partial string
	// Script is the scenario's. It keeps no state: a scenario of several messages
	// looks at the conversation to know where it is, so that clients may share it.
	Script Script
}

// FindScenario returns the scenario of that name.
func FindScenario(name string) (Scenario, bool) {
	for _, s := range Scenarios() {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}

// Scenarios are all scenarios, in the order in which to list them.
func Scenarios() []Scenario {
	return slices.Concat(
		textScenarios(), messageScenarios(), refusalScenarios(), brokenScenarios(), slowScenarios(),
	)
}

// textScenarios are honest answers of one text block.
func textScenarios() []Scenario {
	return []Scenario{
		told("hello", "a short answer", TextAnswer(helloText)),
		told("demo", "a pleasant Markdown answer, a line every 60 ms", Answer{
			Parts: []Part{Text(demoText)},
			Pace:  Pace{First: 60 * time.Millisecond, Between: 60 * time.Millisecond},
		}),
		{Name: "echo", Description: "the prompt, unchanged", Script: Echo()},
		told("long-line", "4 KB without a line feed", Answer{Parts: []Part{Text(longLine())}, Split: ByRunes(64)}),
		told("big", "200 KB in 4,800 lines, as fast as can be", Answer{Parts: []Part{Text(bigText())}, Coalesce: true}),
		told("crlf", "CR LF and lone CR as line ends", TextAnswer("one\r\ntwo\rthree\r\n\r\nfour\n\rfive\r")),
		told("control", "control characters, zero-width characters, BOM, U+2028", TextAnswer(controlText)),
		told("emoji", "joined emoji, one code point an event", Answer{Parts: []Part{Text(emojiText)}, Split: ByCodePoint}),
		told("emoji-bytes", "joined emoji, one byte a write", Answer{Parts: []Part{Text(emojiText)}, WriteSizes: []int{1}}),
		told("blank-lines", "leading and trailing blank lines and spaces", TextAnswer("\n\n  first\n\n\nlast  \n\n\n")),
		told("table", "a Markdown table", TextAnswer(tableText)),
		told("unclosed-fence", "a code fence that is never closed", TextAnswer("Here it is:\n\n```go\nfunc main() {\n\tprintln(\"hi\")\n}\n")),
		told("login-lookalike", "an honest answer that reads like an error of the CLI", TextAnswer(loginText)),
	}
}

// messageScenarios are about blocks, stop reasons and several messages.
func messageScenarios() []Scenario {
	return []Scenario{
		told("thinking", "2 KB of thinking before, between and after text blocks", Answer{Parts: []Part{
			Thinking(thinkingText(), thinkingSignature), Text("First, this.\n"),
			Thinking(thinkingText(), thinkingSignature), Text("Then that.\n"),
			Thinking(thinkingText(), thinkingSignature),
		}}),
		told("two-blocks", "two text blocks in one message", Answer{Parts: []Part{Text("First block."), Text("Second block.")}}),
		toolUse(),
		maxTokensOnce(),
		told("max-tokens-always", "every message stops at max_tokens", Answer{
			Parts:      []Part{Text("This goes on and on, ")},
			StopReason: "max_tokens",
		}),
		told("stop-sequence", "ends at a stop sequence", Answer{
			Parts:      []Part{Text("one two three ")},
			StopReason: "stop_sequence", StopSequence: "four",
		}),
		told("empty", "one empty text block", Answer{Parts: []Part{Text("")}}),
		told("no-blocks", "no blocks at all", Answer{}),
		told("whitespace", "spaces and line feeds only", TextAnswer("  \n \n ")),
		broke("refusal", "some text, then stop reason refusal", Answer{
			Parts:      []Part{Text("I can tell you that ")},
			StopReason: "refusal",
		}, "I can tell you that "),
	}
}

// toolUse calls a tool, then answers once the conversation holds its result.
func toolUse() Scenario {
	const preamble, final = "Let me look.", "The command printed: hello"
	return Scenario{
		Name:        "tool-use",
		Description: "text, a Bash call, and after its result a final text",
		Text:        preamble + "\n\n" + final,
		HasText:     true,
		Script: ByRequest(func(r Request) Answer {
			if last := len(r.Messages) - 1; last >= 0 {
				for _, block := range r.Messages[last].Content {
					if block.Type == "tool_result" {
						return TextAnswer(final)
					}
				}
			}
			return Answer{Parts: []Part{
				Text(preamble),
				ToolUse("toolu_01ScriptedBash", "Bash", `{"command":"echo hello","description":"Print hello"}`),
			}}
		}),
	}
}

// maxTokensOnce breaks off, then goes on where the conversation shows it did.
func maxTokensOnce() Scenario {
	const begun, rest = "This sentence is cut in the mid", "dle and goes on here.\n"
	return Scenario{
		Name:        "max-tokens-once",
		Description: "stops at max_tokens once; asked to resume, it ends properly",
		Text:        begun + rest,
		HasText:     true,
		Script: ByRequest(func(r Request) Answer {
			for _, m := range slices.Backward(r.Messages) {
				if m.Role == "assistant" {
					if strings.TrimSpace(m.Text()) == begun {
						// No model answers at once, and hook calls of two messages
						// that come together may overtake each other.
						return Answer{Parts: []Part{Text(rest)}, Pace: Pace{First: 300 * time.Millisecond}}
					}
					break
				}
			}
			return Answer{Parts: []Part{Text(begun)}, StopReason: "max_tokens"}
		}),
	}
}

// told is a scenario of one answer whose text counts.
func told(name, description string, a Answer) Scenario {
	return Scenario{Name: name, Description: description, Text: a.Text(), HasText: true, Script: Always(a)}
}

// broke is a scenario of one answer of which only some text gets out.
func broke(name, description string, a Answer, partial string) Scenario {
	return Scenario{Name: name, Description: description, Partial: partial, Script: Always(a)}
}
