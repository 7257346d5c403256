// Package config is the operator's settings: what there is to set, its defaults, and
// what values are refused. The help texts of the fields are the manual.
package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Serve is what `ocp serve` can be told. The tags are read by the command line parser;
// each flag has an environment variable of the same name, with OCP_ in front.
type Serve struct {
	Listen   string `default:"127.0.0.1:3456" help:"Address to serve on. Beyond loopback it needs keys. Port 0 takes a free one."`
	Claude   string `placeholder:"PATH" help:"The claude binary. Default: the one on PATH, or ~/.local/bin/claude."`
	StateDir string `placeholder:"DIR" help:"OCP's own directory: running sessions, kept transcripts. Default: ~/.local/state/ocp."`

	APIKey     []string `name:"api-key" placeholder:"KEY" help:"A key that clients must send, as a bearer token or x-api-key. Several: with commas, or the flag again. Better given by the environment or --api-key-file: other users can read a command line."`
	APIKeyFile string   `name:"api-key-file" placeholder:"FILE" help:"File of hashed keys, one a line: sha256:HEX and, if you like, a name. 'printf %s KEY | sha256sum' prints the HEX."`

	AllowHost  []string `name:"allow-host" placeholder:"NAME" help:"Further names by which clients may call the server, such as that of a proxy in front of it. Others are refused, since a web page can give its own name this machine's address. * for any, with keys."`
	CORSOrigin []string `name:"cors-origin" placeholder:"ORIGIN" help:"Web pages that may use the server from a browser, by their origin: https://chat.example.org. None may by default."`
	TLSCert    string   `name:"tls-cert" placeholder:"FILE" help:"Serve https with this certificate and those that signed it, in PEM. A changed file is taken up without a restart."`
	TLSKey     string   `name:"tls-key" placeholder:"FILE" help:"The certificate's private key, in PEM."`

	// StoredKeys says that the state directory's store has keys too. It is no setting.
	StoredKeys bool `kong:"-"`

	Concurrency int    `default:"2" help:"How many turns run at once. A session takes about 250 MB while it runs."`
	Pool        int    `default:"1" help:"How many sessions are started ahead, each for the model, effort and token limit that recent requests have asked for. One that waits takes about 120 MB. 0 starts each for its request."`
	Keep        int    `default:"2" help:"How many sessions stay after their answer, each for its own conversation to go on in it, which is faster. One that waits takes about 250 MB. 0 for none."`
	Queue       int    `default:"16" help:"How many more requests wait for their turn. One more is answered with 429."`
	Effort      string `default:"low" help:"Reasoning effort of requests that name none: low, medium, high, xhigh or max. Empty for the CLI's own default."`

	Models       []string `placeholder:"NAME" help:"Further names for the list of models. Any name the CLI knows can be asked for, listed or not."`
	StrictParams bool     `help:"Refuse requests with parameters that have no effect. Otherwise the header Ocp-Ignored-Params names them."`

	TurnTimeout      time.Duration `default:"10m" help:"How long a turn may take, from its slot to its end."`
	FirstByteTimeout time.Duration `default:"5m" help:"How long a turn may take to its first text, thinking included. 0 for no limit."`
	IdleTimeout      time.Duration `default:"5m" help:"How long an answer may be silent between texts. 0 for no limit."`
	StartTimeout     time.Duration `default:"1m" help:"How long a session may take to start."`
	KeepAlive        time.Duration `default:"15s" help:"A streamed answer that is silent this long gets an SSE comment, or a ping event."`
	KeepFor          time.Duration `default:"5m" help:"How long a session stays that --keep has kept."`

	Drain time.Duration `default:"0" help:"How long turns may go on after a signal to end. Meanwhile /readyz says that the server is not ready, and what comes is answered. A second signal ends everything at once."`

	StartCheck bool `default:"true" negatable:"" help:"Start one session at the start, without a turn and without tokens, to see whether the CLI works. /readyz tells what it has shown."`

	UsageKeep Days `default:"400d" placeholder:"TIME" help:"How long 'ocp usage' remembers, as 400d or 9600h. 0 keeps all."`

	HookTransport   string   `default:"http" enum:"http,command" help:"How the CLI's hooks reach ocp: http, or command where a policy forbids http hooks."`
	Terminal        string   `default:"pty" enum:"pty,tmux" help:"What sessions run under: pty, pseudo-terminals of ocp's own; or tmux, panes of a tmux server of ocp's own. 'ocp watch' shows both."`
	PassEnv         []string `placeholder:"NAME" help:"Further variables of ocp's environment that sessions get."`
	KeepTranscripts bool     `help:"Keep every session's transcript in the state directory. They hold the conversations."`
	LogLevel        string   `default:"info" enum:"debug,info,warn,error" help:"The least severe log lines shown: debug, info, warn or error."`
	LogFormat       string   `default:"text" enum:"text,json" help:"How log lines are written: text, or json with one object a line."`
	LogContent      bool     `help:"Log the texts of prompts and answers, up to 64 KB each. Otherwise no line holds any."`
}

