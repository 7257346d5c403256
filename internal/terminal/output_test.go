package terminal

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// A program may close its terminal and open it again; its output must still be read.
// The sleep only makes it likely that the closing is noticed before the opening.
func TestReopenedTerminal(t *testing.T) {
	w := newWire(t)
	script := fmt.Sprintf(`exec 3>%q; exec </dev/null >/dev/null 2>&1; echo closed >&3
		sleep 0.1; exec >/dev/tty; yes | head -c 300000; echo end`, w.path)
	term := start(t, script, Options{})
	w.expect(t, "closed")
	waitDone(t, term)
	if got := term.Screen(); !strings.HasSuffix(got, "end") {
		t.Errorf("screen = %q, want it to end with end", got)
	}
}

func heapAlloc() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestFloodTakesNoMemory(t *testing.T) {
	const most = 1 << 20
	line := strings.Repeat("0123456789", 9)
	for _, setup := range []string{"", `printf '\033[?1049h';`} {
		before := heapAlloc()
		script := setup + fmt.Sprintf("yes %s | head -c 20000000; printf '\\n\\033[Hlast'", line)
		term := start(t, script, Options{})
		waitDone(t, term)
		if got := term.Screen(); !strings.HasPrefix(got, "last") {
			t.Errorf("the screen is not the last one: %.20q", got)
		}
		if grown := heapAlloc() - before; grown > most {
			t.Errorf("after a flood the heap has grown by %d bytes, more than %d", grown, most)
		}
		runtime.KeepAlive(term)
	}
}

func TestResumeAfterGap(t *testing.T) {
	for _, tt := range []struct{ output, want string }{
		{"0mtail", ""},
		{"0m tail\r\nnext", "next"},
		{"5Hx\x1b[2;1Hy", "y"},
	} {
		s := newTestScreen(4, 20)
		s.draw([]byte("\x1b]0;an unfinished title"))
		s.draw(resume([]byte(tt.output)))
		if got := strings.TrimSpace(s.text()); got != tt.want {
			t.Errorf("resuming at %q draws %q, want %q", tt.output, got, tt.want)
		}
	}
}
