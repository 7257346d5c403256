package probe

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"ocp/internal/messagesapi"
)

const (
	// half is in the part of an answer that was said when the model pauses.
	half = "Half of the answer has the word quokka in it."
	// pausedFor is how long the model pauses, and how long it is looked for what was said.
	// The CLI writes its files every 100 ms.
	pausedFor = time.Second
	// askBound is how long the CLI may take to ask the model; some ways never do.
	askBound = 15 * time.Second
)

// paused is an answer of which the model has said half when it comes to the gate's third
// step.
func paused(gate *messagesapi.Gate) messagesapi.Answer {
	return messagesapi.Answer{
		Parts: []messagesapi.Part{messagesapi.Text("A first line.\n" + half + "\nThe other half.\nThe end")},
		Gate:  gate,
	}
}

// way is a way that was tried to get at the text while it is being written.
type way struct {
	id, what string
	// within are the files that this way would be, as patterns inside the session's folders;
	// empty for all but those of without, and the screen.
	within  []string
	without []string
	args    func(dir string, model *messagesapi.Server) []string
	env     []string
}

func fixedArgs(args ...string) func(string, *messagesapi.Server) []string {
	return func(string, *messagesapi.Server) []string { return args }
}

// asTheyAre are files that any interactive session writes. They are looked at together.
var asTheyAre = []way{
	{id: "dead-transcript", what: "the transcript of a session that is started by hand", within: []string{"config/projects/*/*.jsonl"}},
	{id: "dead-history", what: "the history file", within: []string{"config/history.jsonl"}},
	{id: "dead-registry", what: "the registry of sessions", within: []string{"config/sessions/*", "config/session-env/*"}},
	{id: "dead-files", what: "any other file that the CLI writes", without: []string{"config/projects/*/*.jsonl", "config/history.jsonl", "config/sessions/*", "config/session-env/*"}},
}

// askedFor are ways that must be asked for.
var askedFor = []way{
	{
		id: "dead-debug", what: "--debug-file at its most verbose", within: []string{"debug.log"},
		args: func(dir string, _ *messagesapi.Server) []string {
			return []string{"--debug-file", filepath.Join(dir, "debug.log")}
		},
		env: []string{"CLAUDE_CODE_DEBUG_LOG_LEVEL=verbose"},
	},
	{
		id: "dead-partial-env", what: "CLAUDE_CODE_INCLUDE_PARTIAL_MESSAGES=1",
		env: []string{"CLAUDE_CODE_INCLUDE_PARTIAL_MESSAGES=1"},
	},
	{
		id: "dead-output-format", what: "--output-format stream-json without -p",
		args: fixedArgs("--output-format", "stream-json", "--verbose"),
	},
	{id: "dead-input-format", what: "--input-format stream-json without -p", args: fixedArgs("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")},
	{id: "dead-mirror", what: "--session-mirror", args: fixedArgs("--session-mirror")},
	{
		id: "dead-sdk-url", what: "--sdk-url",
		args: func(_ string, model *messagesapi.Server) []string {
			return []string{"--sdk-url", strings.Replace(model.URL(), "http://", "ws://", 1) + "/sdk"}
		},
	},
	{
		id: "dead-print", what: "-p --output-format stream-json",
		args: fixedArgs("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"),
	},
}

func deadEndProbes() []probe {
	claim := func(w way) Claim {
		return Claim{
			ID: w.id, DeadEnd: true, Text: "closed as a way to an interactive session's text while it is being written: " + w.what,
			Use: "streams from the hook",
		}
	}
	files := probe{name: "dead-files", run: func(ctx context.Context, e *Env, dir string) (seen, error) {
		return e.tryWays(ctx, dir, asTheyAre, nil, nil)
	}}
	for _, w := range asTheyAre {
		files.claims = append(files.claims, claim(w))
	}
	probes := []probe{files}
	for _, w := range askedFor {
		probes = append(probes, probe{name: w.id, claims: []Claim{claim(w)}, run: func(ctx context.Context, e *Env, dir string) (seen, error) {
			return e.tryWays(ctx, dir, []way{w}, w.args, w.env)
		}})
	}
	return append(probes, paneProbes()...)
}

