package probe

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"ocp/internal/claude"
	"ocp/internal/claude/claudetest"
)

// The test binary is also the CLI, its hook command and its editor.
func TestMain(m *testing.M) {
	claudetest.Main()
	if len(os.Args) == 3 && os.Args[1] == "editor" {
		if err := claude.Edit(context.Background(), os.Getenv(claude.PromptVar), os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}
