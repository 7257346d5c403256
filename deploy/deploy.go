// Package deploy holds the files that run OCP as a service, as they lie in its folder, and
// fits them to a machine.
package deploy

import (
	_ "embed"
	"encoding/xml"
	"strings"
)

//go:embed systemd/user/ocp.service
var userUnit string

//go:embed launchd/local.ocp.plist
var launchAgent string

// Label is the name of the agent of macOS.
const Label = "local.ocp"

// Place is what of a service depends on the machine.
type Place struct {
	Home   string   // of the user
	Binary string   // absolute path of ocp
	Args   []string // of serve
	Path   []string // folders for PATH
}

// UserUnit is the unit of systemd for a user's own service manager.
func UserUnit(p Place) string {
	command := []string{systemdWord(p.Binary), "serve"}
	for _, arg := range p.Args {
		command = append(command, systemdWord(arg))
	}
	return strings.NewReplacer(
		"ExecStart=%h/.local/bin/ocp serve\n", "ExecStart="+strings.Join(command, " ")+"\n",
		"Environment=PATH=%h/.local/bin:/usr/local/bin:/usr/bin:/bin\n", "Environment="+systemdWord("PATH="+strings.Join(p.Path, ":"))+"\n",
	).Replace(userUnit)
}

// systemdWord quotes a word of a unit: %, $, quotes and backslashes stand for themselves.
func systemdWord(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$", "\n", `\n`).Replace(word) + `"`
}

// LaunchAgent is the property list of launchd for a user's agent.
func LaunchAgent(p Place) string {
	args := ""
	for _, arg := range p.Args {
		args += "\n\t\t<string>" + xmlText(arg) + "</string>"
	}
	return strings.NewReplacer(
		`exec "$0" serve</string>`, `exec "$0" serve "$@"</string>`,
		"<string>/Users/you/.local/bin/ocp</string>", "<string>"+xmlText(p.Binary)+"</string>"+args,
		"/Users/you/.local/bin:/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin", xmlText(strings.Join(p.Path, ":")),
		"/Users/you", xmlText(p.Home),
	).Replace(launchAgent)
}

func xmlText(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder takes all
	return b.String()
}
