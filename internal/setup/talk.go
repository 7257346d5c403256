package setup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// talk is the conversation with the person at the terminal.
type talk struct {
	in  *bufio.Reader
	out io.Writer
	yes bool // no questions: the answer to each is its default
}

func (t *talk) say(format string, args ...any) { fmt.Fprintf(t.out, format+"\n", args...) }

// ask returns the answer, or the default if it is empty.
func (t *talk) ask(question, byDefault string) (string, error) {
	if t.yes {
		return byDefault, nil
	}
	fmt.Fprintf(t.out, "%s [%s] ", question, byDefault)
	line, err := t.in.ReadString('\n')
	if err != nil && line == "" {
		fmt.Fprintln(t.out)
		return "", errors.New("nobody answers: run it in a terminal, or with --yes for no questions")
	}
	if line = strings.TrimSpace(line); line == "" {
		return byDefault, nil
	}
	return line, nil
}

// confirm asks until it is answered with yes or no.
func (t *talk) confirm(question string, byDefault bool) (bool, error) {
	shown := "y/N"
	if byDefault {
		shown = "Y/n"
	}
	if t.yes {
		return byDefault, nil
	}
	for {
		answer, err := t.ask(question, shown)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(answer) {
		case strings.ToLower(shown):
			return byDefault, nil
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
	}
}
