package terminal

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An unanswered query stops the emulator inside the program's output, so this hangs
// unless answers are taken and delivered.
func TestQueriesAreAnswered(t *testing.T) {
	const script = `stty -icanon -echo min 1
		printf '\033[c'; head -c 13 | tr '\033' E`
	term := start(t, script, Options{})
	waitDone(t, term)
	if got, want := term.Screen(), "E[?62;1;6;22c"; !strings.HasPrefix(got, want) {
		t.Errorf("the program read %q, want %q", got, want)
	}
}

func TestUnreadAnswersDoNotBlock(t *testing.T) {
	const script = `stty -icanon -echo
		awk 'BEGIN { for (i = 0; i < 50000; i++) printf "\033[c\033[6n" }'; echo done`
	term := start(t, script, Options{})
	waitDone(t, term)
	if got := term.Screen(); !strings.HasSuffix(got, "done") {
		t.Errorf("screen = %q, want it to end with done", got)
	}
}

func TestKeysAndLiveScreen(t *testing.T) {
	w := newWire(t)
	// The cursor report comes only after all output before it has been drawn.
	script := fmt.Sprintf(`exec 3>%q; stty -echo -icanon
		printf '\033[3;5H\033[1;31mhello\033[0m, \033[44mworld\033[0m\033[1;1H>\033[6n'
		head -c 6 >/dev/null; echo drawn >&3
		stty icanon; read key; printf '\033[2J\033[Hgot %%s' "$key"`, w.path)
	term := start(t, script, Options{})
	w.expect(t, "drawn")
	if diff := cmp.Diff(">\n\n    hello, world", term.Screen()); diff != "" {
		t.Errorf("live screen (-want +got):\n%s", diff)
	}
	if got, want := term.Exit(), (Exit{Code: -1}); got != want {
		t.Errorf("Exit of a running program = %v, want %v", got, want)
	}
	if _, err := term.Write([]byte("keys\n")); err != nil {
		t.Error(err)
	}
	waitDone(t, term)
	if diff := cmp.Diff("got keys", term.Screen()); diff != "" {
		t.Errorf("last screen (-want +got):\n%s", diff)
	}
	if _, err := term.Write([]byte("x")); !errors.Is(err, ErrExited) {
		t.Errorf("Write after exit: %v, want ErrExited", err)
	}
}

func TestLargeWriteArrivesWhole(t *testing.T) {
	const size = 300_000
	w := newWire(t)
	script := fmt.Sprintf(`stty raw -echo; echo ready >%q; head -c %d | cksum`, w.path, size)
	term := start(t, script, Options{})
	w.expect(t, "ready")
	keys := []byte(strings.Repeat("0123456789", size/10))
	if _, err := term.Write(keys); err != nil {
		t.Fatal(err)
	}
	waitDone(t, term)
	sum := exec.Command("cksum")
	sum.Stdin = strings.NewReader(string(keys))
	want, err := sum.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := term.Screen(); got != strings.TrimSpace(string(want)) {
		t.Errorf("the program's checksum is %q, want %q", got, want)
	}
}

func TestUnreadInputIsBounded(t *testing.T) {
	w := newWire(t)
	term := start(t, fmt.Sprintf("stty raw -echo; echo up >%q; exec sleep 300", w.path), Options{})
	w.expect(t, "up")
	block := make([]byte, 64<<10)
	for range 2 * maxBacklog / len(block) {
		if _, err := term.Write(block); err != nil {
			if !errors.Is(err, ErrBacklog) {
				t.Errorf("Write: %v, want ErrBacklog", err)
			}
			return // closing must not wait for the unread input either
		}
	}
	t.Error("Write never refused")
}
