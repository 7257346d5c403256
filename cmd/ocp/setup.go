package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"ocp/internal/claude"
	"ocp/internal/config"
	"ocp/internal/probe"
	"ocp/internal/setup"
)

// setupCommand brings ocp onto a machine.
type setupCommand struct {
	Yes       bool   `help:"Ask nothing: take what is there, or the defaults."`
	DryRun    bool   `help:"Say what would be done, and change nothing. It asks nothing either."`
	NoService bool   `help:"Install no service."`
	Config    string `placeholder:"FILE" help:"The settings file. Default: ~/.config/ocp/config.toml."`

	Listen      string `placeholder:"HOST:PORT" env:"-" help:"Write this address into the settings."`
	Concurrency int    `placeholder:"N" env:"-" help:"Write this number of turns at once into the settings."`
	Claude      string `placeholder:"PATH" env:"-" help:"Write this path of the claude binary into the settings."`
}

// answerTimeout is how long a service may take until it answers.
const answerTimeout = 10 * time.Second

func (c *setupCommand) Run(ctx context.Context, p program, app *kong.Kong) error {
	home := claude.Variable(p.env, "HOME")
	self, err := os.Executable()
	if err == nil && home == "" {
		err = errors.New("the environment has no HOME to set ocp up in")
	}
	if err != nil {
		return err
	}
	m := setup.Machine{OS: runtime.GOOS, UID: os.Getuid(), Home: home, Env: envMap(p.env), Self: self, Run: runProgram(p.env)}
	return setup.Run(ctx, m, c.options(p, app), p.stdin, p.stdout)
}

func (c *setupCommand) options(p program, app *kong.Kong) setup.Options {
	byDefault := config.DefaultFile(func(name string) string { return claude.Variable(p.env, name) })
	o := setup.Options{
		Yes: c.Yes || c.DryRun, DryRun: c.DryRun, NoService: c.NoService,
		Config: c.Config, Keys: shownKeys(app.Model), Given: map[string]any{},
		Parse:   func(content []byte) (config.Serve, error) { return parseSettings(p, content) },
		Answers: answers, Now: time.Now,
		Look: func(ctx context.Context, s config.Serve) *probe.Setup {
			return probe.Look(ctx, s, probe.Surroundings{Env: p.env})
		},
	}
	if o.Config == "" {
		o.Config = byDefault
	} else if abs, err := filepath.Abs(o.Config); err == nil {
		o.Config = abs // of the service, too
	}
	o.Default = o.Config == byDefault
	for _, flag := range settingFlags(app.Model) {
		// A service has not this environment. Keys of clients are not written down in clear.
		for _, name := range flag.Envs {
			if value, set := os.LookupEnv(name); set && flag.Name != "api-key" {
				o.Given[flag.Name] = asTOML(flag, value)
			}
		}
	}
	if c.Listen != "" {
		o.Given["listen"] = c.Listen
	}
	if c.Concurrency != 0 {
		o.Given["concurrency"] = c.Concurrency
	}
	if c.Claude != "" {
		o.Given["claude"] = c.Claude
	}
	if named, ok := o.Given["claude"].(string); ok && named != "" {
		if abs, err := filepath.Abs(named); err == nil {
			o.Given["claude"] = abs
		}
	}
	return o
}

// asTOML is the value of a variable as a settings file has it.
func asTOML(flag *kong.Flag, value string) any {
	if flag.IsSlice() {
		return kong.SplitEscaped(value, flag.Tag.Sep)
	}
	if n, err := strconv.Atoi(value); err == nil && flag.Target.CanInt() {
		return n
	}
	if b, err := strconv.ParseBool(value); err == nil && flag.IsBool() {
		return b
	}
	return value
}

// shownKeys are all settings, each with its default as TOML.
func shownKeys(app *kong.Application) []setup.Key {
	var keys []setup.Key
	for _, flag := range settingFlags(app) {
		shown := `"` + flag.Default + `"`
		switch {
		case flag.IsSlice():
			shown = "[]"
		case flag.IsBool() && flag.Default == "":
			shown = "false"
		case flag.IsBool(), flag.IsCounter():
			shown = flag.Default
		case strings.Trim(flag.Default, "0123456789") == "" && flag.Default != "":
			shown = flag.Default
		}
		keys = append(keys, setup.Key{Name: flag.Name, Help: flag.Help, Default: shown})
	}
	return keys
}

// parseSettings is what serve makes of a settings file.
func parseSettings(p program, content []byte) (config.Serve, error) {
	file, err := os.CreateTemp("", "ocp-settings-")
	if err != nil {
		return config.Serve{}, err
	}
	defer os.Remove(file.Name())
	if _, err = file.Write(content); errors.Join(err, file.Close()) != nil {
		return config.Serve{}, err
	}
	var c commands
	parser, err := newParser(&c, program{stdout: io.Discard, stderr: io.Discard, env: p.env})
	if err != nil {
		return config.Serve{}, err
	}
	if _, err := parser.Parse([]string{"serve", "--config", file.Name()}); err != nil {
		return config.Serve{}, errors.New(strings.ReplaceAll(err.Error(), file.Name()+": ", ""))
	}
	c.Serve.StoredKeys, err = storedKeys(c.Serve.Serve, p.env)
	return c.Serve.Serve, err
}

func envMap(env []string) map[string]string {
	all := map[string]string{}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		all[name] = value
	}
	return all
}

func runProgram(env []string) func(ctx context.Context, name string, args ...string) (string, error) {
	return func(ctx context.Context, name string, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if said := strings.TrimSpace(string(out)); err != nil && said != "" {
			err = fmt.Errorf("%s", said)
		}
		return string(out), err
	}
}

// answers reports whether ocp serves at a URL, and waits for it a while.
func answers(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		// The certificate is for other names than that of loopback, and nothing secret is sent.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/healthz", nil)
		if err != nil {
			return false
		}
		if resp, err := client.Do(req); err == nil {
			_ = resp.Body.Close()
			return resp.StatusCode == http.StatusOK
		}
		select {
		case <-ctx.Done():
			return false
		case <-again.C:
		}
	}
}
