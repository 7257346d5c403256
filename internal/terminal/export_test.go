package terminal

import "runtime"

// HeapAlloc is heapAlloc for the tests outside the package.
var HeapAlloc = heapAlloc

func heapAlloc() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
