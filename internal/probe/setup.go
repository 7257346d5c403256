package probe

import (
	"fmt"
	"os"
	"strings"
	"time"

	"ocp/internal/certificate"
	"ocp/internal/claude"
	"ocp/internal/config"
	"ocp/internal/turn"
)

// Setup is what was found of a setup of `ocp serve`, by Look and by a session.
type Setup struct {
	Settings    config.Serve // StateDir is filled in
	SettingsErr error        // why serve would refuse them
	KeysExposed bool         // others can read --api-key-file

	ConfigFile    string    // the settings file that was read; empty if none was
	ConfigExposed bool      // others can read keys in it
	TLSErr        error     // why --tls-cert and --tls-key cannot be used
	TLSExpires    time.Time // when the certificate does
	TLSExposed    bool      // others can read its key

	CLI        string // path of the claude binary
	FoundBy    string // how it was found
	CLIErr     error  // why it was not
	Version    string
	VersionErr error
	KnownBad   string // what is wrong with that release; empty if nothing is known to be

	Login   claude.Login
	Cloud   string // the variable by which sessions use another provider's login; empty if none
	Policy  claude.Policy
	Proxies []string // proxy variables of the environment

	State    claude.StateLook
	StateErr error // why there is no state directory to look at
	Free     int64 // bytes of disk; negative if it cannot be told
	Memory   int64 // bytes that sessions could have; negative if it cannot be told
	Port     Port
	Tmux     string // path and version; empty if it is not asked for
	TmuxErr  error  // why it cannot be used
	CanEdit  bool   // ocp can be the editor of sessions

	Session *Session // nil if none was started
	Now     time.Time
}

// Port is who is at the address to serve on.
type Port struct {
	Taken   bool
	OCP     string // version of the ocp that answers there; empty if none does
	Err     error  // why it cannot be listened on, if it is not taken
	Unasked bool   // the address is none
}

// Session is what a session in which no turn ran has shown.
type Session struct {
	Err        *turn.Error // why it did not come up, or that its hooks were silent
	Boot       time.Duration
	Silent     bool // no hook call came
	HTTPSilent bool // SessionStart came and no other
	Proved     bool // another has come
	Copy       bool // it ran on a copy of the operator's configuration, without the login
}

// The least that is asked for, in bytes. A primed session takes about 120 MB, one that
// runs or is kept about 250.
const (
	megabyte    = 1 << 20
	primedTakes = 120 * megabyte
	takes       = 250 * megabyte
	leastDisk   = 20 * megabyte
	enoughDisk  = 200 * megabyte
)

// slowBoot is a boot that a user will notice; a second is usual.
const slowBoot = 5 * time.Second

// Checks judges the setup. A check that an earlier failure explains is skipped.
func (s *Setup) Checks() []Check {
	return []Check{
		s.settings(), s.tls(),
		s.cliFound(), s.cliVersion(),
		s.configDir(), s.login(),
		s.stateDir(), s.instance(), s.port(),
		s.disk(), s.memory(), s.terminal(), s.goingOn(), s.proxy(),
		s.session(), s.hooks(), s.boot(),
	}
}

// Blocked is the check that has failed without which no session need be started; empty
// if none has.
func (s *Setup) Blocked() string {
	for _, c := range []Check{s.cliFound(), s.cliVersion(), s.configDir(), s.login(), s.terminal()} {
		if c.Status == Fail {
			return c.ID
		}
	}
	return ""
}

// The verdicts.

func (c Check) ok(format string, args ...any) Check {
	c.Status, c.Evidence = OK, fmt.Sprintf(format, args...)
	return c
}

func (c Check) skip(format string, args ...any) Check {
	c.Status, c.Evidence = Skip, fmt.Sprintf(format, args...)
	return c
}

func (c Check) warn(remedy, format string, args ...any) Check {
	c.Status, c.Remedy, c.Evidence = Warn, remedy, fmt.Sprintf(format, args...)
	return c
}

func (c Check) fail(remedy, format string, args ...any) Check {
	c.Status, c.Remedy, c.Evidence = Fail, remedy, fmt.Sprintf(format, args...)
	return c
}

