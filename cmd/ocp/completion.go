package main

import (
	"embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

//go:embed all:completion
var completions embed.FS

// completionCommand prints what a shell needs to complete command lines of ocp. The script
// asks `ocp complete`, so that it never knows other flags than the program does.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

func (c *completionCommand) Run(p program) error {
	names := map[string]string{"bash": "ocp.bash", "zsh": "_ocp", "fish": "ocp.fish"}
	script, err := completions.ReadFile("completion/" + names[c.Shell])
	if err != nil {
		return err
	}
	_, err = p.stdout.Write(script)
	return err
}

// completeCommand prints what a command line can go on with, one a line, each with a tab
// and a word on it; and :files where it is the name of a file.
type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"The words after ocp, the last one as far as it is typed."`
}

func (c *completeCommand) Run(p program, app *kong.Kong) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	return completeLine(p.stdout, app.Model.Node, words)
}

// completeLine walks the words down to the last, and prints what begins with that.
func completeLine(w io.Writer, node *kong.Node, words []string) error {
	flags := slices.Clone(node.Flags)
	var waits *kong.Flag // for its value, which is the next word
	place := 0           // of the next argument
	last := words[len(words)-1]
	for _, word := range words[:len(words)-1] {
		switch {
		case waits != nil && word == "=": // bash splits words there
			continue
		case waits != nil:
			waits = nil
		case strings.HasPrefix(word, "-"):
			if name, _, whole := strings.Cut(word, "="); !whole {
				waits = valued(flags, name)
			}
		default:
			if child := childOf(node, word); child != nil {
				node, place = child, 0
				flags = append(flags, node.Flags...)
			} else {
				place++
			}
		}
	}
	if last == "=" && waits != nil {
		last = ""
	}
	name, begun, whole := strings.Cut(last, "=")
	switch {
	case waits != nil:
		return completeValue(w, waits.Value, "", last)
	case whole && valued(flags, name) != nil:
		return completeValue(w, valued(flags, name).Value, name+"=", begun)
	case strings.HasPrefix(last, "-"):
		return completeFlag(w, flags, last)
	case place < len(node.Positional):
		return completeValue(w, node.Positional[place], "", last)
	}
	for _, child := range node.Children {
		if !child.Hidden && strings.HasPrefix(child.Name, last) {
			if _, err := fmt.Fprintf(w, "%s\t%s\n", child.Name, firstSentence(child.Help)); err != nil {
				return err
			}
		}
	}
	return nil
}

// valued is the flag of a name that wants a value; nil if there is none.
func valued(flags []*kong.Flag, name string) *kong.Flag {
	i := slices.IndexFunc(flags, func(f *kong.Flag) bool { return "--"+f.Name == name && !f.IsBool() })
	if i < 0 {
		return nil
	}
	return flags[i]
}

func childOf(node *kong.Node, name string) *kong.Node {
	i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return node.Children[i]
}

func completeFlag(w io.Writer, flags []*kong.Flag, begun string) error {
	for _, flag := range flags {
		helps := map[string]string{"--" + flag.Name: firstSentence(flag.Help)}
		if flag.Tag.Negatable != "" {
			helps["--no-"+flag.Name] = "Not: " + firstSentence(flag.Help)
		}
		for _, name := range slices.Sorted(maps.Keys(helps)) {
			if flag.Hidden || !strings.HasPrefix(name, begun) {
				continue
			}
			if _, err := fmt.Fprintf(w, "%s\t%s\n", name, helps[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

func completeValue(w io.Writer, value *kong.Value, before, begun string) error {
	if value.Enum == "" {
		place := ""
		if value.Flag != nil {
			place = value.Flag.PlaceHolder
		}
		if slices.Contains([]string{"FILE", "DIR", "PATH"}, place) {
			_, err := fmt.Fprintln(w, ":files")
			return err
		}
		return nil
	}
	for one := range strings.SplitSeq(value.Enum, ",") {
		if one = strings.TrimSpace(one); one == "" || !strings.HasPrefix(one, begun) {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s%s\t\n", before, one); err != nil {
			return err
		}
	}
	return nil
}

func firstSentence(help string) string {
	before, _, _ := strings.Cut(help, ". ")
	return strings.TrimSuffix(before, ".")
}
