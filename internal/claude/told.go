package claude

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ocp/internal/prompt"
	"ocp/internal/transcript"
)

// announcing are the CLI versions that put what they know of their surroundings before
// the first prompt that is typed into a session, unless its transcript says that the model
// was told. It was not told when the last turn was re-run, and of a host it need not be.
const announcing = "2.1.332"

// told are the entries that keep a session from telling the model of its surroundings
// when its conversation goes on: the working directory, the system, and, once that was
// seen, how the CLI describes the model. They must be what the CLI would tell, or it tells
// what is different.
func (l *Launcher) told(p place, key Key) []transcript.Entry {
	if l.unkept != "" || l.options.Version != announcing {
		return nil
	}
	list := []transcript.Entry{{Told: map[string]any{"type": "environment", "snapshot": surroundings(p.cwd)}}}
	l.mu.Lock()
	defer l.mu.Unlock()
	if model, ok := l.models[key.Model]; ok {
		list = append(list, transcript.Entry{Told: model})
	}
	return list
}

// today keeps the CLI from putting its date into a tool result of the last message, which
// it would also put a line feed behind.
func (l *Launcher) today(c prompt.Conversation) []transcript.Entry {
	last := len(c.Messages) - 1
	if l.options.Version != announcing || last < 0 || resultsOf(c.Messages[last]) == 0 {
		return nil
	}
	return []transcript.Entry{{Told: map[string]any{"type": "date", "date": time.Now().In(zone(l.options.Env)).Format(time.DateOnly)}}}
}

// zone is the time zone of the sessions.
func zone(env []string) *time.Location {
	if name, ok := lookup(env, "TZ"); ok {
		if zone, err := time.LoadLocation(strings.TrimPrefix(name, ":")); err == nil {
			return zone
		}
	}
	return time.Local
}

// learn remembers how the CLI describes a model.
func (l *Launcher) learn(key Key, r transcript.Record) {
	if r.Type != "attachment" || r.AttachmentType != "model" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.models[key.Model] = r.Attachment
}

// snapshot is an environment attachment's.
type snapshot struct {
	WorkingDirectory string   `json:"workingDirectory"`
	IsWorktree       bool     `json:"isWorktree"`
	IsGitRepo        bool     `json:"isGitRepo"`
	Additional       []string `json:"additionalWorkingDirectories"`
	Platform         string   `json:"platform"`
	Shell            string   `json:"shell"`
	OSVersion        string   `json:"osVersion"`
}

func surroundings(cwd string) snapshot {
	return snapshot{
		WorkingDirectory: cwd, IsGitRepo: inGitRepo(cwd), Additional: []string{},
		Platform: runtime.GOOS, Shell: filepath.Base(shell), OSVersion: osVersion(),
	}
}

func osVersion() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
}

func inGitRepo(dir string) bool {
	for {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
	}
}
