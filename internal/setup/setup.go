// Package setup brings OCP onto a machine: it writes the settings file and installs the
// user's service. What was there is shown, asked about and kept; nothing outside the home
// is written. It judges no setup: the checks are probe's.
package setup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ocp/internal/config"
	"ocp/internal/probe"
	"ocp/internal/rewrite"
)

// Machine is what setup works on. All files it writes lie in Home or Env's XDG_CONFIG_HOME.
type Machine struct {
	OS   string // as GOOS
	UID  int
	Home string
	Env  map[string]string
	Self string // absolute path of ocp
	// Run runs a command of the system and returns what it prints.
	Run func(ctx context.Context, name string, args ...string) (string, error)
}

func (m Machine) configHome() string {
	if dir := m.Env["XDG_CONFIG_HOME"]; filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(m.Home, ".config")
}

// Options are what setup is to do, and what it needs to know of the program.
type Options struct {
	Yes, DryRun, NoService bool

	Config  string         // the settings file
	Default bool           // it is the one that serve looks for by itself
	Keys    []Key          // all there are
	Given   map[string]any // settings that the caller asks for, by key

	// Parse says what serve makes of a settings file.
	Parse func(content []byte) (config.Serve, error)
	// Look looks at the setup of serve with settings.
	Look func(ctx context.Context, s config.Serve) *probe.Setup
	// Answers reports whether ocp serves at a URL, within some seconds.
	Answers func(ctx context.Context, url string) bool
	Now     func() time.Time
}

// setting is one run of setup.
type setting struct {
	Options
	talk
	machine   Machine
	portTaken bool // by another program
}

// Run sets ocp up. It is an error if ocp cannot work then, and says what to do.
func Run(ctx context.Context, m Machine, o Options, in io.Reader, out io.Writer) error {
	s := &setting{Options: o, machine: m, talk: talk{in: bufio.NewReader(in), out: out, yes: o.Yes}}
	content, err := os.ReadFile(o.Config)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err != nil && !fresh {
		return err
	}
	present, err := config.ParseFile(content)
	if err != nil {
		return fmt.Errorf("%s: %w", o.Config, err)
	}
	settings, err := o.Parse(content)
	if err != nil {
		return fmt.Errorf("%s: %w; put that right first", o.Config, err)
	}
	old := Older(s.olderEnv())
	s.sayOlder(old)

	cli, login, err := s.checks(ctx, settings, old)
	if err != nil {
		return err
	}
	values, err := s.values(present, settings, old, cli)
	if err != nil {
		return err
	}
	if fresh {
		content = template(o.Keys)
	}
	settings, err = s.writeSettings(content, values, old, fresh)
	if err != nil {
		return err
	}
	if err := s.serve(ctx, cli, settings); err != nil {
		return err
	}
	s.sayClients(settings)
	if login != nil {
		return fmt.Errorf("one thing is missing yet: %s: %s", login.Evidence, login.Remedy)
	}
	return nil
}

// olderEnv is the environment, and below it that of the older program's service.
func (s *setting) olderEnv() map[string]string {
	env := map[string]string{}
	for _, file := range slices.Sorted(maps.Keys(older[s.machine.OS])) {
		unit, err := os.ReadFile(filepath.Join(s.machine.Home, file))
		if err != nil {
			continue
		}
		s.say("The older program's service is installed (%s). Both cannot have one address; this ends it:\n  %s", file, older[s.machine.OS][file])
		if filepath.Ext(file) == ".service" {
			maps.Copy(env, unitEnv(string(unit)))
		} else {
			s.say("Its settings are not read from there: give them in the environment of `ocp setup`.")
		}
	}
	maps.Copy(env, s.machine.Env)
	return env
}

