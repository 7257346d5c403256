package terminal

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// hostEnv makes the test binary start the shell script in it under a terminal, and
// do nothing more.
const hostEnv = "OCP_TERMINAL_TEST_HOST"

func TestMain(m *testing.M) {
	if script := os.Getenv(hostEnv); script != "" {
		if _, err := Start(Options{Path: "/bin/sh", Args: []string{"-c", script}}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {}
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must happen before it reports that it
// did not. No result depends on it.
const patience = time.Minute

// start runs a shell script; the terminal is closed when the test ends.
func start(t *testing.T, script string, o Options) *Terminal {
	t.Helper()
	o.Path, o.Args = "/bin/sh", []string{"-c", script}
	if o.Env == nil {
		o.Env = []string{"PATH=" + os.Getenv("PATH")}
	}
	term, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { term.Close() })
	return term
}

func waitDone(t *testing.T, term *Terminal) {
	t.Helper()
	select {
	case <-term.Done():
	case <-time.After(patience):
		t.Fatalf("the program has not ended; its screen:\n%s", term.Screen())
	}
}

// wire is a FIFO through which a script tells the test what it does. It ends when
// the last process that has it open is dead, which is how tests learn of deaths.
type wire struct {
	path  string
	lines chan string
}

func newWire(t *testing.T) *wire {
	t.Helper()
	w := &wire{path: filepath.Join(t.TempDir(), "wire"), lines: make(chan string)}
	if err := syscall.Mkfifo(w.path, 0o600); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(w.lines)
		f, err := os.Open(w.path) // returns when a writer comes
		if err != nil {
			return
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			w.lines <- s.Text()
		}
	})
	t.Cleanup(func() {
		// Releases the reader if no script ever opened the wire.
		if f, err := os.OpenFile(w.path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			f.Close()
		}
		for range w.lines {
		}
		reading.Wait()
	})
	return w
}

// line returns the next line, and false at the end.
func (w *wire) line(t *testing.T) (string, bool) {
	t.Helper()
	select {
	case line, ok := <-w.lines:
		return line, ok
	case <-time.After(patience):
		t.Fatal("nothing came over the wire")
		return "", false
	}
}

func (w *wire) expect(t *testing.T, want string) {
	t.Helper()
	if line, ok := w.line(t); !ok || line != want {
		t.Fatalf("wire: got %q, %v; want %q", line, ok, want)
	}
}

func (w *wire) expectEnd(t *testing.T) {
	t.Helper()
	if line, ok := w.line(t); ok {
		t.Fatalf("wire: got %q, want the end", line)
	}
}

// stubborn is a script part that leaves a process in the background that ignores
// SIGHUP and SIGTERM and has the wire open; it says "up" when that is so.
func stubborn(w *wire) string {
	return fmt.Sprintf("(trap '' HUP TERM; exec >%q; echo up; exec sleep 300) & ", w.path)
}

func TestExit(t *testing.T) {
	tests := []struct {
		script string
		want   Exit
		text   string
	}{
		{"exit 0", Exit{}, "exit code 0"},
		{"exit 7", Exit{Code: 7}, "exit code 7"},
		{"kill -TERM $$", Exit{Code: -1, Signal: syscall.SIGTERM}, "signal: terminated"},
		{"kill -KILL $$", Exit{Code: -1, Signal: syscall.SIGKILL}, "signal: killed"},
	}
	for _, tt := range tests {
		t.Run(tt.script, func(t *testing.T) {
			term := start(t, tt.script, Options{})
			waitDone(t, term)
			if got := term.Exit(); got != tt.want || got.String() != tt.text {
				t.Errorf("Exit = %+v (%v), want %+v (%s)", got, got, tt.want, tt.text)
			}
			if err := term.Close(); err != nil {
				t.Errorf("Close after exit: %v", err)
			}
		})
	}
}

func TestStartErrors(t *testing.T) {
	tests := []struct {
		name string
		o    Options
		want error
	}{
		{"relative path", Options{Path: "sh"}, nil},
		{"size out of range", Options{Path: "/bin/sh", Rows: maxSide + 1}, nil},
		{"negative size", Options{Path: "/bin/sh", Cols: -1}, nil},
		{"no such program", Options{Path: "/nonexistent/program"}, os.ErrNotExist},
		{"no such directory", Options{Path: "/bin/sh", Dir: "/nonexistent"}, os.ErrNotExist},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			term, err := Start(tt.o)
			if err == nil {
				term.Close()
				t.Fatal("Start succeeded")
			}
			if tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("Start: %v, want %v", err, tt.want)
			}
		})
	}
}

