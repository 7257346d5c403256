package claude

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A look at a state directory tells what openState would run into, and changes nothing.
func TestLookAtState(t *testing.T) {
	for name, test := range map[string]struct {
		make  func(root string) // makes what there is
		want  StateLook         // of it, what has no path
		fault string
	}{
		"none":         {},
		"an empty one": {make: func(root string) { _ = os.Mkdir(root, 0o700) }, want: StateLook{Exists: true}},
		"open":         {make: func(root string) { _ = os.Mkdir(root, 0o755) }, want: StateLook{Exists: true, Open: true}},
		"a file":       {make: func(root string) { put(t, root, "", 0o600) }, want: StateLook{Exists: true}, fault: "not a folder"},
		"foreign":      {make: func(root string) { put(t, filepath.Join(root, "diary"), "", 0o600) }, want: StateLook{Exists: true, Foreign: true}},
		"left by one that was killed": {
			make: func(root string) {
				put(t, filepath.Join(root, lockName), "999999999 1\n", 0o600)
				put(t, filepath.Join(root, "sessions", "one", "file"), "", 0o600)
				put(t, filepath.Join(root, "sessions", "two", "file"), "", 0o600)
			}, want: StateLook{Exists: true, Left: 2},
		},
		"in a repository": {make: func(root string) { _ = os.Mkdir(filepath.Join(filepath.Dir(root), ".git"), 0o700) }, want: StateLook{InGit: true}},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			root := filepath.Join(parent, "state")
			if test.make != nil {
				test.make(root)
			}
			before := tree(t, parent)
			got := LookAtState(root)
			if (got.Err == nil) != (test.fault == "") || got.Err != nil && !strings.Contains(got.Err.Error(), test.fault) {
				t.Errorf("got %v, want %q", got.Err, test.fault)
			}
			if want := map[bool]string{true: root, false: parent}[test.want.Exists]; got.Existing != want {
				t.Errorf("the folder that is there is %s", got.Existing)
			}
			got.Err, got.Existing = nil, ""
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if after := tree(t, parent); after != before {
				t.Errorf("there was\n%s\nthere is\n%s", before, after)
			}
		})
	}
	for name, root := range map[string]string{"below a file": filepath.Join(testFile(t), "state"), "not writable": "/proc/self/state"} {
		if got := LookAtState(root); got.Err == nil || got.Exists {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func testFile(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "file")
	put(t, path, "", 0o600)
	return path
}

// tree lists what lies below a folder.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		all = append(all, path+" "+info.Mode().String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

// A state directory that is held is seen to be, is not disturbed, and is not tidied.
func TestLookAtHeldState(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state")
	s, err := openState(root)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(s.sessions(), "one", "file"), "", 0o600)
	before := tree(t, root)
	if got := LookAtState(root); got.Holder != strconv.Itoa(os.Getpid()) || got.Left != 0 || got.Err != nil {
		t.Errorf("got %+v", got)
	}
	if err := TidyState(root); err == nil {
		t.Error("it was tidied")
	}
	if after := tree(t, root); after != before {
		t.Errorf("there was\n%s\nthere is\n%s", before, after)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

func TestTidyState(t *testing.T) {
	root := filepath.Join(t.TempDir(), "more", "state")
	put(t, filepath.Join(root, lockName), "999999999 1\n", 0o600)
	put(t, filepath.Join(root, "sessions", "one", "file"), "", 0o600)
	put(t, filepath.Join(root, "transcripts", "kept.jsonl"), "", 0o600)
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := TidyState(root); err != nil {
		t.Fatal(err)
	}
	if got := LookAtState(root); got != (StateLook{Exists: true, Existing: root}) {
		t.Errorf("got %+v", got)
	}
	if _, err := os.Stat(filepath.Join(root, "transcripts", "kept.jsonl")); err != nil {
		t.Errorf("a kept transcript is gone: %v", err)
	}
}
