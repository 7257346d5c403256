// Package connect knows how programs are pointed at OCP: what their settings are, where
// they lie, and how they get into a file of which all else stays. It writes no file.
package connect

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// NoKey is what programs are given that want a key where OCP wants none.
const NoKey = "unused"

// Settings are what a program needs to know.
type Settings struct {
	URL   string // of OCP, without a path
	Model string
	Key   string // empty for none
}

// Normalize checks the settings and brings the URL into its form: with or without /v1 it is
// the same.
func (s Settings) Normalize() (Settings, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return s, fmt.Errorf("--url: %q is not a URL such as http://127.0.0.1:3456", s.URL)
	}
	if u.User != nil {
		return s, errors.New("--url: it has a name or password in it; keys are given by --api-key")
	}
	s.URL = strings.TrimRight(strings.TrimSuffix(strings.TrimRight(s.URL, "/"), "/v1"), "/")
	if s.Model == "" || !utf8.ValidString(s.Model) || strings.ContainsFunc(s.Model, unicode.IsControl) {
		return s, fmt.Errorf("--model: %q is not the name of a model", s.Model)
	}
	if strings.ContainsFunc(s.Key, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ',' }) {
		return s, errors.New("--api-key (OCP_API_KEY): give one key, without white space, commas and letters beyond ASCII")
	}
	return s, nil
}

func (s Settings) openai() string { return s.URL + "/v1" }

func (s Settings) key() string {
	if s.Key == "" {
		return NoKey
	}
	return s.Key
}

// Client is a program that can be pointed at OCP.
type Client struct {
	Name  string // of the command line
	Title string
	Tried bool   // docs/clients.md says with which versions
	Where string // where the settings belong
	// Show is what belongs there.
	Show func(Settings) string
	// Files are where its settings file may lie, the one to make first; nil if it has
	// none that is a person's to write.
	Files func(home, configHome string) []string
	// Edit puts the settings into the file; nil if there is none. Old is nil for no file.
	Edit func(old []byte, s Settings) ([]byte, error)
}

// Clients are all that are known.
func Clients() []Client {
	return []Client{
		{
			Name: "opencode", Title: "opencode", Tried: true,
			Where: "~/.config/opencode/opencode.json, or a project's opencode.json",
			Show:  showOpencode, Edit: editOpencode,
			Files: func(_, config string) []string {
				dir := filepath.Join(config, "opencode")
				return []string{filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc")}
			},
		},
		{
			Name: "continue", Title: "Continue",
			Where: "~/.continue/config.yaml",
			Show:  showContinue, Edit: editContinue,
			Files: func(home, _ string) []string { return []string{filepath.Join(home, ".continue", "config.yaml")} },
		},
		{
			Name: "cline", Title: "Cline",
			Where: "Cline's settings, API Configuration",
			Show:  showCline,
		},
		{
			Name: "aider", Title: "aider",
			Where: "~/.aider.conf.yml, or a project's",
			Show:  showAider, Edit: editAider,
			Files: func(home, _ string) []string { return []string{filepath.Join(home, ".aider.conf.yml")} },
		},
		{
			Name: "open-webui", Title: "Open WebUI",
			Where: "Open WebUI's settings, Connections, OpenAI API; or its environment before its first start",
			Show:  showOpenWebUI,
		},
	}
}

// Find returns the client of a name.
func Find(name string) (Client, bool) {
	all := Clients()
	i := slices.IndexFunc(all, func(c Client) bool { return c.Name == name })
	if i < 0 {
		return Client{}, false
	}
	return all[i], true
}

func showCline(s Settings) string {
	return fmt.Sprintf("API Provider: OpenAI Compatible\nBase URL:     %s\nAPI key:      %s\nModel ID:     %s\n", s.openai(), s.key(), s.Model)
}

func showOpenWebUI(s Settings) string {
	return fmt.Sprintf("OPENAI_API_BASE_URL=%s\nOPENAI_API_KEY=%s\n", s.openai(), s.key())
}
