package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"ocp/internal/claude"
	"ocp/internal/config"
	"ocp/internal/probe"
	"ocp/internal/turn"
)

const doctorPrefix = "ocp-doctor-" // of the state directories, in the temporary folder

// doctorCommand judges the setup that `ocp serve` with the same flags would run.
type doctorCommand struct {
	config.Serve
	ConfigFile
	JSON bool `name:"json" help:"JSON instead of a table."`
	Fix  bool `help:"Put right what is safe to, and say what was done: the state directory and the mode of --api-key-file. Nothing is changed without."`
}

// Run looks, starts one session in a state directory of its own, and reports. It is an
// error if a check fails.
func (c *doctorCommand) Run(ctx context.Context, p program) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find ocp's own binary: %w", err)
	}
	in := probe.Surroundings{Env: p.env, EditorCommand: []string{self, "editor"}, SettingsErr: validate(&c.Serve, p.env), ConfigExposed: c.exposed()}
	if c.file != nil {
		in.ConfigFile = c.file.Path
	}
	setup := probe.Look(ctx, c.Serve, in)
	fixed := []string{}
	if c.Fix {
		var done []string
		if done, err = setup.Fix(); len(done) > 0 {
			fixed, setup = done, probe.Look(ctx, c.Serve, in)
		}
	}
	if setup.Blocked() == "" {
		session, left := trySession(ctx, setup, p)
		setup.Session, err = session, errors.Join(err, left)
	}
	if ctx.Err() != nil {
		return errors.Join(err, errors.New("interrupted"))
	}
	checks := setup.Checks()
	write := writeChecks
	if c.JSON {
		write = writeChecksJSON
	}
	err = errors.Join(err, write(p.stdout, checks, fixed))
	if failed := probe.Failed(checks); failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d checks failed", failed, len(checks)))
	}
	return err
}

// trySession starts a session in which no turn runs. With the operator's login it runs on
// a copy of their configuration, since the CLI writes into the one it is given. An error
// says that something of it is left.
func trySession(ctx context.Context, setup *probe.Setup, p program) (session *probe.Session, err error) {
	none := func(err error) *probe.Session {
		return &probe.Session{Err: &turn.Error{Kind: turn.SessionFailed, Message: "no session could be started", Err: err}}
	}
	state, err := passingState(doctorPrefix)
	if err != nil {
		return none(err), nil
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	settings, env := setup.Settings, p.env
	settings.Claude, settings.StateDir, settings.StartCheck, settings.KeepTranscripts = setup.CLI, state, true, false
	copied := setup.Login.Variable == ""
	config := filepath.Join(state, "config")
	if copied {
		env = append(env[:len(env):len(env)], "HOME="+filepath.Join(config, "home"), "CLAUDE_CONFIG_DIR="+config)
	}
	launcher, err := newLauncher(settings, setup.Version, env, slog.New(slog.DiscardHandler))
	if err != nil {
		return none(err), nil
	}
	defer func() { err = errors.Join(err, launcher.Close()) }()
	if copied { // not before the state directory is one, which it is only while it is empty
		if err := claude.CopyConfig(p.env, config); err != nil {
			return none(err), nil
		}
	}
	checkErr, _ := errors.AsType[*turn.Error](launcher.Check(ctx))
	health := launcher.Health()
	return &probe.Session{
		Err: checkErr, Boot: health.Boot, Silent: health.Silent, HTTPSilent: health.HTTPSilent, Proved: health.Proved, Copy: copied,
	}, nil
}

func writeChecks(w io.Writer, checks []probe.Check, fixed []string) error {
	marks := map[probe.Status]string{probe.OK: "ok  ", probe.Warn: "warn", probe.Fail: "FAIL", probe.Skip: "skip"}
	for _, done := range fixed {
		fmt.Fprintf(w, "fixed %s\n", done)
	}
	for _, c := range checks {
		if _, err := fmt.Fprintf(w, "%s  %-12s %s\n", marks[c.Status], c.ID, c.Evidence); err != nil {
			return err
		}
		if c.Remedy != "" {
			fmt.Fprintf(w, "      %-12s → %s\n", "", c.Remedy)
		}
	}
	return nil
}

func writeChecksJSON(w io.Writer, checks []probe.Check, fixed []string) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Checks []probe.Check `json:"checks"`
		Fixed  []string      `json:"fixed"`
		OK     bool          `json:"ok"`
	}{checks, fixed, probe.Failed(checks) == 0})
}
