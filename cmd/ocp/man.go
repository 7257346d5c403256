package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// manCommand prints the man page, made of the help that the commands have.
type manCommand struct{}

func (manCommand) Run(p program, app *kong.Kong) error {
	_, err := p.stdout.Write([]byte(manPage(app.Model)))
	return err
}

// manPage is a page of section 1 in the language of man(7). No date is in it, so that the
// same program has the same page.
func manPage(app *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH OCP 1 \"\" \"ocp %s\" \"User Commands\"\n", roff(version()))
	fmt.Fprintf(&b, ".SH NAME\nocp \\- Claude over the OpenAI and Anthropic HTTP APIs\n")
	b.WriteString(".SH SYNOPSIS\n.B ocp\n.I COMMAND\n.RI [ FLAGS ]\n")
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roff(app.Help))
	b.WriteString(".SH COMMANDS\n")
	manCommands(&b, app.Node)
	b.WriteString(`.SH FILES
.TP
.I ~/.config/ocp/config.toml
Settings of serve and doctor: TOML of lines such as listen = "127.0.0.1:3456", keys named as the flags.
.TP
.I ~/.config/ocp/env
Variables of the service that
.B ocp setup
installs, such as a token for sessions.
.TP
.I ~/.local/state/ocp
The state directory.
.SH ENVIRONMENT
Every flag has a variable, named with it. A flag goes before its variable, that before the settings file, that before the default. ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN and CLAUDE_CODE_OAUTH_TOKEN reach the sessions, as does ANTHROPIC_BASE_URL.
.SH EXIT STATUS
0; 1 if the command failed; 2 if the command line cannot be.
`)
	return b.String()
}

// manCommands writes the commands below a node, each with its flags.
func manCommands(b *strings.Builder, node *kong.Node) {
	for _, command := range node.Children {
		if command.Hidden {
			continue
		}
		fmt.Fprintf(b, ".SS %s\n%s\n", roff("ocp "+command.Summary()), roff(command.Help))
		for _, argument := range command.Positional {
			fmt.Fprintf(b, ".TP\n.I %s\n%s\n", roff(argument.Name), roff(argument.Help))
		}
		for _, flag := range command.Flags {
			if flag.Hidden {
				continue
			}
			fmt.Fprintf(b, ".TP\n.B %s\n%s", roff(manFlag(flag)), roff(flag.Help))
			if len(flag.Envs) > 0 {
				fmt.Fprintf(b, " ($%s)", flag.Envs[0])
			}
			b.WriteString("\n")
		}
		manCommands(b, command)
	}
}

func manFlag(flag *kong.Flag) string {
	name := flag.Name
	if flag.Tag.Negatable != "" {
		name = "[no-]" + name
	}
	if flag.IsBool() {
		return "--" + name
	}
	return "--" + name + "=" + flag.FormatPlaceHolder()
}

// roff makes a text stand for itself: no backslash, hyphen or beginning of a line is a
// command.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "~", `\(ti`, "^", `\(ha`, "\n", " ").Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
