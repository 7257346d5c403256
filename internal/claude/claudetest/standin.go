package claudetest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/term"
)

// standin is one running stand-in.
type standin struct {
	options flags
	script  Script
	cwd     string
	hooks   hooks
	system  string

	path       string // of the transcript, as hooks are told it
	transcript transcriptFile
	keys       chan struct{} // one for each read of the terminal that got bytes
	typed      chan byte     // what was typed, as far as it fits

	calls  sync.WaitGroup           // hook calls under way
	slots  map[string]chan struct{} // by message: one element for each call under way
	ids    map[string]string        // by message: the id that its deltas carry
	turn   string                   // the id that the turn's deltas carry
	typing                          // of the turn, if its prompt was typed
	waits  bool                     // it waits for input: there is no turn
	reason string                   // why the last prompt was blocked

	said      []wireMessage // the conversation that Ask has sent, with the answer
	plain     bool          // it was started with a prompt, and without a conversation
	unblocked bool          // see Unblocked
}

// run is the stand-in's whole life. It does not return.
func run(args []string) {
	s, err := start(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\r\n", err)
		exit(1)
	}
	go s.obey()
	go s.listen()
	for _, step := range s.script.Steps {
		if err := s.do(step); err != nil {
			fmt.Fprintf(os.Stderr, "%v\r\n", err)
			exit(1)
		}
	}
	if err := s.transcript.flush(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\r\n", err)
		exit(1)
	}
	select {} // idle; obey ends the process
}

func start(args []string) (*standin, error) {
	// A CLI on a terminal gets every key at once, and shows none by itself.
	if _, err := term.MakeRaw(os.Stdin.Fd()); err != nil {
		return nil, fmt.Errorf("standard input is no terminal: %w", err)
	}
	options, err := parseFlags(args)
	if err != nil {
		return nil, err
	}
	s := &standin{
		options: options, keys: make(chan struct{}, 1), typed: make(chan byte, maxTyped),
		slots: map[string]chan struct{}{}, ids: map[string]string{}, turn: newID(),
	}
	if s.script, err = parseScript(options["--model"]); err != nil {
		return nil, err
	}
	if s.cwd, err = os.Getwd(); err != nil {
		return nil, err
	}
	if s.hooks, err = loadHooks(options["--settings"]); err != nil {
		return nil, err
	}
	if s.options["--resume"] == "" {
		s.options["--resume"], s.plain = newID(), true
	}
	s.transcript = openTranscript(configDir(), s.cwd, options["--resume"])
	s.path = s.transcript.path
	if s.plain {
		s.transcript.entries = plainEntries(s.options[promptArgument])
		return s, os.MkdirAll(filepath.Dir(s.path), 0o700)
	}
	return s, nil
}

// do does one step. Its error ends the process.
func (s *standin) do(step Step) error {
	if s.plain && step.isOfBoot() || s.waits && step.isOfTurn() && Fault(step.Text) != RunAnyway {
		return nil
	}
	if !step.isRecord() || step.After > 0 {
		if err := s.transcript.flush(); err != nil {
			return err
		}
	}
	text := strings.NewReplacer("{prompt}", s.asked(), "{system}", s.system).Replace(step.Text)
	if step.isCall() {
		s.call(step, text)
		return nil
	}
	time.Sleep(step.After)
	if step.isRecord() {
		return s.transcript.add(step, text)
	}
	switch step.Do {
	case Ask:
		s.unblocked = Fault(step.Text) == Unblocked
		if Fault(step.Text) == NotCLI {
			s.transcript.entrypoint = "sdk"
		}
		return s.ask(Fault(step.Text))
	case ReadSystem:
		system, err := os.ReadFile(s.options["--system-prompt-file"])
		s.system = string(system)
		return err
	case Onboard:
		if screen := onboarding(s.cwd); screen != "" {
			s.dialog(screen)
		}
	case Resume:
		if err := s.transcript.resume(); err != nil {
			return err
		}
		if !s.transcript.interrupted() || os.Getenv("CLAUDE_CODE_RESUME_INTERRUPTED_TURN") != "1" {
			s.waits = true
		}
		show(mainScreen(s.transcript.prompt()))
	case Stray:
		s.transcript.stray()
	case Settle:
		s.calls.Wait()
	case Wait:
	case Print:
		show(text)
	case Dialog:
		s.dialog(text)
	case Flood:
		flood(step.N)
	case Prompt:
		if s.plain {
			select {} // the answer stays on the screen
		}
		return s.prompt(step)
	case Deaf:
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	case Fork:
		return fork()
	case Tell:
		return os.WriteFile(text, []byte("here\n"), 0)
	case Exit:
		exit(step.N)
	case Kill:
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	default:
		return fmt.Errorf("script: unknown action %q", step.Do)
	}
	return nil
}

// call makes a step's hook call.
func (s *standin) call(step Step, text string) {
	event, fields := s.payload(step, text)
	slot := s.slots[step.Message]
	if slot == nil {
		slot = make(chan struct{}, maxInFlight)
		s.slots[step.Message] = slot
	}
	slot <- struct{}{}
	done := make(chan struct{})
	s.calls.Go(func() {
		defer close(done)
		defer func() { <-slot }()
		time.Sleep(step.After)
		s.hooks.run(event, fields)
	})
	if !step.Async {
		<-done
	}
}

// obey ends the process at a signal, as the CLI does.
func (s *standin) obey() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	got := <-signals
	s.hooks.run("SessionEnd", s.common("SessionEnd", s.options["--resume"], map[string]any{"reason": "other"}))
	switch got {
	case syscall.SIGINT:
		exit(0)
	default:
		exit(128 + int(got.(syscall.Signal)))
	}
}

// listen takes in what is written to the terminal.
func (s *standin) listen() {
	buf := make([]byte, 4<<10)
	for {
		n, err := os.Stdin.Read(buf)
		if n > 0 {
			if s.script.Input != "" {
				note(s.script.Input, buf[:n])
			}
			select {
			case s.keys <- struct{}{}:
			default:
			}
			for _, key := range buf[:n] {
				select {
				case s.typed <- key:
				default:
				}
			}
		}
		if err != nil {
			return
		}
	}
}

func note(path string, data []byte) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	_, _ = file.Write(data)
}

// dialog shows a dialog. Whatever key comes is taken for the wrong answer.
func (s *standin) dialog(screen string) {
	show(screen)
	<-s.keys
	exit(1)
}

// flood writes about as many bytes as n in lines that the terminal must scroll for,
// with colours and cursor movements between them.
func flood(n int) {
	line := []byte("\x1b[31mthe quick brown fox\x1b[0m jumps \x1b[2;3Hover\x1b[K the lazy dog\r\n")
	for written := 0; written < n; {
		block := bytes.Repeat(line, 64)
		_, _ = os.Stdout.Write(block)
		written += len(block)
	}
}

// fork starts a child in the same process group that only SIGKILL ends, and waits until
// it is deaf.
func fork() error {
	child := exec.Command("/bin/sh", "-c", `trap "" TERM HUP INT; echo deaf; exec sleep 100000`)
	child.Stdin, child.Stderr = os.Stdin, os.Stderr
	said, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	_, err = io.ReadFull(said, make([]byte, len("deaf\n")))
	return err
}

// show clears the screen and prints a text on it.
func show(text string) {
	fmt.Print("\x1b[2J\x1b[H" + strings.ReplaceAll(text, "\n", "\r\n"))
}
