package claude

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ocp/internal/prompt"
	"ocp/internal/transcript"
)

func TestStateIsSweptAndHeldByOne(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state")
	left := filepath.Join(root, "sessions", "old", "config")
	kept := filepath.Join(root, "transcripts")
	for _, dir := range []string{left, kept} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := openState(root); !errors.Is(err, ErrNotOurs) {
		t.Fatalf("a folder of somebody's gave %v, want ErrNotOurs", err)
	}
	if _, err := os.Stat(left); err != nil {
		t.Fatal("a folder of somebody's was swept")
	}
	if err := os.WriteFile(filepath.Join(root, lockName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := openState(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Error("what an earlier session left was not swept")
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error("kept transcripts were swept")
	}
	if info, err := os.Stat(root); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the state directory has mode %v, want 0700", info.Mode().Perm())
	}
	if _, err := openState(root); !errors.Is(err, ErrStateInUse) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("a second holder got %v, want ErrStateInUse and who holds it", err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if s, err = openState(root); err != nil {
		t.Fatalf("after close: %v", err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

func TestRemoveLeft(t *testing.T) {
	other, used := t.TempDir(), filepath.Join(t.TempDir(), "s")
	s, err := openState(used)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{other, used} {
		if err := RemoveLeft(dir); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("%s is gone", dir)
		}
	}
	if err := s.lock.Close(); err != nil { // as the kernel does for a process that was killed
		t.Fatal(err)
	}
	if err := RemoveLeft(used); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(used); !errors.Is(err, os.ErrNotExist) {
		t.Error("what was left is still there")
	}
}

func TestLongStatePathGetsAShortSocket(t *testing.T) {
	root := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	l, err := New(Options{StateDir: root, Env: []string{"ANTHROPIC_API_KEY=k"}, HookCommand: []string{"ocp", "hook"}})
	if err != nil {
		t.Fatal(err)
	}
	socket := l.hooks.Socket()
	if got := ControlSocket(root); got != l.ControlSocket() || filepath.Dir(got) != filepath.Dir(socket) {
		t.Errorf("another process looks for the control socket at %s, and it is at %s", got, l.ControlSocket())
	}
	if len(socket) > maxSocketPath {
		t.Errorf("the socket's path has %d bytes", len(socket))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(socket)); !errors.Is(err, os.ErrNotExist) {
		t.Error("the socket's folder was left")
	}
}

func TestDefaultStateDir(t *testing.T) {
	for _, test := range []struct {
		env  []string
		want string
	}{
		{[]string{"HOME=/h"}, "/h/.local/state/ocp"},
		{[]string{"HOME=/h", "XDG_STATE_HOME=/x"}, "/x/ocp"},
		{[]string{"HOME=/h", "XDG_STATE_HOME=relative"}, "/h/.local/state/ocp"},
		{nil, ""},
	} {
		if got := DefaultStateDir(test.env); got != test.want {
			t.Errorf("%v: got %q, want %q", test.env, got, test.want)
		}
	}
}

// testLauncher holds a state directory and no CLI.
func testLauncher(t *testing.T, env ...string) *Launcher {
	l, err := New(Options{StateDir: filepath.Join(t.TempDir(), "s"), Env: env, HookCommand: []string{"ocp", "hook"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

var oneMessage = prompt.Conversation{System: "system text", Messages: []prompt.Message{{Role: prompt.User, Content: []prompt.Block{prompt.Text("hi")}}}}

func TestPlaceWithTheOperatorsLogin(t *testing.T) {
	home := t.TempDir()
	l := testLauncher(t, "HOME="+home)
	p, err := l.newPlace(newID())
	if err != nil {
		t.Fatal(err)
	}
	if p.private || p.config != filepath.Join(home, ".claude") {
		t.Errorf("config is %s, private %v; want the operator's", p.config, p.private)
	}
	if _, err := p.writeTranscript(entries(oneMessage)); err != nil {
		t.Fatal(err)
	}
	if err := p.remove(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(home, ".claude", "projects", "*", "*")); len(left) > 0 {
		t.Errorf("left in the operator's configuration: %v", left)
	}
}

func TestFeedGivesConversationWhenTheReaderComes(t *testing.T) {
	l := testLauncher(t, "ANTHROPIC_API_KEY=k")
	p, err := l.newPlace(newID())
	if err != nil {
		t.Fatal(err)
	}
	f := startFeed(p, nothingTold)
	f.give(oneMessage)
	if f.waiting() == nil {
		t.Error("the feed does not wait though nobody reads")
	}
	got, err := os.ReadFile(p.system) // what the CLI does
	if err != nil || string(got) != "system text" {
		t.Fatalf("read %q, %v", got, err)
	}
	<-f.done
	if f.err != nil {
		t.Fatal(f.err)
	}
	written, err := os.ReadFile(p.transcript)
	if err != nil || int64(len(written)) != f.size {
		t.Fatalf("transcript of %d bytes, %v; want %d", len(written), err, f.size)
	}
	r, err := transcript.Parse(written[:len(written)-1])
	if err != nil || r.Message.Text() != "hi" {
		t.Errorf("transcript says %+v, %v", r, err)
	}
	f.close()
	if err := p.remove(); err != nil {
		t.Fatal(err)
	}
}

func TestFeedIsCalledOff(t *testing.T) {
	l := testLauncher(t, "ANTHROPIC_API_KEY=k")
	p, err := l.newPlace(newID())
	if err != nil {
		t.Fatal(err)
	}
	f := startFeed(p, nothingTold)
	f.give(oneMessage)
	f.close()
	f.close()
	if !errors.Is(f.err, errFeedClosed) {
		t.Errorf("got %v, want errFeedClosed", f.err)
	}
	if _, err := os.Stat(p.transcript); !errors.Is(err, os.ErrNotExist) {
		t.Error("a transcript was written though nobody came")
	}
	if err := p.remove(); err != nil {
		t.Fatal(err)
	}
}

// A FIFO that is gone does not hold a session for ever.
func TestFeedWithoutItsFIFO(t *testing.T) {
	l := testLauncher(t, "ANTHROPIC_API_KEY=k")
	p, err := l.newPlace(newID())
	if err != nil {
		t.Fatal(err)
	}
	f := startFeed(p, nothingTold)
	f.give(oneMessage)
	if err := p.remove(); err != nil {
		t.Fatal(err)
	}
	<-f.done
	if !errors.Is(f.err, os.ErrNotExist) {
		t.Errorf("got %v, want os.ErrNotExist", f.err)
	}
	f.close()
}

func TestFind(t *testing.T) {
	home := t.TempDir()
	bin := filepath.Join(home, ".local", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + home, "PATH=/nonexistent"}
	if _, err := Find("", env); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	claude := filepath.Join(bin, "claude")
	if err := os.WriteFile(claude, []byte("#!/bin/sh\necho '1.2.3 (Claude Code)'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := Find("", env); err != nil || got != claude {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := Find(filepath.Join(bin, "other"), env); err == nil || !strings.Contains(err.Error(), InstallCommand) {
		t.Errorf("got %v, want an error with the install command", err)
	}
	if v, err := Version(t.Context(), claude); err != nil || v != "1.2.3" {
		t.Errorf("version %q, %v", v, err)
	}
}

func nothingTold(prompt.Conversation) []transcript.Entry { return nil }
