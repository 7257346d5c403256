package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// process is one running process as /proc shows it.
type process struct {
	pid     string
	cmdline string // arguments joined by spaces
}

// processes are the CLI processes of this proxy that run now: those whose environment
// or arguments name its state directory.
func (p *proxy) processes() []process {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		p.t.Fatal(err)
	}
	var found []process
	for _, dir := range dirs {
		cmdline, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || len(cmdline) == 0 { // gone, or a zombie
			continue
		}
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		args := strings.ReplaceAll(string(cmdline), "\x00", " ")
		ours := strings.Contains(args, p.state) || strings.Contains(string(environ), p.state)
		if ours && filepath.Base(dir) != fmt.Sprint(p.cmd.Process.Pid) {
			found = append(found, process{filepath.Base(dir), args})
		}
	}
	return found
}

// eventually waits until a condition of the outside world holds that nothing announces
// (a process gone, a file removed). It is for such conditions alone.
func eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(within)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("after %v it still does not hold that %s", within, what)
		}
	}
}
