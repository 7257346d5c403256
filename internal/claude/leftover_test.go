package claude

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// sleeper starts a process in a group of its own that ignores SIGHUP, as a session
// might that outlives its ocp.
func sleeper(t *testing.T) *exec.Cmd {
	cmd := exec.Command("/bin/sh", "-c", "trap '' HUP TERM; echo ready; while :; do sleep 1; done")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestLeftoverSessionIsKilledAndNoOther(t *testing.T) {
	root := filepath.Join(t.TempDir(), "s")
	left, other := sleeper(t), sleeper(t)
	leave := func(id, noted string) {
		dir := filepath.Join(root, "sessions", id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if noted == "" {
			return
		}
		if err := os.WriteFile(filepath.Join(dir, processFile), []byte(noted), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	leave("a", "")
	p := place{dir: filepath.Join(root, "sessions", "a")}
	if err := p.note(left.Process.Pid); err != nil {
		t.Fatal(err)
	}
	started, err := startTime(other.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	leave("b", fmt.Sprintf("%d %d\n", other.Process.Pid, started+1)) // the id was used again
	leave("c", "nonsense")
	leave("d", "1 0")
	leave("e", "")

	if err := os.WriteFile(filepath.Join(root, lockName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := openState(root)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if err := left.Wait(); err == nil || left.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the session left behind ended with %v, want SIGKILL", err)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("a process that is no session was killed: %v", err)
	}
	_ = syscall.Kill(-other.Process.Pid, syscall.SIGKILL)
	_ = other.Wait()
}
