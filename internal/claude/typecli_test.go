package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/claude/claudetest"
	"ocp/internal/messagesapi"
	"ocp/internal/prompt"
)

// fewTexts is how many texts each CLI is sent, and manyTexts with OCP_SOAK.
const (
	fewTexts  = 20
	manyTexts = 300
	// perSession is how many of them one session is sent, one after the other.
	perSession = 50
)

// Every text that prompt.BoxHazard lets through reaches the model as it is, by way of the
// input box of a real CLI, behind a conversation that stays as it was. OCP_TEST_CLIS names
// the CLIs, as it does for the e2e suite; without, there is nothing to test.
func TestTypedTextsReachTheModel(t *testing.T) {
	named := os.Getenv("OCP_TEST_CLIS")
	if named == "" {
		t.Skip("OCP_TEST_CLIS names no CLI: `make test-cli` does")
	}
	texts := fewTexts
	if os.Getenv("OCP_SOAK") != "" {
		texts = manyTexts
	}
	const seed = 332207
	t.Logf("seed %d", seed)
	t.Run("cli", func(t *testing.T) {
		for pair := range strings.SplitSeq(named, ",") {
			version, path, _ := strings.Cut(pair, "=")
			t.Run(version, func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(seed, uint64(texts)))
				var took []time.Duration
				for n := 0; n < texts; n += perSession {
					batch := passingTexts(random, version, min(perSession, texts-n))
					if n == 0 {
						batch[0] = strings.Repeat("a long text of many lines\n", 4000) + "end" // 104 KB
					}
					took = append(took, typeInto(t, version, path, batch)...)
				}
				slices.Sort(took)
				t.Logf("%d texts; from the key to the prompt's acceptance: median %s, p95 %s, most %s",
					len(took), took[len(took)/2], took[len(took)*95/100], took[len(took)-1])
			})
		}
	})
}

func passingTexts(random *rand.Rand, version string, n int) []string {
	var texts []string
	for len(texts) < n {
		if text := claudetest.NastyText(random); prompt.BoxHazard(version, text) == "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// typeInto sends texts to one session and compares each request with what it must be. It
// returns how long each took.
func typeInto(t *testing.T, version, path string, texts []string) []time.Duration {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	model, err := messagesapi.Start(messagesapi.Options{Script: func(r *messagesapi.Recorded) messagesapi.Answer {
		return messagesapi.TextAnswer(fmt.Sprintf("Answer %d.  \n\n\tÄ 👩‍👧\n", r.Turn))
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	l, err := New(Options{
		Path: path, Version: version, StateDir: filepath.Join(t.TempDir(), "state"), HookCommand: claudetest.HookCommand(), EditorCommand: editorCommand(),
		Env: []string{"PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=sk-ant-of-a-test-0123456789", "ANTHROPIC_BASE_URL=" + model.URL()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeLauncher(t, l) })
	first := "first \t question\r\ne\u0301 👩‍👧 \u200b!  \n"
	y := startTyping(t, l, Key{Model: "claude-sonnet-4-6", Effort: "low"}, prompt.Conversation{
		System: "a system text", Messages: []prompt.Message{{Role: prompt.User, Content: []prompt.Block{prompt.Text(first)}}},
	})
	y.finish(ctx)
	want := []string{first}
	var took []time.Duration
	for i, text := range texts {
		begun := time.Now()
		said, err := y.submit(ctx, text)
		if err != nil {
			t.Fatalf("text %d, %.200q: %v; UserPromptSubmit said %+v\n%s", i, text, err, said, y.terminal.Screen())
		}
		took = append(took, time.Since(begun))
		y.finish(ctx)
		want = append(want, fmt.Sprintf("Answer %d.  \n\n\tÄ 👩‍👧\n", i+1), text)
		turns := model.Turns()
		if len(turns) != i+2 {
			t.Fatalf("text %d, %.200q: %d requests", i, text, len(turns))
		}
		compareRequest(t, turns[i+1], want)
		if diff := cmp.Diff(withoutMessages(t, turns[0].Body), withoutMessages(t, turns[i+1].Body)); diff != "" {
			t.Errorf("text %d, %.200q, changes how the model is asked:\n%s", i, text, diff)
		}
		if t.Failed() {
			return took
		}
	}
	return took
}

// compareRequest wants the texts as messages of one text each, in turn of the user and of
// the assistant, and nothing else but the CLI's reminders: in the first message, and in
// the first that was typed (2.1.332: its environment and its model).
func compareRequest(t *testing.T, recorded *messagesapi.Recorded, want []string) {
	t.Helper()
	request, err := recorded.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if len(request.Messages) != len(want) {
		t.Fatalf("%d messages, want %d", len(request.Messages), len(want))
	}
	for i, m := range request.Messages {
		role := []string{"user", "assistant"}[i%2]
		own := len(m.Content) - 1
		if m.Role != role || own < 0 || own > 0 && i != 0 && i != 2 {
			t.Fatalf("message %d is of %s and has %d blocks", i, m.Role, len(m.Content))
		}
		for _, b := range m.Content[:own] {
			if b.Type != "text" || !strings.HasPrefix(b.Text, reminder) {
				t.Errorf("message %d has a block that nobody sent: %s", i, b.Raw)
			}
		}
		if got := m.Content[own]; got.Type != "text" || got.Text != want[i] {
			t.Errorf("message %d (-want +got):\n%s", i, cmp.Diff(want[i], got.Text))
		}
	}
}

// withoutMessages is a request's body without its messages and the header's line, which
// has a hash of them.
func withoutMessages(t *testing.T, body []byte) any {
	t.Helper()
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	if err := decoder.Decode(&fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "messages")
	if system, ok := fields["system"].([]any); ok && len(system) > 0 {
		fields["system"] = system[1:]
	}
	return fields
}