func (s *Setup) settings() Check {
	c := Check{ID: "settings", Claim: "the settings are ones that serve starts with"}
	switch {
	case s.SettingsErr != nil:
		return c.fail("change what is named: `ocp serve --help` lists the flags, each with its OCP_ variable",
			"%s", strings.ReplaceAll(s.SettingsErr.Error(), "\n", "; "))
	case s.ConfigExposed:
		return c.warn("chmod 600 "+quoted(s.ConfigFile)+", or use api-key-file", "others can read the keys in the settings file %s", s.ConfigFile)
	case s.KeysExposed:
		return c.warn(fmt.Sprintf("chmod 600 %s, or ocp doctor --fix", quoted(s.Settings.APIKeyFile)), "others can read the hashes in --api-key-file")
	}
	from := ""
	if s.ConfigFile != "" {
		from = "; settings file " + s.ConfigFile
	}
	return c.ok("%s, %d at once, pool %d, keep %d, hooks by %s%s", s.Settings.Listen, s.Settings.Concurrency, s.Settings.Pool, s.Settings.Keep, s.Settings.HookTransport, from)
}

func (s *Setup) tls() Check {
	c := Check{ID: "tls", Claim: "what goes over a network is encrypted"}
	expires := s.TLSExpires.UTC().Format("2006-01-02 15:04 MST")
	const renew = "renew it; a running ocp takes it up by itself"
	switch {
	case s.Settings.TLSCert == "" && s.Settings.Loopback():
		return c.ok("not needed: %s is on this machine alone", s.Settings.Listen)
	case s.Settings.TLSCert == "":
		return c.warn("give --tls-cert and --tls-key, unless a proxy in front encrypts it or the network is your own", "keys and conversations go over the network of %s in clear", s.Settings.Listen)
	case s.TLSErr != nil:
		return c.fail("give --tls-cert a certificate and --tls-key the key that belongs to it, both in PEM", "%v", s.TLSErr)
	case s.TLSExpires.Before(s.Now):
		return c.fail(renew, "the certificate expired on %s", expires)
	case s.TLSExpires.Before(s.Now.Add(certificate.Soon)):
		return c.warn(renew, "the certificate expires on %s", expires)
	case s.TLSExposed:
		return c.warn("chmod 600 "+quoted(s.Settings.TLSKey), "others can read the private key in %s", s.Settings.TLSKey)
	}
	return c.ok("the certificate in %s expires on %s", s.Settings.TLSCert, expires)
}

func (s *Setup) cliFound() Check {
	c := Check{ID: "cli-found", Claim: "the Claude Code CLI is installed"}
	if s.CLIErr != nil {
		return c.fail("install it with `"+claude.InstallCommand+"`, or name it with --claude PATH", "%v", s.CLIErr)
	}
	return c.ok("%s (%s)", s.CLI, s.FoundBy)
}

const update = "update it with `" + claude.InstallCommand + "@latest`"

func (s *Setup) cliVersion() Check {
	c := Check{ID: "cli-version", Claim: "it is a release that ocp works with"}
	tested := strings.Join(claude.TestedVersions, " and ")
	switch {
	case s.CLIErr != nil:
		return c.skip("no CLI was found")
	case s.VersionErr != nil:
		return c.fail("install it anew with `"+claude.InstallCommand+"`, or name another with --claude PATH", "%v", s.VersionErr)
	case !claude.HasHook(s.Version):
		return c.fail(update+", or name another with --claude PATH",
			"%s is too old: it has no MessageDisplay hook, which came with %s", s.Version, claude.FirstWithHook)
	case s.KnownBad != "":
		return c.fail("install another release, such as "+tested+", and name it with --claude PATH", "%s does not work with ocp: %s", s.Version, s.KnownBad)
	case !claude.Tested(s.Version):
		return c.warn("if answers fail, install one of those and name it with --claude PATH", "ocp was not tested with %s; it was with %s", s.Version, tested)
	}
	return c.ok("%s, which ocp is tested with", s.Version)
}

