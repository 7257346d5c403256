package e2e

import "fmt"

// difference describes where two long texts part.
func difference(got, want string) string {
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	return fmt.Sprintf("%d bytes, want %d; first difference at %d: got %q, want %q",
		len(got), len(want), at, clip(got[at:]), clip(want[at:]))
}

func clip(s string) string { return s[:min(40, len(s))] }
