package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"ocp/internal/claude"
	"ocp/internal/connect"
	"ocp/internal/rewrite"
	"ocp/internal/setup"
)

// connectCommand points other programs at ocp.
type connectCommand struct {
	Client string `arg:"" optional:"" enum:"opencode,continue,cline,aider,open-webui," default:"" help:"The program: opencode, continue, cline, aider or open-webui. Without it they are listed."`

	URL    string `name:"url" placeholder:"URL" help:"Where the program reaches ocp. Default: the address of the settings file, or http://127.0.0.1:3456."`
	Model  string `default:"sonnet" help:"The model that the program asks for."`
	APIKey string `name:"api-key" placeholder:"KEY" help:"The key to write into the settings, in clear. Without it: 'unused', which will do on loopback."`
	Write  bool   `help:"Show the change of the program's settings file as a diff, and make it. The old file is kept beside it."`
}

func (c *connectCommand) Run(p program, app *kong.Kong) error {
	if c.Client == "" {
		return listClients(p.stdout)
	}
	client, _ := connect.Find(c.Client) // the command line allows no other
	url := c.URL
	if url == "" {
		var err error
		if url, err = ownURL(app.Model, p); err != nil {
			return err
		}
	}
	s, err := connect.Settings{URL: url, Model: c.Model, Key: c.APIKey}.Normalize()
	if err != nil {
		return err
	}
	if c.Write {
		return c.write(p, client, s)
	}
	fmt.Fprintf(p.stdout, "%s\n\n", client.Where)
	for line := range strings.Lines(client.Show(s)) {
		fmt.Fprintf(p.stdout, "    %s", line)
	}
	if client.Edit != nil {
		fmt.Fprintf(p.stdout, "\n`ocp connect %s --write` puts it there: it shows a diff, and keeps the old file.\n", client.Name)
	}
	return nil
}

// write shows the change and makes it.
func (c *connectCommand) write(p program, client connect.Client, s connect.Settings) error {
	if client.Edit == nil {
		return fmt.Errorf("--write: the settings of %s are not in a file to be written: `ocp connect %s` shows them", client.Title, client.Name)
	}
	home := claude.Variable(p.env, "HOME")
	if home == "" {
		return errors.New("the environment has no HOME to find the settings in")
	}
	configHome := claude.Variable(p.env, "XDG_CONFIG_HOME")
	if !filepath.IsAbs(configHome) {
		configHome = filepath.Join(home, ".config")
	}
	paths := client.Files(home, configHome)
	path := paths[0]
	for _, other := range paths[1:] {
		if _, err := os.Stat(other); err == nil {
			path = other
		}
	}
	change, err := rewrite.Plan(path, 0o600, func(old []byte) ([]byte, error) { return client.Edit(old, s) })
	if err != nil {
		return err
	}
	if !change.Needed() {
		fmt.Fprintf(p.stdout, "%s is as it should be.\n", path)
		return nil
	}
	diff := change.Diff()
	if s.Key != "" {
		diff = strings.ReplaceAll(diff, s.Key, "(the key)")
	}
	fmt.Fprint(p.stdout, diff)
	backup, err := change.Write(time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "\nWrote %s\n", path)
	if backup != "" {
		fmt.Fprintf(p.stdout, "The old one is %s\n", backup)
	}
	if info, err := os.Stat(path); err == nil && s.Key != "" && info.Mode()&0o077 != 0 {
		fmt.Fprintf(p.stderr, "ocp: others can read the key in it: chmod 600 %s\n", path)
	}
	return nil
}

// ownURL is where the serve of the settings file is reached.
func ownURL(app *kong.Application, p program) (string, error) {
	listen, tls := "127.0.0.1:3456", false
	file, err := readConfig(app, p, claude.Variable(p.env, "OCP_CONFIG"))
	if err != nil {
		return "", err
	}
	if file != nil {
		if line, ok := file.Line("listen"); ok {
			listen, _ = line.Value.(string)
		}
		_, tls = file.Line("tls-cert")
	}
	return setup.URL(listen, tls), nil
}

func listClients(w io.Writer) error {
	for _, c := range connect.Clients() {
		tried := "untried"
		if c.Tried {
			tried = "tried"
		}
		if _, err := fmt.Fprintf(w, "%-11s %-8s %s\n", c.Name, tried, c.Where); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, "\n`ocp connect CLIENT` shows the settings of one; docs/clients.md has those of SDKs.")
	return err
}
