package claude

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// processFile names a session's process in its folder, for the sweep of a later ocp.
const processFile = "process"

// note writes down which process the session is: its id, which is also that of its
// process group, and its start time, since ids are used again.
func (p place) note(pid int) error {
	started, err := startTime(pid)
	if err != nil {
		return fmt.Errorf("note the session's process: %w", err)
	}
	return os.WriteFile(filepath.Join(p.dir, processFile), fmt.Appendf(nil, "%d %d\n", pid, started), 0o600)
}

// killLeftovers ends the sessions that an ocp which was killed left behind under this
// folder. As a rule there are none: a session ends by itself when its PTY closes.
func killLeftovers(sessions string) error {
	files, err := filepath.Glob(filepath.Join(sessions, "*", processFile))
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range files {
		noted, err := os.ReadFile(file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if pid, ok := stillRuns(string(noted)); ok {
			if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				errs = append(errs, fmt.Errorf("kill a session left behind: %w", err))
			}
		}
	}
	return errors.Join(errs...)
}

// stillRuns reports whether the process that was noted is there and still the same.
func stillRuns(noted string) (pid int, ok bool) {
	id, started, found := strings.Cut(strings.TrimSpace(noted), " ")
	if !found {
		return 0, false
	}
	pid, err := strconv.Atoi(id)
	if err != nil || pid <= 1 {
		return 0, false
	}
	want, err := strconv.ParseInt(started, 10, 64)
	if err != nil {
		return 0, false
	}
	now, err := startTime(pid)
	return pid, err == nil && now == want
}
