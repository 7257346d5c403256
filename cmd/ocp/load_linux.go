package main

import (
	"fmt"
	"os"
)

// loadAverage is the machine's load over one minute; negative if it cannot be told.
func loadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	var one float64
	if _, err := fmt.Sscan(string(text), &one); err != nil {
		return -1
	}
	return one
}