// maxConcurrency is far beyond what one machine runs: a session takes 120–155 MB of
// its own.
const maxConcurrency = 256

// Validate says what is wrong, naming the flag, all faults at once.
func (s *Serve) Validate() error {
	return errors.Join(
		validListen(s.Listen, s.hasKeys()),
		validKeys(s.APIKey),
		validHosts(s.AllowHost, s.hasKeys()),
		validOrigins(s.CORSOrigin),
		validTLS(s.TLSCert, s.TLSKey),
		between("--concurrency", s.Concurrency, 1, maxConcurrency),
		between("--pool", s.Pool, 0, maxConcurrency),
		between("--keep", s.Keep, 0, maxConcurrency),
		validKeepFor(s.Keep, s.KeepFor),
		between("--queue", s.Queue, 0, 1<<16),
		positive("--turn-timeout", s.TurnTimeout),
		notNegative("--first-byte-timeout", s.FirstByteTimeout),
		notNegative("--idle-timeout", s.IdleTimeout),
		positive("--start-timeout", s.StartTimeout),
		positive("--keep-alive", s.KeepAlive),
		notNegative("--usage-keep", time.Duration(s.UsageKeep)),
		notNegative("--drain", s.Drain),
		validEffort(s.Effort),
		validNames(s.PassEnv),
		validModels(s.Models),
	)
}

// validListen allows addresses that others can reach only if there are keys.
func validListen(listen string, keys bool) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("--listen: %q is not HOST:PORT", listen)
	}
	if !keys && !isLoopback(host) {
		return fmt.Errorf("--listen: %q is not a loopback address, and without keys ocp serves on loopback only: make one with 'ocp keys add', give it --api-key-file or OCP_API_KEY, or use 127.0.0.1, [::1] or localhost", host)
	}
	return nil
}

// Loopback reports whether only programs on this machine can reach what is served.
func (s *Serve) Loopback() bool {
	host, _, err := net.SplitHostPort(s.Listen)
	return err == nil && isLoopback(host)
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

func between(flag string, n, low, high int) error {
	if n < low || n > high {
		return fmt.Errorf("%s: %d is not between %d and %d", flag, n, low, high)
	}
	return nil
}

func positive(flag string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("%s: %v is not more than zero", flag, d)
	}
	return nil
}

func notNegative(flag string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s: %v is less than zero, which is no limit", flag, d)
	}
	return nil
}

// validKeepFor has no say where nothing is kept.
func validKeepFor(keep int, d time.Duration) error {
	if keep == 0 {
		return nil
	}
	return positive("--keep-for", d)
}

// efforts are the levels that the CLI has.
var efforts = []string{"low", "medium", "high", "xhigh", "max"}

// validEffort allows none, which is the CLI's own default.
func validEffort(effort string) error {
	if effort != "" && !slices.Contains(efforts, effort) {
		return fmt.Errorf("--effort: %q is none of %s", effort, strings.Join(efforts, ", "))
	}
	return nil
}

func validModels(names []string) error {
	for _, name := range names {
		if name == "" || strings.ContainsFunc(name, unicode.IsControl) {
			return fmt.Errorf("--models: %q is not the name of a model", name)
		}
	}
	return nil
}

func validNames(names []string) error {
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, "= \t\n\x00") {
			return fmt.Errorf("--pass-env: %q is not the name of a variable", name)
		}
		if name == "OCP_API_KEY" {
			return errors.New("--pass-env: OCP_API_KEY holds the keys of clients, which no session gets")
		}
	}
	return nil
}
