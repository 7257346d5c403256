package claude

import "golang.org/x/sys/unix"

// startTime is when a process started, in microseconds since 1970.
func startTime(pid int) (int64, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, err
	}
	started := info.Proc.P_starttime
	return started.Sec*1_000_000 + int64(started.Usec), nil
}
