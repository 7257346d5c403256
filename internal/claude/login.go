package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Login is what can be told offline of how sessions would log in. No secret is in it.
type Login struct {
	Variable   string // the credential of the environment that sessions get; empty if none
	KeyRefused bool   // it is an API key that the operator has told the CLI not to use

	// The operator's configuration, which sessions use if there is no Variable.
	ConfigDir  string
	ConfigFile string   // .claude.json
	Faults     []string // why it cannot be used
	Exposed    []string // files with secrets in it that others can read

	Subscription bool      // there is a login to a subscription
	Expires      time.Time // of its access token; zero if it does not say
	Renewable    bool      // the CLI can renew it by itself
	ConsoleKey   bool      // there is a key of a login to the Console
	Keychain     bool      // this system keeps logins where they cannot be seen
}

// Found reports whether something of a login was found, or may be where it cannot be seen.
func (l Login) Found() bool {
	return l.Variable != "" || l.Subscription || l.ConsoleKey || l.Keychain
}

// credentialsFile is where the CLI keeps a login in its configuration directory.
const credentialsFile = ".credentials.json"

// FindLogin looks at the environment and at the operator's configuration. It changes
// nothing.
func FindLogin(env []string) Login {
	l := Login{ConfigDir: operatorConfig(env), ConfigFile: configFile(env), Keychain: runtime.GOOS == "darwin"}
	for _, name := range credentials {
		if _, ok := lookup(env, name); ok {
			l.Variable = name
			break
		}
	}
	l.readConfig(env)
	l.readCredentials()
	// Transcripts go there.
	if err := unix.Access(l.ConfigDir, unix.W_OK|unix.X_OK); err != nil && !errors.Is(err, unix.ENOENT) {
		l.Faults = append(l.Faults, fmt.Sprintf("%s cannot be written to: %v", l.ConfigDir, err))
	}
	return l
}

// readConfig reads what of .claude.json has to do with a login. What the operator has
// refused can also lie in the configuration directory: there the CLI keeps the file of
// those who name that directory to it.
func (l *Login) readConfig(env []string) {
	var config struct {
		PrimaryAPIKey         string `json:"primaryApiKey"`
		CustomAPIKeyResponses struct{ Rejected []string }
	}
	l.read(l.ConfigFile, &config)
	if l.ConsoleKey = config.PrimaryAPIKey != ""; l.ConsoleKey {
		l.noteExposed(l.ConfigFile)
	}
	key, ok := lookup(env, "ANTHROPIC_API_KEY")
	if !ok {
		return
	}
	refused := config.CustomAPIKeyResponses.Rejected
	if other := filepath.Join(l.ConfigDir, ".claude.json"); other != l.ConfigFile {
		config.CustomAPIKeyResponses.Rejected = nil
		if data, err := os.ReadFile(other); err == nil && json.Unmarshal(data, &config) == nil {
			refused = append(refused, config.CustomAPIKeyResponses.Rejected...)
		}
	}
	l.KeyRefused = slices.Contains(refused, keyTail(key))
}

func (l *Login) readCredentials() {
	var stored struct {
		OAuth *struct {
			AccessToken, RefreshToken string
			ExpiresAt                 int64 // in milliseconds
		} `json:"claudeAiOauth"`
	}
	file := filepath.Join(l.ConfigDir, credentialsFile)
	if !l.read(file, &stored) {
		return
	}
	l.noteExposed(file)
	if stored.OAuth == nil || stored.OAuth.AccessToken == "" {
		return
	}
	l.Subscription, l.Renewable = true, stored.OAuth.RefreshToken != ""
	if stored.OAuth.ExpiresAt > 0 {
		l.Expires = time.UnixMilli(stored.OAuth.ExpiresAt)
	}
}

// read reports whether the file is there and could be read. Its content is in no fault.
func (l *Login) read(path string, into any) bool {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false
	case err != nil:
		l.Faults = append(l.Faults, err.Error())
		return false
	}
	if err := json.Unmarshal(data, into); err != nil {
		l.Faults = append(l.Faults, path+" is not the JSON it should be")
		return false
	}
	return true
}

func (l *Login) noteExposed(path string) {
	if info, err := os.Stat(path); err == nil && info.Mode()&0o077 != 0 {
		l.Exposed = append(l.Exposed, path)
	}
}

// keyTail is what the CLI keeps of an API key to know it again.
func keyTail(key string) string { return key[max(0, len(key)-approvedTail):] }

// remotePolicy is where the CLI keeps the settings that an organisation has sent it.
const remotePolicy = "remote-settings.json"

// CopyConfig copies into a folder what of the operator's configuration decides how a
// session starts, and nothing of the login. Sessions with that folder as CLAUDE_CONFIG_DIR,
// and home in it as HOME, write nothing into the operator's.
func CopyConfig(env []string, dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "home"), 0o700); err != nil {
		return fmt.Errorf("copy configuration: %w", err)
	}
	for from, name := range map[string]string{
		configFile(env): ".claude.json",
		filepath.Join(operatorConfig(env), remotePolicy): remotePolicy,
	} {
		data, err := os.ReadFile(from)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			data, err = withoutSecrets(data)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			return fmt.Errorf("copy configuration: %w", err)
		}
	}
	return nil
}

// withoutSecrets leaves out the key of a login to the Console, and the servers and
// projects, whose settings may hold others.
func withoutSecrets(config []byte) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(config, &all); err != nil {
		return nil, errors.New("it is not the JSON it should be")
	}
	for name := range all {
		if slices.Contains([]string{"primaryApiKey", "mcpServers", "projects"}, name) || strings.Contains(strings.ToLower(name), "token") {
			delete(all, name)
		}
	}
	return json.Marshal(all)
}
