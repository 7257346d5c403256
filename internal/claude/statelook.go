package claude

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// StateLook is what can be seen of a state directory without taking it.
type StateLook struct {
	Exists   bool
	Open     bool   // others may look into it
	Foreign  bool   // it holds something and was never a state directory
	Err      error  // why it cannot be used; nil for one that is not there yet and can be made
	Holder   string // the process of the ocp that holds it; empty if none does
	Left     int    // sessions that an ocp which was killed has left
	InGit    bool
	Existing string // the folder itself, or the nearest above that is there
}

// LookAtState looks at a state directory. To see whether it can be written to it makes a
// folder in it and removes it again, unless an ocp holds it. Its lock is not touched: an
// ocp that starts at that moment would find it taken.
func LookAtState(root string) StateLook {
	l := StateLook{Existing: root, InGit: inGitRepo(root)}
	info, err := os.Stat(root)
	for errors.Is(err, os.ErrNotExist) && filepath.Dir(l.Existing) != l.Existing {
		l.Existing = filepath.Dir(l.Existing)
		_, err = os.Stat(l.Existing)
	}
	if err != nil {
		l.Err = err
		return l
	}
	if l.Exists = l.Existing == root; l.Exists {
		l.look(info)
	}
	if l.Err == nil && l.Holder == "" && !l.Foreign {
		l.Err = writable(l.Existing)
	}
	return l
}

func (l *StateLook) look(info os.FileInfo) {
	root := l.Existing
	if !info.IsDir() {
		l.Err = fmt.Errorf("%s is not a folder", root)
		return
	}
	l.Open = info.Mode()&0o077 != 0
	switch err := ownState(root); {
	case errors.Is(err, ErrNotOurs):
		l.Foreign = true
		return
	case err != nil:
		l.Err = err
		return
	}
	if signed, err := os.ReadFile(filepath.Join(root, lockName)); err == nil {
		if _, ok := stillRuns(string(signed)); ok {
			l.Holder, _, _ = strings.Cut(string(signed), " ")
			return
		}
	}
	left, _ := os.ReadDir((&state{root: root}).sessions())
	l.Left = len(left)
}

func writable(dir string) error {
	trial, err := os.MkdirTemp(dir, ".ocp-doctor-")
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		return fmt.Errorf("nothing can be made in %s: %w", dir, failed.Err)
	}
	if err != nil {
		return err
	}
	return os.Remove(trial)
}

// TidyState makes the state directory if need be, closes it to others and removes what an
// ocp which was killed left in it. Errors: ErrStateInUse, ErrNotOurs.
func TidyState(root string) error {
	s, err := openState(root)
	if err != nil {
		return err
	}
	// This process goes on, and is not to be taken for one that holds it.
	return errors.Join(s.lock.Truncate(0), s.close())
}
