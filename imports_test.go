// Package ocp_test checks the architecture: which packages there are, what each of them
// may import, and what the program may depend on.
package ocp_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "ocp"

// house lists every package of the module and what it may import of ours. Names are
// import paths without "ocp/" and "internal/". An edge that is not here is a mistake,
// or a change of the architecture that starts with a reason and a change of this table.
var house = map[string][]string{
	// The program: parses the command, wires everything, maps errors to exit codes.
	"cmd/ocp": {
		"admission", "anthropic", "bench", "certificate", "claude", "config", "connect", "hook",
		"mcp", "messagesapi", "metrics", "openai", "pool", "probe", "prompt", "quota", "rewrite", "server",
		"setup", "statuspage", "store", "terminal", "terminal/tmux", "transcript",
		"turn", "watch",
	},

	// Typed settings.
	"config": {"quota"},

	// What clients use, against their limits. Pure.
	"quota": {},

	// Keys and usage on disk.
	"store": {"quota"},

	// The files that run ocp as a service, embedded where they lie.
	"deploy": {},

	// Changes of a person's own files: diff, backup. Pure but for the files.
	"rewrite": {},

	// The settings of other programs. Pure.
	"connect": {},

	// The settings file and the service of a machine.
	"setup": {"claude", "config", "deploy", "probe", "rewrite"},

	// One wire dialect each. A dialect encodes the events of a turn, and decodes a
	// request into a prompt.Conversation, which is why it knows prompt.
	"openai":    {"prompt", "turn", "wire"},
	"anthropic": {"prompt", "turn", "wire"},

	// What sessions show, for their operator to see.
	"watch": {},

	// What both dialects need of JSON, which neither should have from the other.
	"wire": {},

	// The conversation as the CLI is given it. Pure.
	"prompt": {},

	// The server of a client's tools inside a session.
	"mcp": {},

	// A program under a terminal: a pseudo-terminal, or a pane of tmux.
	"terminal":      {},
	"terminal/tmux": {"terminal"},

	// What any terminal must do. No row allows it: only test files may import it.
	"terminal/terminaltest": {"terminal"},

	// Hook events and their private receiver.
	"hook": {},

	// The JSONL transcript.
	"transcript": {},

	// One prompt and its answer. Pure.
	"turn": {"hook", "transcript"},

	// Everything known about the CLI.
	"claude": {"hook", "prompt", "terminal", "terminal/tmux", "transcript", "turn"},

	// What the tests of both dialects share. No row allows it: only test files may import
	// it.
	"dialecttest": {"turn"},

	// The programs that tests use. No row allows it: only test files may import it.
	"programtest": {},

	// What the official clients make of the dialects. Tests alone, apart from the
	// dialects' own because fuzzing those would compile the clients, for minutes.
	"clients": {"anthropic", "openai", "turn"},

	// Warm sessions, behind an interface of its own.
	"pool": {},

	// Bounded waiting. Pure.
	"admission": {},

	// The HTTP side. It declares what it needs of sessions and never sees one.
	"server": {"admission", "anthropic", "config", "openai", "prompt", "quota", "turn"},

	// What the server's observers make of turns, for Prometheus.
	"metrics": {"server", "turn"},

	// And for a person with a browser.
	"statuspage": {"server", "turn"},

	// What no client would send, over a socket. Tests alone, apart from the server's own
	// because fuzzing those would compile the official clients, for minutes.
	"hostile": {"admission", "config", "prompt", "server", "turn"},

	// Named checks with evidence and remedy. To see what a session's turn is made of, the
	// probes read hook calls and records themselves, and script the model.
	"probe": {"certificate", "claude", "config", "hook", "messagesapi", "prompt", "terminal", "terminal/tmux", "transcript", "turn"},

	// Figures of measured turns. Pure, and nothing of a check: so not in probe.
	"bench": {},

	// The server's TLS certificate.
	"certificate": {},

	// The scripted Messages API.
	"messagesapi": {},

	// The stand-in CLI. No row allows it: only test files may import it.
	"claude/claudetest": {"hook", "transcript"},

	// The tests on the real CLI, which know the program only from outside.
	// It also reads hook calls, to lose and shuffle them on their way.
	"e2e": {"messagesapi", "hook"},

	// The root of the module, which holds this test and no code.
	".": {},
}

