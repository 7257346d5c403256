package claude

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// startTime is when a process started, in clock ticks since boot: field 22 of
// /proc/PID/stat. The second field, the program's name, may hold anything.
func startTime(pid int) (int64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat has no start time", pid)
	}
	return strconv.ParseInt(fields[19], 10, 64)
}
