package probe

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const contract = "../../docs/contract.md"

var (
	heading = regexp.MustCompile(`^### `)
	claimed = regexp.MustCompile(`^(OCP: |[A-Z].*\.$)`)
	status  = regexp.MustCompile(`^- (\S+) \*\*(\w+)\*\*`)
)

// skeleton is what of a contract must not drift: ids, claims and statuses. Figures do.
// What was skipped on one machine may be there on another.
func skeleton(markdown string) []string {
	_, body, _ := strings.Cut(markdown, "\n## ")
	var list []string
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		switch m := status.FindStringSubmatch(line); {
		case m != nil && m[2] != string(Skip):
			list = append(list, m[1]+" "+m[2])
		case heading.MatchString(line), claimed.MatchString(line):
			list = append(list, line)
		}
	}
	return list
}

func read(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(contract)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// docs/contract.md has each claim as it is in the code.
func TestContractHasEveryClaim(t *testing.T) {
	column := Column{CLI: "1.2.3"}
	for _, c := range Claims() {
		column.Findings = append(column.Findings, c.finding(seen{c.ID: {OK, "x"}}))
	}
	var b bytes.Buffer
	if err := WriteMarkdown(&b, []Column{column}); err != nil {
		t.Fatal(err)
	}
	without := func(list []string) []string {
		var kept []string
		for _, line := range list {
			if heading.MatchString(line) || claimed.MatchString(line) {
				kept = append(kept, line)
			}
		}
		return kept
	}
	if diff := cmp.Diff(without(skeleton(b.String())), without(skeleton(read(t)))); diff != "" {
		t.Errorf("docs/contract.md has drifted; `make contract` makes it anew (-code +docs):\n%s", diff)
	}
}

// What docs/contract.md says of the pinned CLIs holds. OCP_TEST_CLIS names them.
func TestContractHolds(t *testing.T) {
	cliList := os.Getenv("OCP_TEST_CLIS")
	if cliList == "" {
		t.Skip("OCP_TEST_CLIS names no CLI: `make test-cli` does")
	}
	binary := filepath.Join(t.TempDir(), "ocp")
	if out, err := exec.Command("go", "build", "-o", binary, "ocp/cmd/ocp").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	args := []string{"probe", "--markdown"}
	for pair := range strings.SplitSeq(cliList, ",") {
		_, path, _ := strings.Cut(pair, "=")
		args = append(args, "--claude", path)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s", err, stderr.String())
	}
	if diff := cmp.Diff(skeleton(read(t)), skeleton(stdout.String())); diff != "" {
		t.Errorf("-docs/contract.md +now:\n%s\n%s", diff, stdout.String())
	}
}