func (s *setting) sayOlder(old Translated) {
	if len(old.Values) == 0 && len(old.Notes) == 0 && old.Key == "" {
		return
	}
	s.say("Settings of the older Node program were found:")
	for _, key := range slices.Sorted(maps.Keys(old.Values)) {
		s.say("  %s = %v, by %s", key, old.Values[key], old.From[key])
	}
	if old.Key != "" {
		s.say("  PROXY_API_KEY goes, as a hash, into %s; clients keep it", s.keysFile())
	}
	for _, note := range old.Notes {
		s.say("  %s", note)
	}
	s.say("")
}

func (s *setting) keysFile() string { return filepath.Join(filepath.Dir(s.Config), "keys") }

// checks shows what doctor's checks find without a session. A missing login is no reason to
// stop, a missing CLI is.
func (s *setting) checks(ctx context.Context, settings config.Serve, old Translated) (cli string, login *probe.Check, err error) {
	if settings.Claude == "" {
		settings.Claude, _ = old.Values["claude"].(string)
	}
	if given, ok := s.Given["claude"].(string); ok {
		settings.Claude = given
	}
	look := s.Look(ctx, settings)
	s.portTaken = look.Port.Taken && look.Port.OCP == ""
	var stop error
	for _, c := range look.Checks() {
		shown := slices.Contains([]string{"cli-found", "cli-version", "config-dir", "login", "memory"}, c.ID) || c.ID == "port" && s.portTaken
		if !shown || c.Status == probe.Skip {
			continue
		}
		s.say("%-5s %-12s %s", strings.ToUpper(string(c.Status)), c.ID, c.Evidence)
		if c.Remedy != "" {
			s.say("      %-12s → %s", "", c.Remedy)
		}
		switch {
		case c.Status != probe.Fail:
		case c.ID == "login":
			login = &c
		case c.ID == "cli-found" || c.ID == "cli-version":
			stop = errors.Join(stop, fmt.Errorf("%s; then run `ocp setup` again; nothing was changed", c.Remedy))
		}
	}
	s.say("")
	return look.CLI, login, stop
}

// values are the settings to write, by key: what was asked for, what is answered, what the
// older program had. What stands in the file already is among them only if it is to change.
func (s *setting) values(present []config.Line, settings config.Serve, old Translated, cli string) (map[string]any, error) {
	values := map[string]any{}
	has := func(key string) bool {
		return slices.ContainsFunc(present, func(l config.Line) bool { return l.Key == key })
	}
	if !has("claude") {
		values["claude"] = cli // a service has another PATH than a terminal
	}
	for key, value := range old.Values {
		if !has(key) {
			values[key] = value
		}
	}
	maps.Copy(values, s.Given)
	listen, concurrency := settings.Listen, settings.Concurrency
	if v, ok := values["listen"].(string); ok {
		listen = v
	}
	if v, ok := values["concurrency"].(int); ok {
		concurrency = v
	}
	answer, err := s.ask("Address to serve on", listen)
	if err != nil {
		return nil, err
	}
	if answer != listen {
		values["listen"] = answer
	}
	answer, err = s.ask("Turns at once (about 250 MB each)", strconv.Itoa(concurrency))
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(answer)
	if err != nil {
		return nil, fmt.Errorf("%q is no number of turns; %w", answer, errStopped)
	}
	if n != concurrency {
		values["concurrency"] = n
	}
	return values, nil
}

// writeSettings writes what has changed, once it is seen that serve would start with it.
func (s *setting) writeSettings(content []byte, values map[string]any, old Translated, fresh bool) (config.Serve, error) {
	var keys *rewrite.Change
	var err error
	if old.Key != "" {
		if keys, err = s.keys(old.Key); err != nil {
			return config.Serve{}, err
		}
		values["api-key-file"] = s.keysFile()
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if content, err = config.SetLine(content, key, values[key]); err != nil {
			return config.Serve{}, err
		}
	}
	settings, err := s.Parse(content)
	if err == nil {
		err = settings.Validate()
	}
	if err != nil {
		return settings, fmt.Errorf("%w; %w", err, errStopped)
	}
	change, err := rewrite.To(s.Config, 0o600, content)
	if err != nil {
		return settings, err
	}
	if !change.Needed() {
		s.say("%s is as it should be.", s.Config)
	} else if !fresh {
		s.say("%s", change.Diff())
		write, err := s.confirm("Change the settings file like this?", true)
		if err == nil && !write {
			err = errStopped
		}
		if err != nil {
			return settings, err
		}
	}
	if keys != nil {
		if err := s.write(keys); err != nil {
			return settings, err
		}
	}
	return settings, s.write(change)
}

