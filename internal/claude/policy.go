package claude

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Policy is what managed settings, which go before all others, say of hooks and proxies.
type Policy struct {
	Files   []string // that were found
	NoHooks string   // the setting that forbids all of ocp's hooks; empty if none
	NoHTTP  bool     // http hooks are limited to a list of addresses
	Proxies []string // names of proxy variables that it sets
	Helper  bool     // it gives the CLI its keys
}

// policyDir is where the CLI takes an administrator's settings from.
func policyDir() string {
	if runtime.GOOS == "darwin" {
		return "/Library/Application Support/ClaudeCode"
	}
	return "/etc/claude-code"
}

// FindPolicy reads the managed settings of this machine and those that the CLI has
// received from the operator's organisation. What cannot be read counts as found only.
func FindPolicy(env []string) Policy {
	files, _ := filepath.Glob(filepath.Join(policyDir(), "managed-settings.d", "*.json"))
	files = append(files, filepath.Join(policyDir(), "managed-settings.json"), filepath.Join(operatorConfig(env), remotePolicy))
	return readPolicy(files)
}

func readPolicy(files []string) Policy {
	var p Policy
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			continue
		}
		p.Files = append(p.Files, file)
		var settings struct {
			DisableAllHooks       bool
			AllowManagedHooksOnly bool
			AllowedHTTPHookURLs   *[]string `json:"allowedHttpHookUrls"`
			APIKeyHelper          string    `json:"apiKeyHelper"`
			Env                   map[string]string
		}
		data, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(data, &settings) != nil {
			continue
		}
		switch {
		case settings.DisableAllHooks:
			p.NoHooks = "disableAllHooks"
		case settings.AllowManagedHooksOnly:
			p.NoHooks = "allowManagedHooksOnly"
		}
		p.NoHTTP = p.NoHTTP || settings.AllowedHTTPHookURLs != nil
		p.Helper = p.Helper || settings.APIKeyHelper != ""
		p.Proxies = append(p.Proxies, proxiesIn(slices.Sorted(maps.Keys(settings.Env)))...)
	}
	return p
}

// Proxies are the names of the proxy variables that are set in an environment.
func Proxies(env []string) []string {
	var set []string
	for _, v := range env {
		if name, value, _ := strings.Cut(v, "="); value != "" {
			set = append(set, name)
		}
	}
	return proxiesIn(set)
}

func proxiesIn(names []string) []string {
	var found []string
	for _, name := range names {
		switch strings.ToUpper(name) {
		case "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY":
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
