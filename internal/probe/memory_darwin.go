package probe

import "golang.org/x/sys/unix"

// availableMemory is what programs could still have, in bytes; negative if it cannot be
// told. Pages of files count: they are given up when they are asked for.
func availableMemory() int64 {
	var pages uint32
	for _, name := range []string{"vm.page_free_count", "vm.page_purgeable_count", "vm.page_pageable_external_count"} {
		n, err := unix.SysctlUint32(name)
		if err != nil {
			return -1
		}
		pages += n
	}
	return int64(pages) * int64(unix.Getpagesize())
}
