package main

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// loadAverage is the machine's load over one minute; negative if it cannot be told.
func loadAverage() float64 {
	raw, err := unix.SysctlRaw("vm.loadavg")
	if err != nil || len(raw) < 24 { // struct loadavg: three uint32, then a long, aligned
		return -1
	}
	return float64(binary.LittleEndian.Uint32(raw)) / float64(binary.LittleEndian.Uint64(raw[16:]))
}
