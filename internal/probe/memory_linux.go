package probe

import (
	"fmt"
	"os"
	"strings"
)

// availableMemory is what programs could still have, in bytes; negative if it cannot be
// told.
func availableMemory() int64 {
	text, _ := os.ReadFile("/proc/meminfo")
	return parseMemInfo(string(text))
}

// parseMemInfo is the MemAvailable of a /proc/meminfo, in bytes; negative if it has none.
func parseMemInfo(text string) int64 {
	for line := range strings.Lines(text) {
		var kilobytes int64
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kilobytes); err == nil {
			return kilobytes << 10
		}
	}
	return -1
}
