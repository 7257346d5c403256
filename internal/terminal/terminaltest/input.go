package terminaltest

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ocp/internal/terminal"
)

// An unanswered query stops the emulator inside the program's output, so this hangs
// unless answers are taken and delivered.
func testQueriesAreAnswered(t *testing.T, s Subject) {
	const script = `stty -icanon -echo min 1
		printf '\033[2;5H\033[6n'; head -c 6 | tr '\033' E`
	term := s.script(t, script, terminal.Options{})
	WaitDone(t, term)
	if got, want := strings.TrimSpace(term.Screen()), "E[2;5R"; !strings.HasPrefix(got, want) {
		t.Errorf("the program read %q, want %q", got, want)
	}
}

func testUnreadAnswersDoNotBlock(t *testing.T, s Subject) {
	const script = `stty -icanon -echo
		awk 'BEGIN { for (i = 0; i < 50000; i++) printf "\033[c\033[6n" }'; echo done`
	term := s.script(t, script, terminal.Options{})
	WaitDone(t, term)
	if got := term.Screen(); !strings.HasSuffix(got, "done") {
		t.Errorf("screen = %q, want it to end with done", got)
	}
}

func testKeysAndLiveScreen(t *testing.T, s Subject) {
	w := NewWire(t)
	// The cursor report comes only after all output before it has been drawn.
	script := fmt.Sprintf(`exec 3>%q; stty -echo -icanon
		printf '\033[3;5H\033[1;31mhello\033[0m, \033[44mworld ❯──\033[0m\033[1;1H>\033[6n'
		head -c 6 >/dev/null; echo drawn >&3
		stty icanon; read key; printf '\033[2J\033[Hgot %%s' "$key"`, w.Path)
	term := s.script(t, script, terminal.Options{})
	w.Expect(t, "drawn")
	if diff := cmp.Diff(">\n\n    hello, world ❯──", term.Screen()); diff != "" {
		t.Errorf("live screen (-want +got):\n%s", diff)
	}
	if got, want := term.Exit(), (terminal.Exit{Code: -1}); got != want {
		t.Errorf("Exit of a running program = %v, want %v", got, want)
	}
	if _, err := term.Write([]byte("keys\n")); err != nil {
		t.Error(err)
	}
	WaitDone(t, term)
	if diff := cmp.Diff("got keys", term.Screen()); diff != "" {
		t.Errorf("last screen (-want +got):\n%s", diff)
	}
	if _, err := term.Write([]byte("x")); !errors.Is(err, terminal.ErrExited) {
		t.Errorf("Write after exit: %v, want ErrExited", err)
	}
}

func testEveryByteArrives(t *testing.T, s Subject) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	testArrives(t, s, every)
}

func testLargeWriteArrivesWhole(t *testing.T, s Subject) {
	testArrives(t, s, []byte(strings.Repeat("0123456789", 30_000)))
}

func testArrives(t *testing.T, s Subject, keys []byte) {
	w := NewWire(t)
	script := fmt.Sprintf(`stty raw -echo; echo ready >%q; head -c %d | cksum`, w.Path, len(keys))
	term := s.script(t, script, terminal.Options{})
	w.Expect(t, "ready")
	if _, err := term.Write(keys); err != nil {
		t.Fatal(err)
	}
	WaitDone(t, term)
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
