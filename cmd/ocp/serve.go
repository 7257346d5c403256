package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"ocp/internal/claude"
	"ocp/internal/config"
)

type serveCommand struct {
	config.Serve
	ConfigFile
}

// Run serves until ctx is cancelled. Everything it has to say goes to stderr as log
// lines; the address served on is in the line "serving".
func (c *serveCommand) Run(ctx context.Context, p program) error {
	logger := newLogger(p.stderr, c.LogLevel, c.LogFormat)
	if c.exposed() {
		logger.Warn("others can read the keys in the settings file: chmod 600 it, or use api-key-file", "file", c.file.Path)
	}
	settings, err := complete(c.Serve, p.env)
	if err != nil {
		return err
	}
	cli, err := claude.Version(ctx, settings.Claude)
	if err != nil {
		return err
	}
	proxy, err := startProxy(settings, cli, p.env, logger, nil)
	if err != nil {
		return err
	}
	logger.Info("serving", "url", proxy.url(), "version", version(), "claude", cli, "state_dir", settings.StateDir)
	if settings.TLSCert == "" && !settings.Loopback() {
		logger.Warn("keys and conversations go over the network in clear: give --tls-cert and --tls-key, unless a proxy in front encrypts them")
	}
	if settings.LogContent {
		logger.Warn("THE LOG HOLDS THE TEXTS OF ALL PROMPTS AND ANSWERS (--log-content): keep it as safe as they must be, and do not send it to others")
	}
	if !settings.StartCheck && !claude.Tested(cli) { // the check says it otherwise
		logger.Warn("ocp was not tested with this release of Claude Code", "claude", cli, "tested", claude.TestedVersions)
	}
	return c.untilEnd(ctx, proxy, logger)
}

// untilEnd serves, and reloads the keys at each SIGHUP.
func (c *serveCommand) untilEnd(ctx context.Context, proxy *proxy, logger *slog.Logger) error {
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	for {
		select {
		case <-reload:
			proxy.clients.reload(ctx)
		case <-ctx.Done():
			proxy.drain(c.Drain, logger)
			logger.Info("shutting down")
			return proxy.close()
		case err := <-proxy.served:
			proxy.served <- err
			return errors.Join(fmt.Errorf("stopped serving: %w", err), proxy.close())
		}
	}
}

// validate says what is wrong with the settings themselves.
func validate(s *config.Serve, env []string) error {
	if slices.Contains(env, "OCP_API_KEY=") {
		return errors.New("OCP_API_KEY is set and empty: give it a key, or unset it to serve without keys on loopback")
	}
	stored, err := storedKeys(*s, env)
	s.StoredKeys = stored
	return errors.Join(err, s.Validate())
}

// complete fills in what the defaults cannot say and checks the whole.
func complete(s config.Serve, env []string) (config.Serve, error) {
	if err := validate(&s, env); err != nil {
		return s, err
	}
	path, err := claude.Find(s.Claude, env)
	if err != nil {
		return s, err
	}
	s.Claude = path
	s.StateDir, err = stateDirOf(s.StateDir, env)
	return s, err
}

// newLogger makes a logger of a format of --log-format.
func newLogger(w io.Writer, level, format string) *slog.Logger {
	var l slog.Level
	_ = l.UnmarshalText([]byte(level)) // the command line allows valid levels only
	options := slog.HandlerOptions{Level: l}
	if format == "json" {
		options.ReplaceAttr = durationsInWords
		return slog.New(slog.NewJSONHandler(w, &options))
	}
	return slog.New(slog.NewTextHandler(w, &options))
}

// durationsInWords has durations as the text format has them: JSON's would be bare
// numbers.
func durationsInWords(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
