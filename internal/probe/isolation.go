package probe

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"ocp/internal/messagesapi"
)

func isolationProbes() []probe {
	return []probe{{name: "isolation", run: probeIsolation, claims: []Claim{
		{ID: "inert-shell", Relied: true, Text: "a message that begins with ! runs nothing on the machine", Use: "gives conversations as transcripts; nothing is typed but what is provably safe"},
		{ID: "inert-mention", Relied: true, Text: "@ and a file's path send nothing of the file", Use: "sets CLAUDE_CODE_DISABLE_ATTACHMENTS"},
		{ID: "inert-command", Relied: true, Text: "a message that is /exit is text to the model", Use: "gives conversations as transcripts"},
	}}}
}

func probeIsolation(ctx context.Context, e *Env, dir string) (seen, error) {
	l, err := e.open(dir, messagesapi.Always(messagesapi.TextAnswer("Yes.\n")), laneOptions{})
	if err != nil {
		return nil, err
	}
	found, err := l.isolation(ctx, dir)
	return found, errors.Join(err, l.close())
}

func (l *lane) isolation(ctx context.Context, dir string) (seen, error) {
	const secret = "what the file holds and nobody may see"
	marker, file := filepath.Join(dir, "marker"), filepath.Join(dir, "secret.txt")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		return nil, err
	}
	found := seen{}
	shell := row{id: "inert-shell", conversation: say("!touch " + marker)}
	a, err := l.ask(ctx, shell.conversation)
	if err != nil {
		return found, err
	}
	shell.judge(found, a)
	if _, err := os.Stat(marker); !errors.Is(err, fs.ErrNotExist) {
		found.say("inert-shell", false, "the command was run")
	}

	mention := row{id: "inert-mention", conversation: say("What is in @" + file + " please?")}
	if a, err = l.ask(ctx, mention.conversation); err != nil {
		return found, err
	}
	mention.judge(found, a)
	for _, r := range a.all {
		if bytes.Contains(r.Body, []byte(secret)) {
			found.say("inert-mention", false, "the file was sent")
		}
	}

	command := row{id: "inert-command", conversation: say("/exit")}
	if a, err = l.ask(ctx, command.conversation); err != nil {
		return found, err
	}
	command.judge(found, a)
	return found, nil
}