// tryWays starts a CLI by hand, has its model pause in the middle of an answer, and looks
// where the half that was said is to be found.
func (e *Env) tryWays(ctx context.Context, dir string, ways []way, args func(string, *messagesapi.Server) []string, env []string) (seen, error) {
	gate := messagesapi.NewGate()
	gate.Release()
	gate.Release()
	s, err := e.spawnWith(dir, paused(gate), args, env)
	if err != nil {
		return nil, err
	}
	reached := s.pauses(ctx, gate)
	found := map[string]string{} // where the half was found, by the way's id
	if reached {
		look := time.NewTicker(screenEvery)
		defer look.Stop()
		for over := time.Now().Add(pausedFor); time.Now().Before(over) && ctx.Err() == nil; <-look.C {
			for _, w := range ways {
				if place := s.holds(dir, w); place != "" {
					found[w.id] = place
				}
			}
		}
	}
	gate.Open()
	if reached {
		bounded, cancel := context.WithTimeout(ctx, callsBound)
		_ = s.answered(bounded, "The end") // so that what is said of its files is said of a whole turn
		cancel()
	}
	result := seen{}
	for _, w := range ways {
		s.judge(result, dir, w, reached, found[w.id])
	}
	return result, s.close()
}

// pauses waits until the model has paused, and reports whether it was asked at all.
func (s *spawned) pauses(ctx context.Context, gate *messagesapi.Gate) bool {
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-s.terminal.Done():
		case <-ctx.Done():
		}
	}()
	return gate.Arrived(ctx, 3) == nil
}

// holds returns where the half of the answer is that was said: the name of a file or, if
// the way is no file, "the screen", if it has it in the form of events.
func (s *spawned) holds(dir string, w way) string {
	for _, file := range w.files(dir) {
		if data, err := os.ReadFile(file); err == nil && bytes.Contains(data, []byte(half)) {
			return filepath.Base(file)
		}
	}
	if w.within == nil && strings.Contains(s.terminal.Screen(), "text_delta") {
		return "the screen"
	}
	return ""
}

// files are those that the way would be.
func (w way) files(dir string) []string {
	var files []string
	for _, pattern := range w.within {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		files = append(files, found...)
	}
	if w.within != nil {
		return files
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && !slices.ContainsFunc(w.without, func(pattern string) bool {
			matches, _ := filepath.Match(filepath.Join(dir, pattern), path)
			return matches
		}) {
			files = append(files, path)
		}
		return nil
	})
	return files
}

func (s *spawned) judge(found seen, dir string, w way, reached bool, place string) {
	entry := s.entrypoint()
	if !reached {
		found.say(w.id, true, "no turn: %s", s.ending())
		return
	}
	bytes := 0
	files := w.files(dir)
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			bytes += int(info.Size())
		}
	}
	calls := len(s.tap.of(""))
	found.say(w.id, place == "" || entry != "cli", "entrypoint %s, %d hook calls; half of the answer: %s; %d files of %d KB in the end%s",
		entry, calls, cmp.Or(place, "nowhere"), len(files), bytes>>10, s.streamEvents(files))
}

var streamEvent = regexp.MustCompile(`(?i)stream[ _-]?event|content_block_delta|first chunk|stream started`)

// streamEvents says what a debug log tells of the stream.
func (s *spawned) streamEvents(files []string) string {
	if len(files) != 1 || filepath.Ext(files[0]) != ".log" {
		return ""
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		return ""
	}
	return fmt.Sprintf(", %d lines, %d of them of the stream, text of the answer: %t",
		bytes.Count(data, []byte("\n")), len(streamEvent.FindAll(data, -1)), bytes.Contains(data, []byte(half)))
}

var entrypoint = regexp.MustCompile(`cc_entrypoint=([a-z_-]+)`)

// entrypoint is what the CLI tells the model that it is; empty if it has not asked.
func (s *spawned) entrypoint() string {
	for _, r := range s.model.Turns() {
		if m := entrypoint.FindSubmatch(r.Body); m != nil {
			return string(m[1])
		}
	}
	return ""
}

// ending says what a CLI that has not asked the model is doing.
func (s *spawned) ending() string {
	others := map[string]bool{}
	var list []string
	for _, r := range s.model.Requests() {
		if other := r.Method + " " + r.Path; r.Method != "HEAD" && !others[other] {
			others[other] = true
			list = append(list, other)
		}
	}
	what := "the CLI waits"
	select {
	case <-s.terminal.Done():
		what = fmt.Sprintf("the CLI has ended (%s): %q", s.terminal.Exit(), firstLine(s.terminal.Screen()))
	default:
	}
	if len(list) > 0 {
		what += "; it asked for " + strings.Join(list, ", ")
	}
	return what
}

func firstLine(screen string) string {
	for line := range strings.Lines(screen) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// spawnWith is spawn with arguments that depend on the folder and the model.
func (e *Env) spawnWith(dir string, answer messagesapi.Answer, args func(string, *messagesapi.Server) []string, env []string) (*spawned, error) {
	model, err := messagesapi.Start(messagesapi.Options{Script: messagesapi.Always(answer)})
	if err != nil {
		return nil, err
	}
	s := &spawned{model: model}
	var list []string
	if args != nil {
		list = args(dir, model)
	}
	if err := s.start(e, dir, append([]string{"--strict-mcp-config"}, list...), env); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}
