package probe

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ocp/internal/certificate"
	"ocp/internal/claude"
	"ocp/internal/config"
	"ocp/internal/terminal/tmux"
)

// askTimeout bounds what a program at the address to serve on may take to answer.
const askTimeout = 3 * time.Second

// Surroundings are what a setup is looked at in.
type Surroundings struct {
	Env           []string
	EditorCommand []string // as sessions would be given it
	SettingsErr   error    // what serve has against the settings
	ConfigFile    string   // the settings file that was read; empty if none was
	ConfigExposed bool     // others can read keys in it
}

// Look gathers all of a setup that can be seen without a session. It changes nothing.
func Look(ctx context.Context, settings config.Serve, in Surroundings) *Setup {
	s := &Setup{
		Settings: settings, SettingsErr: in.SettingsErr, Now: time.Now(),
		Login: claude.FindLogin(in.Env), Policy: claude.FindPolicy(in.Env), Proxies: claude.Proxies(in.Env),
		CanEdit: claude.CanEdit(in.EditorCommand), Memory: availableMemory(),
		ConfigFile: in.ConfigFile, ConfigExposed: in.ConfigExposed,
	}
	if settings.APIKeyFile != "" {
		s.KeysExposed = exposed(settings.APIKeyFile)
		if _, err := settings.Keys(); err != nil {
			s.SettingsErr = errors.Join(s.SettingsErr, err)
		}
	}
	if settings.TLSCert != "" {
		s.TLSExposed = exposed(settings.TLSKey)
		files, err := certificate.Open(settings.TLSCert, settings.TLSKey, slog.New(slog.DiscardHandler))
		if s.TLSErr = err; err == nil {
			s.TLSExpires = files.Expires()
		}
	}
	s.lookAtCLI(ctx, in.Env)
	s.lookAtState(in.Env)
	if settings.Terminal == "tmux" {
		program, version, err := tmux.Find(ctx, claude.Variable(in.Env, "PATH"))
		s.Tmux, s.TmuxErr = "tmux "+version+" ("+program+")", err
	}
	s.Port = lookAtPort(ctx, settings.Listen)
	for _, name := range cloud {
		if slices.Contains(settings.PassEnv, name) && claude.Variable(in.Env, name) != "" {
			s.Cloud = name
		}
	}
	return s
}

// cloud are the variables that make the CLI use another provider's login.
var cloud = []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"}

func (s *Setup) lookAtCLI(ctx context.Context, env []string) {
	named := s.Settings.Claude
	if s.CLI, s.CLIErr = claude.Find(named, env); s.CLIErr != nil {
		return
	}
	switch {
	case named != "":
		s.FoundBy = "named by --claude"
	case slices.Contains(filepath.SplitList(claude.Variable(env, "PATH")), filepath.Dir(s.CLI)):
		s.FoundBy = "the first on PATH"
	default:
		s.FoundBy = "not on PATH, but where the installer puts it"
	}
	s.Version, s.VersionErr = claude.Version(ctx, s.CLI)
	s.KnownBad = claude.KnownBad(s.Version)
}

func (s *Setup) lookAtState(env []string) {
	if s.Free = -1; s.Settings.StateDir == "" {
		s.Settings.StateDir = claude.DefaultStateDir(env)
	}
	if s.Settings.StateDir == "" {
		s.StateErr = errors.New("the environment has no HOME to find one in")
		return
	}
	dir, err := filepath.Abs(s.Settings.StateDir)
	if err != nil {
		s.StateErr = err
		return
	}
	s.Settings.StateDir, s.State = dir, claude.LookAtState(dir)
	var file unix.Statfs_t
	if unix.Statfs(s.State.Existing, &file) == nil {
		s.Free = int64(file.Bavail) * int64(file.Bsize) //nolint:unconvert // the types differ by system
	}
}

func lookAtPort(ctx context.Context, listen string) Port {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return Port{Unasked: true}
	}
	if port == "0" {
		return Port{}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	there := net.JoinHostPort(host, port)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if conn, err := new(net.Dialer).DialContext(ctx, "tcp", there); err == nil {
		_ = conn.Close()
		return Port{Taken: true, OCP: askWho(ctx, there)}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return Port{Taken: true}
	case err != nil:
		return Port{Err: err}
	}
	return Port{Err: listener.Close()}
}

// askWho returns the version of the ocp that answers at an address, with TLS or without;
// empty if none does.
func askWho(ctx context.Context, address string) string {
	// No proxy; and any certificate, since nothing is sent that is worth anything.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for _, scheme := range []string{"http", "https"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+"/healthz", nil)
		if err != nil {
			return ""
		}
		resp, err := client.Do(req)
		if err != nil {
			continue
		}
		var health struct{ Status, Version string }
		err = json.NewDecoder(http.MaxBytesReader(nil, resp.Body, 1<<10)).Decode(&health)
		_ = resp.Body.Close()
		if err == nil && health.Status == "ok" {
			return health.Version
		}
	}
	return ""
}