func (s *Setup) configDir() Check {
	c := Check{ID: "config-dir", Claim: "sessions can use the CLI's configuration directory, and no one else its secrets"}
	l := s.Login
	switch {
	case l.Variable != "":
		return c.ok("not used: with %s in the environment, each session has its own", l.Variable)
	case len(l.Faults) > 0:
		return c.fail("make it yours, readable and writable; what is no JSON, put away and run `claude` once", "%s", strings.Join(l.Faults, "; "))
	case len(l.Exposed) > 0:
		return c.warn("chmod 600 "+quoted(l.Exposed...), "others can read the login in %s", strings.Join(l.Exposed, " and "))
	}
	return c.ok("%s", l.ConfigDir)
}

func (s *Setup) login() Check {
	c := Check{ID: "login", Claim: "there is a login, or a key or token (its worth is not asked upstream)"}
	const logIn = "run `claude` and log in with /login, or give ocp ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or CLAUDE_CODE_OAUTH_TOKEN in its environment"
	l := s.Login
	expires := l.Expires.UTC().Format("2006-01-02 15:04 MST")
	expired := !l.Expires.IsZero() && l.Expires.Before(s.Now)
	switch {
	case l.KeyRefused:
		return c.warn("unset ANTHROPIC_API_KEY to use your login; leave it if ocp is meant to spend on that key",
			"ANTHROPIC_API_KEY is a key that the CLI was told not to use (rejected in %s); ocp's sessions do use it", l.ConfigFile)
	case l.Variable != "":
		return c.ok("%s of the environment is used, not your own login", l.Variable)
	case s.Cloud != "":
		return c.ok("%s is passed to sessions: whose login that takes was not looked at", s.Cloud)
	case s.Policy.Helper:
		return c.ok("managed settings give the CLI its keys (apiKeyHelper)")
	case l.Subscription && expired && !l.Renewable && !l.ConsoleKey:
		return c.fail(logIn, "the login in %s expired on %s and cannot be renewed", l.ConfigDir, expires)
	case l.Subscription && expired && l.Renewable:
		return c.ok("a subscription's, in %s; its token of %s is renewed by the CLI", l.ConfigDir, expires)
	case l.Subscription:
		return c.ok("a subscription's, in %s", l.ConfigDir)
	case l.ConsoleKey:
		return c.ok("a key of the Console, in %s", l.ConfigFile)
	case l.Keychain:
		return c.skip("on macOS the CLI keeps it in the keychain, which is not asked")
	}
	return c.fail(logIn, "not logged in: no login in %s, no key or token in the environment", l.ConfigDir)
}

func (s *Setup) stateDir() Check {
	c := Check{ID: "state-dir", Claim: "the state directory can be used, by you alone"}
	dir, l := s.Settings.StateDir, s.State
	where := dir
	if l.InGit {
		where += " (in a git repository, which is harmless)"
	}
	switch {
	case s.StateErr != nil:
		return c.fail("name one with --state-dir DIR", "%v", s.StateErr)
	case l.Err != nil:
		return c.fail("name another with --state-dir DIR, or make it writable for you", "%s: %v", dir, l.Err)
	case l.Foreign:
		return c.fail("name an empty or a new folder with --state-dir DIR", "%s holds something and is no state directory of ocp", dir)
	case l.Open:
		return c.warn("chmod 700 "+quoted(dir)+", or ocp doctor --fix", "others can look into %s", where)
	case l.Left > 0:
		return c.warn("ocp serve removes that when it starts, as does ocp doctor --fix", "%d sessions of an ocp that was killed lie in %s", l.Left, where)
	case !l.Exists:
		return c.ok("%s: not there yet, and can be made", where)
	}
	return c.ok("%s", where)
}

func (s *Setup) instance() Check {
	c := Check{ID: "instance", Claim: "no other ocp holds the state directory"}
	switch {
	case s.stateDir().Status == Fail:
		return c.skip("there is no state directory that can be used")
	case s.State.Holder != "":
		return c.fail("use that one, or end it (kill "+s.State.Holder+"), or give this one its own --state-dir and --listen",
			"another ocp, process %s, runs with %s", s.State.Holder, s.Settings.StateDir)
	}
	return c.ok("none does")
}