func TestEnvAndDir(t *testing.T) {
	t.Setenv("OCP_TERMINAL_TEST_LEAK", "leaked")
	env, err := exec.LookPath("env")
	if err != nil {
		t.Skip(err)
	}
	for _, want := range [][]string{{"A=1", "B=two words"}, {}, nil} {
		term, err := Start(Options{Path: env, Env: want, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		waitDone(t, term)
		if diff := cmp.Diff(strings.Join(want, "\n"), term.Screen()); diff != "" {
			t.Errorf("environment (-want +got):\n%s", diff)
		}
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	term := start(t, "pwd -P", Options{Dir: dir, Cols: maxSide})
	waitDone(t, term)
	if got := term.Screen(); got != dir {
		t.Errorf("working directory = %q, want %q", got, dir)
	}
}

func TestLeadsItsOwnSession(t *testing.T) {
	term := start(t, "ps -o pid=,pgid=,sid=,tpgid= -p $$", Options{})
	waitDone(t, term)
	pid := strconv.Itoa(term.Pid())
	got := strings.Fields(term.Screen())
	if diff := cmp.Diff([]string{pid, pid, pid, pid}, got); diff != "" {
		t.Errorf("pid, group, session and foreground group (-want +got):\n%s", diff)
	}
}

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

func TestWindowSize(t *testing.T) {
	w := newWire(t)
	script := fmt.Sprintf(`exec 3>%q; trap 'echo winch >&3' WINCH
		stty size; echo up >&3
		while :; do sleep 0.01; done`, w.path)
	term := start(t, script, Options{Rows: 17, Cols: 71})
	w.expect(t, "up")
	if err := term.Resize(maxSide+1, 10); err == nil {
		t.Error("Resize accepted a size out of range")
	}
	if err := term.Resize(31, 93); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "winch")
	term.Kill()
	waitDone(t, term)
	if got := term.Screen(); got != "17 71" {
		t.Errorf("size at start = %q, want 17 71", got)
	}
	if err := term.Resize(20, 20); !errors.Is(err, ErrExited) {
		t.Errorf("Resize after exit: %v, want ErrExited", err)
	}

	term = start(t, "read x; stty size", Options{})
	if err := term.Resize(31, 93); err != nil {
		t.Fatal(err)
	}
	if _, err := term.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	waitDone(t, term)
	if got := strings.TrimSpace(term.Screen()); got != "31 93" {
		t.Errorf("size after Resize = %q, want 31 93", got)
	}
}

func TestGroupIsKilled(t *testing.T) {
	for _, tt := range []struct {
		name string
		rest string // what the leader does when the other process is up
		end  func(*Terminal)
		want Exit
	}{
		{"by Kill", "exec sleep 300", func(t *Terminal) { t.Kill() }, Exit{-1, syscall.SIGKILL}},
		{"by Close", "exec sleep 300", func(t *Terminal) { t.Close() }, Exit{-1, syscall.SIGTERM}},
		{"after the leader's exit", "read x; exit 3", func(t *Terminal) { t.Write([]byte("\n")) }, Exit{Code: 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWire(t)
			// A Grace beyond the test's patience: the group must die with its leader.
			term := start(t, stubborn(w)+tt.rest, Options{Grace: 2 * patience})
			w.expect(t, "up")
			tt.end(term)
			w.expectEnd(t)
			waitDone(t, term)
			if got := term.Exit(); got != tt.want {
				t.Errorf("Exit = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestCloseTerminatesTheGroup(t *testing.T) {
	w := newWire(t)
	script := fmt.Sprintf(`exec 3>%q
		(trap 'echo term >&3; exit' TERM; echo up >&3; while :; do sleep 0.01; done) &
		trap '' TERM; echo up >&3; wait; exit 4`, w.path)
	term := start(t, script, Options{Grace: patience})
	w.expect(t, "up")
	w.expect(t, "up")
	var closing sync.WaitGroup
	closing.Go(func() { term.Close() })
	w.expect(t, "term")
	closing.Wait()
	if got, want := term.Exit(), (Exit{Code: 4}); got != want {
		t.Errorf("Exit = %v, want %v", got, want)
	}
}

func TestCloseKillsWhatIgnoresTerm(t *testing.T) {
	for _, grace := range []time.Duration{time.Millisecond, -1} {
		w := newWire(t)
		script := fmt.Sprintf("trap '' HUP TERM; exec 3>%q; echo up >&3; while :; do sleep 300; done", w.path)
		term := start(t, script, Options{Grace: grace})
		w.expect(t, "up")
		if err := term.Close(); err != nil {
			t.Error(err)
		}
		w.expectEnd(t)
		if got, want := term.Exit(), (Exit{-1, syscall.SIGKILL}); got != want {
			t.Errorf("Exit = %v, want %v", got, want)
		}
	}
}

func TestCloseGivesTimeToEnd(t *testing.T) {
	w := newWire(t)
	script := fmt.Sprintf(`trap 'echo bye; exit 5' TERM; echo up >%q
		while :; do sleep 0.01; done`, w.path)
	term := start(t, script, Options{Grace: patience})
	w.expect(t, "up")
	term.Close()
	if got, want := term.Exit(), (Exit{Code: 5}); got != want {
		t.Errorf("Exit = %v, want %v", got, want)
	}
	// The shell may also report the end of the sleep that SIGTERM interrupted.
	if got := term.Screen(); !strings.HasSuffix(got, "bye") {
		t.Errorf("screen = %q, want it to end with bye", got)
	}
}

// A process that left the group outlives the terminal, and must not delay its end
// by holding it open.
func TestEscapedProcessDoesNotBlock(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	for _, flood := range []string{"exec sleep 300", "exec yes"} {
		w := newWire(t)
		script := fmt.Sprintf(`setsid sh -c 'trap "" HUP; exec 3>%s; echo $$ >&3; %s' & read x; echo end`, w.path, flood)
		term := start(t, script, Options{})
		line, _ := w.line(t)
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatalf("pid of the escaped process: %v", err)
		}
		if _, err := term.Write([]byte("\n")); err != nil {
			t.Error(err)
		}
		waitDone(t, term)
		if err := term.Close(); err != nil {
			t.Error(err)
		}
		_ = syscall.Kill(pid, syscall.SIGKILL) // yes has died of the closed terminal
		w.expectEnd(t)
	}
}

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

func TestCloseConcurrently(t *testing.T) {
	term := start(t, "exec sleep 300", Options{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := term.Close(); err != nil {
				t.Error(err)
			}
			select {
			case <-term.Done():
			default:
				t.Error("Close returned before the end")
			}
		})
		all.Go(func() {
			term.Screen()
			term.Resize(20, 20)
			term.Write([]byte("x"))
			term.Kill()
			term.Exit()
		})
	}
	all.Wait()
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

func TestCloseDuringFlood(t *testing.T) {
	w := newWire(t)
	// The wire opens when head has passed on 1 MB, and yes goes on.
	script := fmt.Sprintf("yes | { head -c 1000000; echo flooding >%q; exec cat; }", w.path)
	term := start(t, script, Options{})
	w.expect(t, "flooding")
	if err := term.Close(); err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(term.Screen(), "y\ny\n") {
		t.Errorf("screen = %q, want lines of y", term.Screen())
	}
}

// If this process dies, however it dies, nothing it ran may survive.
func TestProgramDiesWithItsHost(t *testing.T) {
	w := newWire(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host := exec.Command(exe)
	script := fmt.Sprintf("exec 3>%q; echo up >&3; /bin/sleep 300", w.path)
	host.Env = append(os.Environ(), hostEnv+"="+script)
	host.Stderr = os.Stderr
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "up")
	if err := host.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = host.Wait()
	w.expectEnd(t)
}

func TestManyAtOnce(t *testing.T) {
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			term, err := Start(Options{Path: "/bin/sh", Args: []string{"-c", "read x; echo got $x; exec cat"}})
			if err != nil {
				t.Error(err)
				return
			}
			term.Write(fmt.Appendf(nil, "%d\n\x04", i))
			waitOrKill(t, term)
			if got, want := term.Screen(), fmt.Sprintf("%d\ngot %d", i, i); got != want {
				t.Errorf("screen = %q, want %q", got, want)
			}
		})
	}
	all.Wait()
}

// waitOrKill is waitDone for goroutines, which must not end the test.
func waitOrKill(t *testing.T, term *Terminal) {
	select {
	case <-term.Done():
	case <-time.After(patience):
		t.Error("the program has not ended")
		term.Kill()
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
