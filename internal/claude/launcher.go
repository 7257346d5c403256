// Package claude is everything OCP knows about the Claude Code CLI: how it is
// launched and with what settings and environment, how a conversation is given to it,
// how a session lives and ends, and what its errors look like. When a CLI release
// changes something, this package changes.
package claude

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"ocp/internal/hook"
	"ocp/internal/terminal/tmux"
	"ocp/internal/transcript"
	"ocp/internal/turn"
)

// Options configure a Launcher.
type Options struct {
	Path     string // of the claude binary
	Version  string // of the CLI, as Version tells it; empty if it is not known
	StateDir string // OCP's own directory; see DefaultStateDir

	// HookTransport is how hook calls arrive; empty for HTTP. HookCommand is the
	// command line that forwards one hook call from stdin (`ocp hook`).
	HookTransport Transport
	HookCommand   []string

	// HookURL is where the sessions send their http hooks, for who stands in between: it
	// must pass them on to Launcher.HookURL, with their secrets. Empty for just that.
	HookURL string

	// EditorCommand is the command line by which a running session is given its next
	// prompt (`ocp editor`). Without one, or with a space in a word of it, no conversation
	// goes on in its session.
	EditorCommand []string

	// Tmux is tmux, as an absolute path: sessions then run in panes of a tmux server of
	// ocp's own. Empty for pseudo-terminals. PaneCommand is the command line that runs in a
	// pane (`ocp pane`).
	Tmux        string
	PaneCommand []string

	// MCPCommand is the command line of the server that offers a client's tools to a
	// session (`ocp mcp`). Without one no session has tools.
	MCPCommand []string

	// Env is OCP's own environment. Sessions get of it what this package lists, and
	// the variables named in PassEnv.
	Env     []string
	PassEnv []string

	Effort string // for requests that name none; empty for the CLI's own

	// StartTimeout is how long a session may take until its SessionStart hook; zero
	// for one minute. A second is usual, twenty booting at once on two cores take 15 s.
	StartTimeout time.Duration

	// TakeUpTimeout is how long a session that has started may idle without a sign of
	// its turn; zero for 15 s.
	TakeUpTimeout time.Duration

	// QuietBound is how long the end of a turn is waited for after the last sign of it;
	// zero for turn.QuietBound.
	QuietBound time.Duration

	// KeepSessions lets a session live on after a good answer until it is closed, so that
	// its conversation can be continued in it.
	KeepSessions bool

	// ChecksFirst says that Check will be called: until it is over, Health says so.
	ChecksFirst bool

	// KeepTranscripts keeps every session's transcript in the state directory.
	KeepTranscripts bool

	Logger *slog.Logger // nil to discard
}

// Launcher starts sessions. It holds the state directory and the hook receiver they
// share.
type Launcher struct {
	options  Options
	log      *slog.Logger
	state    *state
	hooks    *hook.Receiver
	panes    *tmux.Server // nil if sessions run under pseudo-terminals
	sockets  string       // the folder of the sockets
	passing  string       // the same if it is to be removed at the end
	sessions sync.WaitGroup
	health   health
	started  atomic.Int64 // sessions
	unkept   string       // why no session lives on after its answer; empty if they do

	mu     sync.Mutex
	models map[string]json.RawMessage // guarded by mu; see learn
	live   map[*Session]struct{}      // guarded by mu
}

// New takes the state directory, sweeps what an earlier ocp left in it, and opens the
// hook receiver. Errors: ErrStateInUse, or what could not be made.
func New(o Options) (*Launcher, error) {
	if o.HookTransport == "" {
		o.HookTransport = HTTP
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = time.Minute
	}
	if o.TakeUpTimeout == 0 {
		o.TakeUpTimeout = 15 * time.Second
	}
	if o.QuietBound == 0 {
		o.QuietBound = turn.QuietBound
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	st, err := openState(o.StateDir)
	if err != nil {
		return nil, err
	}
	l := &Launcher{options: o, log: o.Logger, state: st, models: map[string]json.RawMessage{}, live: map[*Session]struct{}{}, health: health{log: o.Logger, version: o.Version, checking: o.ChecksFirst}}
	l.health.loggedIn = l.loggedIn()
	l.unkept = l.whyUnkept()
	if err := l.open(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Launcher) open() error {
	if err := l.sweepShared(); err != nil {
		return err
	}
	var err error
	if l.sockets, l.passing, err = l.state.socketDir(); err != nil {
		return err
	}
	if l.hooks, err = hook.Start(l.socket(hookSocket)); err != nil {
		return err
	}
	if err := l.openPanes(); err != nil {
		return err
	}
	url := cmp.Or(l.options.HookURL, l.hooks.URL())
	data, err := settings(l.options.HookTransport, url, l.options.HookCommand)
	if err != nil {
		return fmt.Errorf("make settings: %w", err)
	}
	if err := os.WriteFile(l.state.settingsPath(), data, 0o600); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	if len(l.options.MCPCommand) == 0 {
		return nil
	}
	if data, err = mcpConfig(l.options.MCPCommand); err != nil {
		return fmt.Errorf("make the list of servers: %w", err)
	}
	if err := os.WriteFile(l.state.mcpPath(), data, 0o600); err != nil {
		return fmt.Errorf("write the list of servers: %w", err)
	}
	return nil
}

// socket is the path of one of the launcher's sockets.
func (l *Launcher) socket(name string) string { return filepath.Join(l.sockets, name) }

// HookURL is where the launcher takes http hooks.
func (l *Launcher) HookURL() string { return l.hooks.URL() }

// private reports whether sessions have configuration directories of their own.
func (l *Launcher) private() bool {
	for _, name := range credentials {
		if _, ok := lookup(l.options.Env, name); ok {
			return true
		}
	}
	return false
}

// sweepShared removes what sessions with the operator's login left for OCP's working
// directory in the operator's configuration: transcripts that only OCP wrote.
func (l *Launcher) sweepShared() error {
	if l.private() {
		return nil
	}
	dir := transcript.ProjectDir(operatorConfig(l.options.Env), l.state.sharedDir())
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("sweep transcripts: %w", err)
	}
	return nil
}

// Close waits for all sessions, which their owners must have closed, and gives the
// state directory back.
func (l *Launcher) Close() error {
	l.sessions.Wait()
	var errs []error
	if l.hooks != nil {
		errs = append(errs, l.hooks.Close())
	}
	if l.panes != nil {
		errs = append(errs, l.panes.Close())
	}
	if l.passing != "" {
		errs = append(errs, os.RemoveAll(l.passing), os.Remove(filepath.Join(l.state.root, socketLink)))
	}
	return errors.Join(append(errs, l.sweepShared(), l.state.close())...)
}

// keep copies a session's transcript out of its folder, if the operator asked for it.
func (l *Launcher) keep(p place, id string) error {
	if !l.options.KeepTranscripts {
		return nil
	}
	if err := os.MkdirAll(l.state.kept(), 0o700); err != nil {
		return fmt.Errorf("keep transcript: %w", err)
	}
	if err := os.Rename(p.transcript, filepath.Join(l.state.kept(), id+".jsonl")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("keep transcript: %w", err)
	}
	return nil
}

func newID() string { return uuid.NewString() }
