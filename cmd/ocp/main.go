// Command ocp is a local proxy that lets any program that speaks the OpenAI or the
// Anthropic HTTP API talk to Claude through an interactive Claude Code session.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// commands is the command line. Each command's file says what it does.
type commands struct {
	Serve      serveCommand      `cmd:"" help:"Serve the API until interrupted."`
	Setup      setupCommand      `cmd:"" help:"Set ocp up on this machine: settings file and service. To be run again at will."`
	Connect    connectCommand    `cmd:"" help:"Show, or write, the settings by which another program reaches ocp."`
	Demo       demoCommand       `cmd:"" help:"Show one streamed answer of the real CLI and a scripted model. Needs no account."`
	Doctor     doctorCommand     `cmd:"" help:"Say what is wrong with a setup of serve, and what to do about it. It takes the flags of serve."`
	Bench      benchCommand      `cmd:"" help:"Measure where the time of a turn goes. Needs no account."`
	Probe      probeCommand      `cmd:"" help:"Prove on the installed CLI what ocp relies on. Needs no account."`
	Keys       keysCommand       `cmd:"" help:"Add, list and revoke keys of clients. A running serve takes them up."`
	Usage      usageCommand      `cmd:"" help:"Show turns and tokens by key, model, day or dialect."`
	Watch      watchCommand      `cmd:"" help:"List the sessions of a running ocp serve, or watch one."`
	Man        manCommand        `cmd:"" help:"Print the man page."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
	Completion completionCommand `cmd:"" help:"Print what a shell needs to complete command lines of ocp."`
	Complete   completeCommand   `cmd:"" hidden:"" help:"Say how a command line can go on."`
	Hook       hookCommand       `cmd:"" hidden:"" help:"Forward a hook call of a session to ocp."`
	Editor     editorCommand     `cmd:"" hidden:"" help:"Take the next prompt of a session from ocp."`
	Pane       paneCommand       `cmd:"" hidden:"" help:"Run a session in a pane of tmux."`
	MCP        mcpCommand        `cmd:"" hidden:"" name:"mcp" help:"Offer the tools of a session's client."`
}

// program is what a command may use of its surroundings.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            []string
}

func main() {
	leaveNoCore()
	os.Exit(run(program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.Environ()}, os.Args[1:]))
}

// run runs one command and returns the exit code: 0, 1 for a command that failed, 2
// for a command line that cannot be.
func run(p program, args []string) int {
	ctx, stop := signalContext()
	defer stop()
	code, exited := 0, false
	parser, err := newParser(&commands{}, p, kong.Exit(func(c int) { code, exited = c, true }), kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		fmt.Fprintln(p.stderr, "ocp:", err)
		return 1
	}
	command, err := parser.Parse(args)
	if exited { // --help
		return code
	}
	if err != nil {
		fmt.Fprintln(p.stderr, "ocp:", err)
		fmt.Fprintln(p.stderr, "Run 'ocp --help' for the commands and 'ocp COMMAND --help' for its flags.")
		return 2
	}
	if err := command.Run(); err != nil {
		fmt.Fprintln(p.stderr, "ocp:", err)
		return 1
	}
	return 0
}

func newParser(c *commands, p program, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(c, append([]kong.Option{
		kong.Name("ocp"),
		kong.Description("Claude over the OpenAI and Anthropic HTTP APIs, through an interactive Claude Code session."),
		kong.DefaultEnvars("OCP"),
		kong.Writers(p.stdout, p.stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Bind(p),
	}, options...)...)
}

// signalContext is cancelled by SIGINT and SIGTERM; one that comes more than a second after
// it ends the process at once. SIGHUP ends nothing: losing the terminal does not stop a
// service, and serve reads its keys anew. It is taken by all commands, since a program
// inherits it if it is ignored: sessions must end when their PTYs close, also before the CLI
// has a handler of its own.
func signalContext() (context.Context, func()) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// One signal may come twice: timeout(1) signals its child and then the group.
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
	return ctx, stop
}

// leaveNoCore has this process, and all that it starts, leave no core file: keys, tokens
// and conversations would lie in it. A failure is nothing to stop for.
func leaveNoCore() {
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}