func (s *Setup) port() Check {
	c := Check{ID: "port", Claim: "the address to serve on is free"}
	listen, p := s.Settings.Listen, s.Port
	switch {
	case p.Unasked:
		return c.skip("%q is no address", listen)
	case p.OCP != "" && s.State.Holder != "":
		return c.skip("an ocp answers on %s: that of process %s, as it seems", listen, s.State.Holder)
	case p.OCP != "":
		return c.fail("use that one, or end it, or take another address with --listen", "another ocp, version %s, serves on %s", p.OCP, listen)
	case p.Taken:
		return c.fail(fmt.Sprintf("take another address with --listen, or end who has it: `lsof -nP -iTCP:%s -sTCP:LISTEN` names the process", portOf(listen)),
			"another program serves on %s", listen)
	case p.Err != nil:
		return c.fail("take another address with --listen, such as 127.0.0.1:3456", "%v", p.Err)
	}
	return c.ok("%s", listen)
}

func (s *Setup) disk() Check {
	c := Check{ID: "disk", Claim: "there is room for the files of sessions"}
	const remedy = "make room there, or name a folder elsewhere with --state-dir DIR"
	switch {
	case s.State.Err != nil || s.StateErr != nil || s.Free < 0:
		return c.skip("the free space of the state directory cannot be told")
	case s.Free < leastDisk:
		return c.fail(remedy, "%s free at %s", megabytes(s.Free), s.State.Existing)
	case s.Free < enoughDisk:
		return c.warn(remedy, "%s free at %s", megabytes(s.Free), s.State.Existing)
	}
	return c.ok("%s free at %s", megabytes(s.Free), s.State.Existing)
}

func (s *Setup) memory() Check {
	c := Check{ID: "memory", Claim: "there is memory for all sessions at once"}
	const remedy = "lower --concurrency, --keep or --pool, or end other programs"
	n := s.Settings
	need := int64(n.Pool)*primedTakes + int64(n.Keep+n.Concurrency)*takes
	what := fmt.Sprintf("%d running, %d kept and %d primed take about %s", n.Concurrency, n.Keep, n.Pool, megabytes(need))
	switch {
	case s.Memory < 0:
		return c.skip("%s; what there is cannot be told", what)
	case s.Memory < takes:
		return c.fail(remedy, "%s available, and one session takes about %s", megabytes(s.Memory), megabytes(takes))
	case s.Memory < need:
		return c.warn(remedy, "%s available; %s", megabytes(s.Memory), what)
	}
	return c.ok("%s available; %s", megabytes(s.Memory), what)
}

func (s *Setup) terminal() Check {
	c := Check{ID: "terminal", Claim: "there is what sessions run under"}
	switch {
	case s.Settings.Terminal != "tmux":
		return c.ok("pseudo-terminals, which need nothing installed")
	case s.TmuxErr != nil:
		return c.fail("install tmux (`apt-get install tmux`, `brew install tmux`), or leave out --terminal", "--terminal tmux: %v", s.TmuxErr)
	}
	return c.ok("%s", s.Tmux)
}

func (s *Setup) goingOn() Check {
	c := Check{ID: "going-on", Claim: "conversations can go on in their sessions"}
	switch {
	case s.Settings.Keep == 0:
		return c.skip("none is to: --keep is 0")
	case s.Login.Variable == "":
		return c.skip("none does with your own login: the CLI would keep what is typed")
	case !s.CanEdit:
		return c.warn("move ocp to a path without spaces", "the path of ocp has a space in it, so that the CLI cannot run it to take a next prompt")
	}
	return c.ok("the CLI can run ocp to take a next prompt")
}

func quoted(words ...string) string {
	var all []string
	for _, w := range words {
		all = append(all, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	return strings.Join(all, " ")
}

func portOf(listen string) string { return listen[strings.LastIndexByte(listen, ':')+1:] }

func megabytes(n int64) string { return fmt.Sprintf("%d MB", n/megabyte) }

func exposed(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&0o077 != 0
}
