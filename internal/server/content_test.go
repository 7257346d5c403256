package server

import (
	"fmt"
	"strings"
	"testing"

	"ocp/internal/turn"
)

// TestContentIsLoggedOnlyIfWanted looks for the texts of a conversation in all that is
// logged at any level, of a turn that goes well and of one that breaks off.
func TestContentIsLoggedOnlyIfWanted(t *testing.T) {
	const body = `{"model":"opus","stream":%v,"messages":[{"role":"system","content":"canary-system"},{"role":"user","content":"canary-prompt"}]}`
	for _, wanted := range []bool{false, true} {
		for _, streamed := range []bool{false, true} {
			r := start(t, Options{LogContent: wanted}, oneSlot)
			turns := [][]step{
				{{event: turn.Started{}}, {event: turn.Delta{Text: "canary-"}}, {event: turn.Delta{Text: "answer"}}, {event: finished}},
				{{event: turn.Started{}}, {event: turn.Delta{Text: "canary-answer"}}, {err: &turn.Error{Kind: turn.Upstream, Message: "it broke"}}},
			}
			for _, steps := range turns {
				got := r.send(t.Context(), fmt.Sprintf(body, streamed))
				s := <-r.backend.started
				for _, step := range steps {
					s.steps <- step
				}
				<-got
			}
			r.do("POST", "/v1/chat/completions", "application/json", `{"model":"opus","messages":[{"role":"canary","content":"x"}]}`)
			r.wantFree()
			if err := r.server.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			contents := 0
			for range len(turns) + 1 { // each request's own line
				for {
					line := <-r.lines
					if line["msg"] != "content" {
						if text := fmt.Sprint(line); strings.Contains(text, "canary") {
							t.Errorf("logged %s", text)
						}
						break
					}
					contents++
					if line["system"] != "canary-system" || line["messages"] != `[{"Role":"user","Content":[{"type":"text","text":"canary-prompt"}]}]` || line["answer"] != "canary-answer" || line["id"] == "" {
						t.Errorf("the content is %v", line)
					}
				}
			}
			if want := map[bool]int{true: len(turns)}[wanted]; contents != want {
				t.Errorf("wanted %v: %d lines of content, want %d", wanted, contents, want)
			}
		}
	}
}

func TestContentIsBounded(t *testing.T) {
	var c content
	for range 3 {
		c.add(turn.Delta{Text: strings.Repeat("x", mostContent/2+1)})
	}
	if len(c.answer) != mostContent {
		t.Errorf("%d bytes are held", len(c.answer))
	}
	got := c.attrs()[2].Value.String()
	if want := strings.Repeat("x", mostContent) + fmt.Sprintf("… (%d bytes)", 3*(mostContent/2+1)); got != want {
		t.Errorf("got %d bytes that end in %q", len(got), got[len(got)-30:])
	}
}
