package terminal

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Exit is how a program ended.
type Exit struct {
	// Code is the exit code, or -1 if a signal ended the program, if it has not
	// ended, or if its status could not be had.
	Code int

	// Signal is the signal that ended the program, or 0.
	Signal syscall.Signal
}

// String returns, for example, "exit code 1" or "signal: killed".
func (e Exit) String() string {
	if e.Signal != 0 {
		return "signal: " + e.Signal.String()
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// Process is a child process that leads its own process group, so that its pid names the
// group too. The group ends with it.
type Process struct {
	cmd *exec.Cmd // owned by the goroutine that calls Wait
	pid int

	mu   sync.Mutex
	dead chan struct{} // closed under mu when pid may soon name a stranger
}

// StartProcess starts cmd, whose SysProcAttr must make it the leader of a process group.
// Wait must be called exactly once.
func StartProcess(cmd *exec.Cmd) (*Process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Process{cmd: cmd, pid: cmd.Process.Pid, dead: make(chan struct{})}, nil
}

// startOnPTY runs the program with a new pseudo-terminal of the given size as its
// controlling terminal, and returns the terminal's master side.
func startOnPTY(o Options) (*Process, *os.File, error) {
	master, slave, err := openPTY(o.Rows, o.Cols)
	if err != nil {
		return nil, nil, err
	}
	defer slave.Close()
	cmd := o.Command()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	// Ctty is a descriptor of the child: its standard input.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	proc, err := StartProcess(cmd)
	if err != nil {
		master.Close()
		return nil, nil, err
	}
	return proc, master, nil
}

// openPTY returns a new pseudo-terminal whose master honours deadlines and can be
// closed while it is being read.
func openPTY(rows, cols int) (master, slave *os.File, err error) {
	master, slave, err = pty.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("open a pseudo-terminal: %w", err)
	}
	if err = setSize(master, rows, cols); err == nil {
		master, err = pollable(master)
	}
	if err != nil {
		master.Close()
		slave.Close()
		return nil, nil, err
	}
	return master, slave, nil
}

// pollable returns f in non-blocking mode and known to the runtime's poller, in
// place of f, which it closes: pty.Open (1.1.24) leaves the master in blocking mode,
// where a read can be neither timed out nor interrupted by Close. On darwin f is
// returned as it is, since kqueue does not serve pseudo-terminals reliably.
func pollable(f *os.File) (*os.File, error) {
	if runtime.GOOS == "darwin" {
		return f, nil
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return f, fmt.Errorf("duplicate the pseudo-terminal: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return f, fmt.Errorf("set the pseudo-terminal non-blocking: %w", err)
	}
	f.Close()
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// setSize sets the size that the programs on the pseudo-terminal see.
func setSize(master *os.File, rows, cols int) error {
	conn, err := master.SyscallConn()
	if err != nil {
		return fmt.Errorf("set window size: %w", err)
	}
	size := &unix.Winsize{Row: uint16(rows), Col: uint16(cols)}
	var ioctlErr error
	err = conn.Control(func(fd uintptr) {
		ioctlErr = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size)
	})
	if err = errors.Join(err, ioctlErr); err != nil {
		return fmt.Errorf("set window size: %w", err)
	}
	return nil
}

// Pid is the id of the process and of its group. It is meaningless once Wait returns.
func (p *Process) Pid() int { return p.pid }

// Wait waits for the process's death, kills what is left of its group, and reaps it.
//
// The order guards against reused ids. An id is free for reuse only when the dead
// leader has been reaped and its group is empty, so the last signal to the group is
// sent while the leader is dead but not reaped.
func (p *Process) Wait() Exit {
	awaitDeath(p.pid)
	p.mu.Lock()
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	close(p.dead)
	p.mu.Unlock()

	_ = p.cmd.Wait() // its error only repeats what ProcessState says
	if p.cmd.ProcessState == nil {
		return Exit{Code: -1}
	}
	exit := Exit{Code: p.cmd.ProcessState.ExitCode()}
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		exit.Signal = ws.Signal()
	}
	return exit
}

// Terminate sends SIGTERM to the group. It returns false if the process has ended.
func (p *Process) Terminate() bool { return p.signal(syscall.SIGTERM) }

// Kill sends SIGKILL to the group, unless the process has ended.
func (p *Process) Kill() { p.signal(syscall.SIGKILL) }

func (p *Process) signal(sig syscall.Signal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isDead() {
		return false
	}
	// It can fail only if every member has changed its user; then nothing helps.
	_ = syscall.Kill(-p.pid, sig)
	return true
}

// isDead reports whether the process is known to be dead.
func (p *Process) isDead() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

// awaitDeath waits until the child pid is dead, and leaves it unreaped. It returns
// early only if pid is no child of this process.
func awaitDeath(pid int) {
	const (
		byPid        = 1  // P_PID, on linux and darwin
		codeIndex    = 2  // of si_code in a siginfo_t seen as 32-bit words
		codeExited   = 1  // CLD_EXITED
		codeDumped   = 3  // CLD_DUMPED; CLD_KILLED is 2
		siginfoWords = 32 // 128 bytes on linux, fewer on darwin
	)
	for {
		var info [siginfoWords]int32
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPid, uintptr(pid),
			uintptr(unsafe.Pointer(&info)), syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if errno == syscall.EINTR {
			continue
		}
		if errno != 0 {
			return
		}
		if code := info[codeIndex]; code >= codeExited && code <= codeDumped {
			return
		}
		// darwin also reports children that are only stopped (golang.org/issue/19314).
		time.Sleep(50 * time.Millisecond)
	}
}
