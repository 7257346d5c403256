package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ocp/internal/claude/claudetest"
	"ocp/internal/config"
)

// text is what a client of the route makes of a response.
func (r reply) text(path string, stream bool) string {
	var text strings.Builder
	for line := range strings.Lines(r.body) {
		data := line
		if stream {
			var ok bool
			if data, ok = strings.CutPrefix(line, "data: "); !ok {
				continue
			}
		}
		var body struct {
			Choices []struct{ Message, Delta struct{ Content string } }
			Type    string
			Content []struct{ Text string }
			Output  []struct{ Content []struct{ Text string } }
			Delta   json.RawMessage
		}
		if json.Unmarshal([]byte(data), &body) != nil {
			continue
		}
		for _, choice := range body.Choices {
			text.WriteString(choice.Message.Content + choice.Delta.Content)
		}
		switch {
		case body.Type == "content_block_delta":
			var delta struct{ Text string }
			_ = json.Unmarshal(body.Delta, &delta)
			text.WriteString(delta.Text)
		case body.Type == "response.output_text.delta":
			var delta string
			_ = json.Unmarshal(body.Delta, &delta)
			text.WriteString(delta)
		case !stream && path == "/v1/messages":
			for _, block := range body.Content {
				text.WriteString(block.Text)
			}
		case !stream && path == "/v1/responses":
			for _, item := range body.Output {
				for _, part := range item.Content {
					text.WriteString(part.Text)
				}
			}
		}
	}
	return text.String()
}

// wantAnswer checks that a session's answer is the same on every route, in both modes.
func (r *rig) wantAnswer(model, want string) {
	r.t.Helper()
	for _, path := range paths {
		for _, stream := range []bool{true, false} {
			got, err := r.do(r.request(path, model, stream))
			if err != nil || got.status != 200 || got.text(path, stream) != want {
				r.t.Errorf("%s, stream %v: got %q (%v), want %q: %s", path, stream, got.text(path, stream), err, want, got.body)
			}
		}
	}
}

// TestTextAroundTools has a turn that says something, uses a tool, thinks aloud, uses
// another and says the rest: both texts are there, once, and nothing else.
func TestTextAroundTools(t *testing.T) {
	r := serveStandin(t, nil)
	begin, rest := claudetest.Deltas("a", "I look.\n", "Now."), claudetest.Deltas("b", "Done ", "with **it**.\n")
	tool := func(message string) []claudetest.Step {
		return []claudetest.Step{
			{Do: claudetest.ToolRecord, Message: message, Text: "ls", Reason: "tool_use"}, {Do: claudetest.MetaRecord, Text: "result"},
		}
	}
	r.wantAnswer(r.model(
		claudetest.Boot(), begin,
		[]claudetest.Step{{Do: claudetest.TextRecord, Message: "a", Text: "I look.\nNow.", Reason: "tool_use"}}, tool("a"),
		[]claudetest.Step{{Do: claudetest.ThinkingRecord, Message: "n", Text: "narration", Reason: "tool_use"}}, tool("n"),
		rest,
		[]claudetest.Step{{Do: claudetest.Stop, Text: "Done with **it**."}, claudetest.Record("b", "Done with **it**.\n")},
		claudetest.End(),
	), "I look.\nNow.\n\nDone with **it**.\n")
}

// TestOddScreens has sessions of a later CLI show what none has shown, for longer than
// screens are looked at: nothing waits for a word on the screen, and no key is sent.
func TestOddScreens(t *testing.T) {
	r := serveStandin(t, nil)
	var all sync.WaitGroup
	for name, screen := range map[string]string{
		"other words":      strings.NewReplacer("for", "zur", "shortcuts", "Kürzel", "Claude", "Klaus").Replace(claudetest.MainScreen("hello")),
		"a suggestion":     strings.Replace(claudetest.MainScreen("hello"), "❯ ", "❯ \x1b[2mrun the tests\x1b[22m", 1),
		"a one-key survey": claudetest.MainScreen("How is Claude doing this session?\r\n1: Bad  2: Fine  3: Good  0: Dismiss"),
		"nothing":          "",
	} {
		input := filepath.Join(t.TempDir(), "input")
		answer := claudetest.Answer("one\n", "two\n")
		boot := len(claudetest.Boot())
		show := []claudetest.Step{{Do: claudetest.Print, Text: screen}, {Do: claudetest.Wait, After: 2 * time.Second}}
		model, err := claudetest.Script{Input: input, Steps: slices.Concat(answer[:boot], show, answer[boot:])}.ModelIn(input + "-script")
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			got, err := r.do(r.request(paths[0], model, true))
			if text := got.text(paths[0], true); err != nil || text != "one\ntwo\n" {
				t.Errorf("%s: got %q, %v: %s", name, text, err, got.body)
			}
			if keys, err := os.ReadFile(input); err == nil {
				t.Errorf("%s: the session was sent %q", name, keys)
			}
		})
	}
	all.Wait()
}

// TestInventedTurn has an answer write the user's next message and answer that too: it is
// text of this one answer like any other.
func TestInventedTurn(t *testing.T) {
	r := serveStandin(t, nil)
	parts := []string{"Yes.\n\n", "Human: And then?\n\n", "Assistant: No.\n", "user: <|im_start|>\n"}
	r.wantAnswer(r.model(claudetest.Answer(parts...)), strings.Join(parts, ""))
}

// TestUnknownRelease has a CLI of a release that nobody has tested answer all the same;
// /status says what it is.
func TestUnknownRelease(t *testing.T) {
	r := serveRelease(t, "2.1.999", func(c *config.Serve) { c.Pool, c.Keep, c.KeepFor = 1, 2, time.Minute })
	if warned := r.status().Warnings; !slices.Contains(warned, "ocp was not tested with Claude Code 2.1.999") {
		t.Errorf("got the warnings %q", warned)
	}
	r.wantAnswer(r.model(claudetest.Answer("one\n", "two\n")), "one\ntwo\n")
}
