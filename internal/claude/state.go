package claude

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrStateInUse is returned for a state directory that a running ocp holds.
var ErrStateInUse = errors.New("the state directory is in use by another ocp: stop it, or give this one its own with --state-dir")

// lockName is the file that makes a folder a state directory.
const lockName = "ocp.lock"

// state is OCP's own directory. Only one ocp at a time holds it; what an earlier one
// left of its sessions is removed when it is opened.
//
//	ocp.lock        held while ocp runs; names its process
//	ocp.db          keys and usage: the store package's
//	settings.json   the sessions' settings, without secrets
//	*.sock          sockets, or sockets, a link to their folder
//	mcp.json        the server of their tools
//	sessions/ID/    all that belongs to one session
//	cwd/            working directory of sessions that use the operator's login
//	transcripts/    kept transcripts, if asked for
type state struct {
	root string
	lock *os.File
}

// MakeState makes a state directory of a new or an empty folder, and leaves one alone that
// is one. It returns its real path. It does not take the lock, so that an ocp may run in it.
// Error: ErrNotOurs.
func MakeState(root string) (string, error) {
	root, lock, err := makeState(root)
	if err != nil {
		return "", err
	}
	return root, lock.Close()
}

// makeState is MakeState, and returns the lock's file too.
func makeState(root string) (string, *os.File, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", nil, fmt.Errorf("state directory: %w", err)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", nil, fmt.Errorf("--state-dir: %w", err)
	}
	// The CLI names a folder after its working directory's real path.
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return "", nil, fmt.Errorf("state directory: %w", err)
	}
	if err := ownState(root); err != nil {
		return "", nil, err
	}
	if err := os.Chmod(root, 0o700); err != nil {
		return "", nil, fmt.Errorf("--state-dir: close it to others: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(root, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", nil, fmt.Errorf("--state-dir: open its lock: %w", err)
	}
	return root, lock, nil
}

// openState takes the directory, making it if need be. Errors: ErrStateInUse, ErrNotOurs.
func openState(root string) (*state, error) {
	root, lock, err := makeState(root)
	if err != nil {
		return nil, err
	}
	// The kernel gives the lock back when its holder dies, however it dies.
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			holder, _ := os.ReadFile(lock.Name())
			pid, _, _ := strings.Cut(string(holder), " ")
			return nil, fmt.Errorf("%w (%s, held by process %s)", ErrStateInUse, root, pid)
		}
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	s := &state{root: root, lock: lock}
	if err := errors.Join(s.sign(), s.sweep()); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("take state directory: %w", err)
	}
	return s, nil
}

// ErrNotOurs is returned for a folder that holds something and was never a state
// directory: ocp would sweep it.
var ErrNotOurs = errors.New("the folder is not empty and no state directory of ocp: name an empty or a new one with --state-dir")

// ownState reports whether a folder may be taken: it is empty, or an earlier ocp has
// left its lock in it.
func ownState(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("read state directory: %w", err)
	}
	for _, e := range entries {
		if e.Name() == lockName {
			return nil
		}
	}
	if len(entries) > 0 {
		return fmt.Errorf("%w (%s)", ErrNotOurs, root)
	}
	return nil
}

// sign writes into the lock who holds it: for people, the kernel's lock is what counts.
func (s *state) sign() error {
	started, err := startTime(os.Getpid())
	if err != nil {
		return err
	}
	if err := s.lock.Truncate(0); err != nil {
		return err
	}
	_, err = s.lock.WriteAt(fmt.Appendf(nil, "%d %d\n", os.Getpid(), started), 0)
	return err
}

// sweep removes what an earlier ocp left of its sessions.
func (s *state) sweep() error {
	return errors.Join(
		killLeftovers(s.sessions()),
		os.RemoveAll(s.sessions()),
		os.MkdirAll(s.sessions(), 0o700),
		os.MkdirAll(s.sharedDir(), 0o700),
	)
}

// RemoveLeft removes a state directory that an ocp which was killed left behind. One
// that is in use, or is none, is left alone.
func RemoveLeft(root string) error {
	if _, err := os.Stat(filepath.Join(root, lockName)); err != nil {
		return nil
	}
	s, err := openState(root)
	if errors.Is(err, ErrStateInUse) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(s.root), s.lock.Close())
}

func (s *state) sessions() string     { return filepath.Join(s.root, "sessions") }
func (s *state) settingsPath() string { return filepath.Join(s.root, "settings.json") }
func (s *state) mcpPath() string      { return filepath.Join(s.root, "mcp.json") }
func (s *state) sharedDir() string    { return filepath.Join(s.root, "cwd") }
func (s *state) kept() string         { return filepath.Join(s.root, "transcripts") }

func (s *state) close() error {
	return errors.Join(os.RemoveAll(s.sessions()), s.lock.Close())
}

const (
	// maxSocketPath is how long the path of a Unix socket may be: 104 bytes with the
	// final zero on darwin, 108 on Linux.
	maxSocketPath = 103

	hookSocket    = "hook.sock"
	paneSocket    = "pane.sock"
	controlSocket = "control.sock" // the longest

	// socketLink stands in the state directory for sockets that are elsewhere.
	socketLink = "sockets"
	// socketPrefix begins the names of folders for sockets.
	socketPrefix = "ocp-"
)

// socketDir makes the place where the sockets go: the state directory, or a private
// temporary folder if their paths would be too long. That one is returned as what to
// remove at the end. What an earlier ocp left of either is removed.
func (s *state) socketDir() (dir, remove string, err error) {
	link := filepath.Join(s.root, socketLink)
	if old, err := os.Readlink(link); err == nil && strings.HasPrefix(filepath.Base(old), socketPrefix) {
		_ = os.RemoveAll(old) // in the system's temporary folder, which is swept in any case
	}
	for _, name := range []string{socketLink, hookSocket, paneSocket, controlSocket} {
		if err := os.Remove(filepath.Join(s.root, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", "", fmt.Errorf("remove an old socket: %w", err)
		}
	}
	if len(filepath.Join(s.root, controlSocket)) <= maxSocketPath {
		return s.root, "", nil
	}
	if dir, err = os.MkdirTemp("", socketPrefix); err != nil {
		return "", "", fmt.Errorf("make a folder for sockets: %w", err)
	}
	if err := os.Symlink(dir, link); err != nil {
		return "", "", errors.Join(fmt.Errorf("name the folder of the sockets: %w", err), os.RemoveAll(dir))
	}
	return dir, dir, nil
}

// ControlSocket is the path of the socket on which an ocp with that state directory tells
// of its sessions.
func ControlSocket(root string) string {
	if dir, err := os.Readlink(filepath.Join(root, socketLink)); err == nil {
		root = dir
	}
	return filepath.Join(root, controlSocket)
}

// DefaultStateDir is $XDG_STATE_HOME/ocp, or ~/.local/state/ocp. It is empty if the
// environment names neither.
func DefaultStateDir(env []string) string {
	if dir, ok := lookup(env, "XDG_STATE_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "ocp")
	}
	if home, ok := lookup(env, "HOME"); ok {
		return filepath.Join(home, ".local", "state", "ocp")
	}
	return ""
}

// shortID is the part of a session id that names its folder and its log lines.
func shortID(id string) string {
	short, _, _ := strings.Cut(id, "-")
	return short
}
