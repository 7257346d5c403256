// Package claudetest is the stand-in CLI: a program that takes the flags of the Claude
// Code CLI, boots in its order, runs the hooks of the settings it is given and appends
// transcript records, all by a script, so that it can misbehave where the real one
// cannot be made to. For tests only; what it imitates is measured on 2.1.207 and
// 2.1.332.
//
// It has no binary of its own: a test binary is the stand-in when it is run with the
// CLI's arguments. Its TestMain calls Main first, and the test gives the launcher Path
// and HookCommand. Each session's script comes in its model name (Script.Model).
package claudetest

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"ocp/internal/hook"
)

// Version is what the stand-in calls itself.
const Version = "2.1.332"

// hookArgument makes the test binary the program that forwards hook calls, as `ocp
// hook` does.
const hookArgument = "hook"

// Main does nothing in a test binary that runs tests. In one that a launcher has run it
// is the stand-in CLI, or its hook command, and does not return.
func Main() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case "--version":
		fmt.Println(Version + " (Claude Code)")
		exit(0)
	case "--resume", "--model": // the first argument of every session, and of one started by hand
		run(os.Args[1:])
	case hookArgument:
		exit(forward())
	}
}

// Path is the stand-in's path: the test binary's own.
func Path() string {
	path, err := os.Executable()
	if err != nil {
		panic(fmt.Sprintf("claudetest: %v", err))
	}
	return path
}

// HookCommand is the command line that forwards a hook call.
func HookCommand() []string { return []string{Path(), hookArgument} }

func forward() int {
	// The names are the launcher's; claude's tests pin them.
	err := hook.Forward(context.Background(), os.Getenv("OCP_HOOK_SOCKET"), os.Getenv("OCP_HOOK_SECRET"), os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// exit is os.Exit without the race detector's sleep of a second before the end.
func exit(code int) {
	syscall.Exit(code)
}
