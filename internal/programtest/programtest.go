// Package programtest finds the programs that tests use and that may be missing on a
// developer's machine. For tests only.
package programtest

import (
	"os"
	"os/exec"
	"testing"
)

// Find returns the path of a program. Without it the test is skipped, or fails if
// OCP_TEST_PROGRAMS is "required", as it is in make test.
func Find(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	switch {
	case err == nil:
		return path
	case os.Getenv("OCP_TEST_PROGRAMS") == "required":
		t.Fatalf("%s is not installed: make programs installs it", name)
	default:
		t.Skipf("%s is not installed: make programs installs it", name)
	}
	return ""
}
