package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ocp/internal/messagesapi"
)

func TestZZExplore(t *testing.T) {
	onEachCLI(t, func(t *testing.T, c cli) {
		p := startProxy(t, c, proxyOptions{args: []string{"--keep-transcripts", "--turn-timeout", "8s"}})
		for name, sent := range map[string][]sentMessage{
			"blank part":      {{"user", []textPart{{"text", "a"}, {"text", " \n"}, {"text", "b"}}}},
			"blank last":      {{"user", " \n "}},
			"nbsp last":       {{"user", "\u00a0\ufeff"}},
			"blank part mid":  {{"user", "q"}, {"assistant", []textPart{{"text", "a"}, {"text", " \n"}, {"text", "b"}}}, {"user", "z"}},
			"trailing blank part": {{"user", []textPart{{"text", "a"}, {"text", "  "}}}},
			"interrupted":     {{"user", "[Request interrupted by user]"}},
			"interrupted2":     {{"user", []textPart{{"text", "["}, {"text", "Request interrupted by user]"}}}},
			"interrupted more":     {{"user", "[Request interrupted by user] and more"}},
			"bash-input":     {{"user", "<bash-input>ls</bash-input>"}},
			"bash-input2":     {{"user", []textPart{{"text", "<"}, {"text", "bash-input>ls</bash-input>"}}}},
			"bash-stdout":     {{"user", "<bash-stdout>ls</bash-stdout>"}},
			"caveat":     {{"user", "<local-command-caveat>ls"}},
			"tasknot":     {{"user", "<task-notification>ls"}},
			"no content split":  {{"user", "q"}, {"assistant", []textPart{{"text", "("}, {"text", "no content)"}}}, {"user", "z"}},
			"no content":  {{"user", "q"}, {"assistant", "(no content)"}, {"user", "z"}},
			"no content last":  {{"user", "(no content)"}},
			"stop": {{"user", "The user doesn't want to take this action right now. STOP what you are doing and wait for the user to tell you how to proceed."}},
		} {
			p.model.Reset()
			p.model.SetScript(messagesapi.Always(messagesapi.TextAnswer("ok")))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			r := p.postChat(ctx, chatBody{Model: modelName, Messages: sent})
			cancel()
			out := fmt.Sprintf("%s: %d turns=%d", name, r.status, len(p.model.Turns()))
			for _, rec := range p.model.Turns() {
				q, _ := rec.Decode()
				out += strings.ReplaceAll(outline(q.Messages), "<system-reminder>", "SR")
			}
			if r.status != 200 {
				out += string(r.body)
				files, _ := filepath.Glob(p.state + "/transcripts/*")
				for _, f := range files {
					b, _ := os.ReadFile(f)
					for l := range strings.SplitSeq(string(b), "\n") {
						out += "\n     " + l[:min(200, len(l))]
					}
				}
			}
			files, _ := filepath.Glob(p.state + "/transcripts/*")
			for _, f := range files {
				os.Remove(f)
			}
			t.Log(out)
		}
	})
}
