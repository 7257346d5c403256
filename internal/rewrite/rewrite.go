// Package rewrite changes files that are a person's own: the change is shown first, and
// what was there is kept beside it. It decides nothing of what is written.
package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/aymanbagabas/go-udiff"
)

// Change is what is to become of a file.
type Change struct {
	Path string
	New  []byte
	Mode fs.FileMode // of a file that is made; one that is there keeps its own

	old    []byte
	exists bool
	target string // Path, or the file that it links to
}

// Plan reads the file and says what is to become of it. The content that edit is given is
// nil if there is no file.
func Plan(path string, mode fs.FileMode, edit func(old []byte) ([]byte, error)) (*Change, error) {
	c := &Change{Path: path, Mode: mode, target: path}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		c.target = target
	}
	old, err := os.ReadFile(c.target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		c.old, c.exists = old, true
	}
	if c.New, err = edit(bytes.Clone(c.old)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// To plans that a file hold what is given.
func To(path string, mode fs.FileMode, content []byte) (*Change, error) {
	return Plan(path, mode, func([]byte) ([]byte, error) { return content, nil })
}

// Exists reports whether the file is there already.
func (c *Change) Exists() bool { return c.exists }

// Needed reports whether the file is not yet what it is to become.
func (c *Change) Needed() bool { return !c.exists || !bytes.Equal(c.old, c.New) }

// Diff is the change as `diff -u` shows it; empty if there is none.
func (c *Change) Diff() string {
	from := c.Path
	if !c.exists {
		from = os.DevNull
	}
	return udiff.Unified(from, c.Path, string(c.old), string(c.New))
}

// Write makes the change, whole or not at all, and returns where the old content is kept;
// that is empty if there was none. A file that has changed since it was read is left alone.
func (c *Change) Write(now time.Time) (backup string, err error) {
	if !c.Needed() {
		return "", nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", c.Path, err)
		}
	}()
	if err := c.unchanged(); err != nil {
		return "", err
	}
	mode := c.Mode
	if c.exists {
		info, err := os.Stat(c.target)
		if err != nil {
			return "", err
		}
		mode = info.Mode().Perm()
		backup = c.target + ".bak-" + now.Format("20060102-150405")
		if err := create(backup, c.old, mode); err != nil {
			return "", err
		}
	} else if err := os.MkdirAll(filepath.Dir(c.target), 0o700); err != nil {
		return "", err
	}
	fresh := fmt.Sprintf("%s.new-%d", c.target, os.Getpid())
	if err := create(fresh, c.New, mode); err != nil {
		return backup, err
	}
	if err := os.Rename(fresh, c.target); err != nil {
		return backup, errors.Join(err, os.Remove(fresh))
	}
	return backup, nil
}

func (c *Change) unchanged() error {
	now, err := os.ReadFile(c.target)
	if errors.Is(err, fs.ErrNotExist) && !c.exists {
		return nil
	}
	if err == nil && (!c.exists || !bytes.Equal(now, c.old)) {
		err = errors.New("it has changed meanwhile; do it again")
	}
	return err
}

// create makes a file that must not be there yet. Of one that could not be made whole
// nothing is left.
func create(path string, content []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
