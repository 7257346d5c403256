package rewrite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

func TestNewFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b")
	c, err := To(path, 0o600, []byte("one\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "--- /dev/null\n+++ " + path + "\n@@ -0,0 +1 @@\n+one\n"; c.Diff() != want {
		t.Errorf("got %q, want %q", c.Diff(), want)
	}
	if backup, err := c.Write(noon); backup != "" || err != nil {
		t.Errorf("%q, %v", backup, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || read(t, path) != "one\n" {
		t.Errorf("%v, %v", info, err)
	}
	if got := names(t, filepath.Dir(path)); got != "b" {
		t.Errorf("left beside it: %s", got)
	}
}

// TestExistingFile follows a link, keeps the mode and the old content, and writes nothing
// twice.
func TestExistingFile(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := os.WriteFile(real, []byte("one\ntwo\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	add := func(old []byte) ([]byte, error) {
		if strings.HasSuffix(string(old), "three\n") {
			return old, nil
		}
		return append(old, "three\n"...), nil
	}
	c, err := Plan(link, 0o600, add)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(c.Diff(), " two\n+three\n") || !c.Needed() {
		t.Errorf("%q", c.Diff())
	}
	backup, err := c.Write(noon)
	if err != nil || backup != real+".bak-20260102-120000" || read(t, backup) != "one\ntwo\n" || read(t, real) != "one\ntwo\nthree\n" {
		t.Errorf("%q, %v", backup, err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	if info, err := os.Stat(real); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	again, err := Plan(link, 0o600, add)
	if err != nil || again.Needed() || again.Diff() != "" {
		t.Errorf("again: %v, %q", err, again.Diff())
	}
	if backup, err := again.Write(noon); backup != "" || err != nil {
		t.Errorf("%q, %v", backup, err)
	}
	if got := names(t, dir); got != "link real real.bak-20260102-120000" {
		t.Errorf("the folder holds %s", got)
	}
}

// TestRefusals leaves alone what has changed since, and a backup of the same second.
func TestRefusals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	plan := func(content string) *Change {
		c, err := To(path, 0o600, []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	stale := plan("one")
	if _, err := plan("two").Write(noon); err != nil {
		t.Fatal(err)
	}
	if _, err := stale.Write(noon); err == nil || read(t, path) != "two" {
		t.Errorf("made since: %v", err)
	}
	stale = plan("one")
	if _, err := plan("three").Write(noon); err != nil {
		t.Fatal(err)
	}
	if _, err := stale.Write(noon); err == nil || read(t, path) != "three" {
		t.Errorf("changed since: %v", err)
	}
	if _, err := plan("four").Write(noon); err == nil || read(t, path) != "three" || read(t, path+".bak-20260102-120000") != "two" {
		t.Errorf("a second backup in a second: %v", err)
	}
}