// forTests lists what test files under internal and cmd may import besides their row.
var forTests = []string{"claude/claudetest", "dialecttest", "messagesapi", "programtest", "terminal/terminaltest"}

// testOnly lists modules that tests need and the program must never contain. The
// official clients alone would add 16 MB to it.
var testOnly = []string{
	"github.com/anthropics/anthropic-sdk-go",
	"github.com/chromedp/cdproto",
	"github.com/chromedp/chromedp",
	"github.com/google/go-cmp",
	"github.com/openai/openai-go",
	"github.com/rogpeppe/go-internal",
	"go.uber.org/goleak",
	"pgregory.net/rapid",
}

// nameless lists package names that say nothing about what is inside.
var nameless = []string{
	"common", "core", "engine", "helper", "helpers", "manager", "misc", "model", "models",
	"service", "shared", "type", "types", "util", "utils",
}

func TestImportsAreInTheTable(t *testing.T) {
	for pkg, row := range house {
		for _, dep := range row {
			if _, ok := house[dep]; !ok {
				t.Errorf("the row of %s allows %s, which is no package of the table", pkg, dep)
			}
		}
	}
	for _, file := range goFiles(t) {
		row, ok := house[file.pkg]
		if !ok {
			t.Errorf("%s: package %s is not in the table", file.path, file.pkg)
			continue
		}
		for _, dep := range file.imports {
			switch {
			case slices.Contains(row, dep):
			case file.test && dep == file.pkg:
			case file.test && file.pkg != "e2e" && slices.Contains(forTests, dep):
			default:
				t.Errorf("%s: package %s may not import %s", file.path, file.pkg, dep)
			}
		}
	}
}

func TestPackageNamesSaySomething(t *testing.T) {
	for _, file := range goFiles(t) {
		names := append(strings.Split(file.pkg, "/"), strings.TrimSuffix(file.name, "_test"))
		for _, name := range names {
			if slices.Contains(nameless, name) {
				t.Errorf("%s: %q says nothing about what is inside", file.path, name)
			}
		}
	}
}

func TestProgramContainsNoTestModules(t *testing.T) {
	isProgram := func(file goFile) bool { return file.pkg == "cmd/ocp" && !file.test }
	if !slices.ContainsFunc(goFiles(t), isProgram) {
		t.Skip("there is no program yet")
	}
	cmd := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}}", "./cmd/ocp")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("listing what the program is built of: %v\n%s", err, stderr.String())
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, module+"/cmd/ocp") {
		t.Fatalf("go list -deps does not list the program itself: %q", out)
	}
	for _, dep := range deps {
		for _, mod := range testOnly {
			if dep == mod || strings.HasPrefix(dep, mod+"/") {
				t.Errorf("the program contains %s, which is for tests only", dep)
			}
		}
	}
}

// A goFile is what these tests look at in a Go source file.
type goFile struct {
	path    string
	pkg     string   // as in house
	name    string   // of the package clause
	test    bool     // whether it is a _test.go file
	imports []string // of ours, as in house
}

// goFiles reads every Go file of the module, whatever its build constraints are. It
// reads the sources itself, not through the go command, so that the result of a test is
// not taken from the cache when one of them has changed.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && isApart(name, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		imports := map[string]bool{}
		for _, spec := range syntax.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if p == module || strings.HasPrefix(p, module+"/") {
				imports[short(strings.TrimPrefix(strings.TrimPrefix(p, module), "/"))] = true
			}
		}
		files = append(files, goFile{
			path:    name,
			pkg:     short(path.Dir(filepath.ToSlash(name))),
			name:    syntax.Name.Name,
			test:    strings.HasSuffix(name, "_test.go"),
			imports: slices.Sorted(maps.Keys(imports)),
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("found no Go files")
	}
	return files
}

// isApart reports whether the go command takes the folder for no part of this module.
func isApart(dir, base string) bool {
	if base == "testdata" || base == "vendor" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// short turns a path inside the module into a name of the table.
func short(dir string) string {
	if dir == "" {
		return "."
	}
	return strings.TrimPrefix(dir, "internal/")
}
