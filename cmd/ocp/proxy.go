package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"ocp/internal/admission"
	"ocp/internal/certificate"
	"ocp/internal/claude"
	"ocp/internal/config"
	"ocp/internal/metrics"
	"ocp/internal/server"
	"ocp/internal/statuspage"
	"ocp/internal/terminal/tmux"
	"ocp/internal/watch"
)

// shutdownTimeout bounds the end of everything, from the signal on.
const shutdownTimeout = 15 * time.Second

// proxy is all that serves: the HTTP listener, the API and the sessions behind it.
type proxy struct {
	backend  *backend
	clients  *clients
	watch    *watch.Server
	gate     *admission.Gate
	api      *server.Server
	http     *http.Server
	listener net.Listener
	tls      *certificate.Files // nil without TLS
	served   chan error         // the end of http.Serve

	cancelCheck context.CancelFunc
	checked     chan struct{} // closed when the start-up check is over
}

// startProxy opens everything in the order in which it must close. On an error
// nothing is left open.
// cli is the version of c.Claude; observe is told of every turn
// at each stage, with each of its deltas, and may be nil.
func startProxy(c config.Serve, cli string, env []string, logger *slog.Logger, observe func(server.Trace)) (*proxy, error) {
	var files *certificate.Files
	if c.TLSCert != "" {
		var err error
		if files, err = certificate.Open(c.TLSCert, c.TLSKey, logger); err != nil {
			return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w%s", err, portAdvice(err))
	}
	launcher, err := newLauncher(c, cli, env, logger)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	known, err := openClients(context.Background(), c, logger)
	if err != nil {
		return nil, errors.Join(err, launcher.Close(), listener.Close())
	}
	watching, err := watch.Serve(launcher.ControlSocket(), watchable(launcher))
	if err != nil {
		return nil, errors.Join(err, known.close(), launcher.Close(), listener.Close())
	}
	machine, _ := os.Hostname() // without, it is one name less to call the server by
	models := append(claude.Models(cli), c.Models...)
	p := &proxy{
		clients: known, watch: watching,
		backend: newBackend(c, models[0], launcher, logger), gate: admission.New(admission.Options{Slots: c.Concurrency, Queue: c.Queue}),
		listener: listener, tls: files, served: make(chan error, 1), checked: make(chan struct{}),
	}
	p.backend.recorder = known.recorder
	status := func() server.Status { return p.api.Status() } // asked once it serves
	counts := metrics.New(metrics.Options{Status: status, Version: version(), Models: models})
	page := statuspage.New(statuspage.Options{Status: status, Models: models})
	observers := []func(server.Trace){counts.Observe, page.Observe, known.observe}
	if observe != nil {
		observers = append(observers, observe)
	}
	p.api = server.New(server.Options{
		Backend:          p.backend,
		Admission:        p.gate,
		Observers:        observers,
		TraceDeltas:      observe != nil,
		Mounts:           append(page.Mounts(), counts.Mount()),
		Version:          version(),
		Logger:           logger,
		LogContent:       c.LogContent,
		Models:           models,
		StrictParams:     c.StrictParams,
		Keys:             known.keys,
		Quota:            known.book,
		Loopback:         c.Loopback(),
		HostNames:        c.HostNames(machine),
		Origins:          c.CORSOrigin,
		TurnTimeout:      c.TurnTimeout,
		FirstByteTimeout: c.FirstByteTimeout,
		IdleTimeout:      c.IdleTimeout,
		KeepAlive:        c.KeepAlive,
	})
	known.serve(p.api.SetKeys)
	p.serve()
	p.startCheck(c.StartCheck, logger)
	return p, nil
}

// portAdvice is what to do about a port that cannot be had, if there is something.
func portAdvice(err error) string {
	if errors.Is(err, syscall.EADDRINUSE) {
		return ": another program serves there, or another ocp; `ocp doctor` says which, and --listen takes another port"
	}
	return ""
}

// serve begins to, until close.
func (p *proxy) serve() {
	p.http = p.api.HTTP()
	if p.tls == nil {
		go func() { p.served <- p.http.Serve(p.listener) }()
		return
	}
	p.http.TLSConfig = p.tls.Config()
	go func() { p.served <- p.http.ServeTLS(p.listener, "", "") }() // the files are in the config
}

// startCheck begins the start-up check, if it is wanted. close ends it.
func (p *proxy) startCheck(wanted bool, logger *slog.Logger) {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancelCheck = cancel
	if !wanted {
		close(p.checked)
		return
	}
	go func() {
		defer close(p.checked)
		checkStart(ctx, p.backend.launcher, logger)
	}()
}

func newLauncher(c config.Serve, cli string, env []string, logger *slog.Logger) (*claude.Launcher, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find ocp's own binary: %w", err)
	}
	program := ""
	if c.Terminal == "tmux" {
		if program, _, err = tmux.Find(context.Background(), claude.Variable(env, "PATH")); err != nil {
			return nil, fmt.Errorf("--terminal tmux: %w; or use --terminal pty", err)
		}
	}
	return claude.New(claude.Options{
		Path:            c.Claude,
		Version:         cli,
		StateDir:        c.StateDir,
		HookTransport:   claude.Transport(c.HookTransport),
		HookCommand:     []string{self, "hook"},
		EditorCommand:   []string{self, "editor"},
		Tmux:            program,
		PaneCommand:     []string{self, "pane"},
		MCPCommand:      []string{self, "mcp"},
		Env:             env,
		PassEnv:         c.PassEnv,
		Effort:          c.Effort,
		StartTimeout:    c.StartTimeout,
		KeepSessions:    c.Keep > 0,
		ChecksFirst:     c.StartCheck,
		KeepTranscripts: c.KeepTranscripts,
		Logger:          logger,
	})
}

func (p *proxy) url() string {
	scheme := "http://"
	if p.tls != nil {
		scheme = "https://"
	}
	return scheme + p.listener.Addr().String()
}

// drain lets what is under way come to its end, if it does in time. close is to follow.
func (p *proxy) drain(within time.Duration, logger *slog.Logger) {
	if within <= 0 {
		return
	}
	logger.Info("draining: what runs may end, and /readyz says that this server does", "within", within)
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	p.http.SetKeepAlivesEnabled(false)
	err := p.api.Drain(ctx)
	if err == nil {
		err = p.http.Shutdown(ctx) // answers what has come in since, but takes no more in
	}
	if err != nil {
		logger.Warn("not all turns have ended in time", "drain", within)
	}
}

// close ends streams with an error event first, then the connections, then what is
// left of the sessions.
func (p *proxy) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	p.cancelCheck()
	err := errors.Join(p.api.Shutdown(ctx), p.http.Shutdown(ctx))
	if served := <-p.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	<-p.checked
	return errors.Join(err, p.clients.close(), p.watch.Close(), p.backend.close())
}