// keys adds a line to the file of hashed keys.
func (s *setting) keys(line string) (*rewrite.Change, error) {
	return rewrite.Plan(s.keysFile(), 0o600, func(old []byte) ([]byte, error) {
		if strings.Contains(string(old), line) {
			return old, nil
		}
		if len(old) > 0 && old[len(old)-1] != '\n' {
			old = append(old, '\n')
		}
		return append(old, line+"\n"...), nil
	})
}

// write makes a change, or says what it would be.
func (s *setting) write(change *rewrite.Change) error {
	if !change.Needed() {
		return nil
	}
	if s.DryRun {
		s.say("would write %s", change.Path)
		return nil
	}
	backup, err := change.Write(s.Now())
	if err != nil {
		return err
	}
	s.say("Wrote %s", change.Path)
	if backup != "" {
		s.say("The old one is %s", backup)
	}
	return nil
}

func (s *setting) serveArgs() []string {
	if s.Default {
		return nil
	}
	return []string{"--config", s.Config}
}

// serve installs the service, if it is wanted.
func (s *setting) serve(ctx context.Context, cli string, settings config.Serve) error {
	s.say("")
	install := !s.NoService
	if install {
		var err error
		if install, err = s.confirm("Install the service, so that it runs whenever you are logged in?", true); err != nil {
			return err
		}
	}
	started := false
	if install {
		s.sayCredentials()
		var err error
		if started, err = s.install(ctx, cli); err != nil {
			return err
		}
	}
	switch {
	case !started:
		s.say("Start it with:  %s", strings.Join(append([]string{"ocp", "serve"}, s.serveArgs()...), " "))
	case s.Answers(ctx, URL(settings.Listen, settings.TLSCert != "")):
		s.say("ok    it answers on %s", settings.Listen)
	default:
		s.say("It does not answer on %s yet. Its log, and `ocp doctor`, say why.", settings.Listen)
	}
	return nil
}

// sayCredentials says how a service gets a credential that only this environment has.
func (s *setting) sayCredentials() {
	for _, name := range []string{"CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OCP_API_KEY"} {
		if s.machine.Env[name] == "" {
			continue
		}
		s.say("%s is in this environment and not in the service's. To give it the service:\n"+
			"  (umask 077; printenv %s | sed 's/^/%s=/' >>%s)", name, name, name, filepath.Join(s.machine.Home, ".config", "ocp", "env"))
	}
}

// sayClients tells what clients are told.
func (s *setting) sayClients(settings config.Serve) {
	key := "any, such as unused"
	if settings.APIKeyFile != "" || len(settings.APIKey) > 0 || settings.StoredKeys {
		key = "one of your keys"
	}
	url := URL(settings.Listen, settings.TLSCert != "")
	auth := ""
	if key == "one of your keys" {
		auth = " -H \"Authorization: Bearer $KEY\""
	}
	s.say(`
Clients of OpenAI's API:     base URL %[1]s/v1
Clients of Anthropic's API:  base URL %[1]s
API key: %[2]s. Models: opus, sonnet, haiku, or any name that the CLI knows.
`+"`ocp connect`"+` has the settings of some programs. Try it:

  curl -N %[1]s/v1/chat/completions -H 'Content-Type: application/json'%[3]s \
    -d '{"model":"sonnet","stream":true,"messages":[{"role":"user","content":"Hello"}]}'
`, url, key, auth)
}
