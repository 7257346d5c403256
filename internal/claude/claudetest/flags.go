package claudetest

import (
	"fmt"
	"strings"
)

// flags are the command line's values by flag; a flag without a value is there with an
// empty one.
type flags map[string]string

// knownFlags are the CLI's flags that a launcher may use, and whether they take a value.
var knownFlags = map[string]bool{
	"--resume": true, "--system-prompt-file": true, "--settings": true, "--setting-sources": true,
	"--tools": true, "--allowedTools": true, "--mcp-config": true, "--permission-mode": true,
	"--name": true, "--model": true, "--effort": true,
	"--strict-mcp-config": false, "--disable-slash-commands": false,
	"--bare": false, "--verbose": false, "--session-mirror": false, "-p": false, "--include-partial-messages": false,
	"--debug-file": true, "--output-format": true, "--input-format": true, "--sdk-url": true,
}

// promptArgument stands for the argument that is no flag.
const promptArgument = "prompt"

// parseFlags refuses what it does not know, as the CLI does.
func parseFlags(args []string) (flags, error) {
	found := flags{}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		takes, known := knownFlags[name]
		switch {
		case !known && !strings.HasPrefix(args[i], "-"):
			name, value = promptArgument, args[i]
		case !known || joined && !takes:
			return nil, fmt.Errorf("unknown option '%s'", name)
		case takes && !joined:
			if i++; i == len(args) {
				return nil, fmt.Errorf("option '%s' argument missing", name)
			}
			value = args[i]
		}
		found[name] = value
	}
	return found, nil
}
