package terminal_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"ocp/internal/terminal"
	"ocp/internal/terminal/terminaltest"
)

// A program may close its terminal and open it again; its output must still be read.
// The sleep only makes it likely that the closing is noticed before the opening.
func TestReopenedTerminal(t *testing.T) {
	w := terminaltest.NewWire(t)
	script := fmt.Sprintf(`exec 3>%q; exec </dev/null >/dev/null 2>&1; echo closed >&3
		sleep 0.1; exec >/dev/tty; yes | head -c 300000; echo end`, w.Path)
	term := start(t, script, terminal.Options{})
	w.Expect(t, "closed")
	terminaltest.WaitDone(t, term)
	if got := term.Screen(); !strings.HasSuffix(got, "end") {
		t.Errorf("screen = %q, want it to end with end", got)
	}
}

func TestFloodTakesNoMemory(t *testing.T) {
	const most = 1 << 20
	line := strings.Repeat("0123456789", 9)
	for _, setup := range []string{"", `printf '\033[?1049h';`} {
		before := terminal.HeapAlloc()
		script := setup + fmt.Sprintf("yes %s | head -c 20000000; printf '\\n\\033[Hlast'", line)
		term := start(t, script, terminal.Options{})
		terminaltest.WaitDone(t, term)
		if got := term.Screen(); !strings.HasPrefix(got, "last") {
			t.Errorf("the screen is not the last one: %.20q", got)
		}
		if grown := terminal.HeapAlloc() - before; grown > most {
			t.Errorf("after a flood the heap has grown by %d bytes, more than %d", grown, most)
		}
		runtime.KeepAlive(term)
	}
}
