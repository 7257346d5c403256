package deploy

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ocp/internal/programtest"
)

var place = Place{
	Home: "/Users/me & you", Binary: `/opt/my "x"/100%/$o/ocp`, Args: []string{"--config", "/c d.toml"},
	Path: []string{"/a b", "/usr/bin"},
}

func TestUserUnit(t *testing.T) {
	unit := UserUnit(place)
	for _, want := range []string{
		`ExecStart="/opt/my \"x\"/100%%/$$o/ocp" serve "--config" "/c d.toml"` + "\n",
		`Environment="PATH=/a b:/usr/bin"` + "\n",
	} {
		if !strings.Contains(unit, "\n"+want) {
			t.Errorf("no %s in:\n%s", want, unit)
		}
	}
	if strings.Contains(unit, "%h/.local/bin") {
		t.Errorf("something was not fitted:\n%s", unit)
	}
}

func TestLaunchAgent(t *testing.T) {
	agent := LaunchAgent(place)
	if strings.Contains(agent, "/Users/you") {
		t.Errorf("something was not fitted:\n%s", agent)
	}
	var texts []string
	in := false
	decoder := xml.NewDecoder(strings.NewReader(agent))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			in = token.Name.Local == "string"
		case xml.EndElement:
			in = false
		case xml.CharData:
			if in {
				texts = append(texts, string(token))
			}
		}
	}
	all := strings.Join(texts, "\n")
	for _, want := range []string{
		Label, `exec "$0" serve "$@"`, place.Binary + "\n--config\n/c d.toml\n/a b:/usr/bin\n/Users/me & you/Library/Logs/ocp.log",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in:\n%s", want, all)
		}
	}
}

// TestUnitsVerify lets systemd judge the units.
func TestUnitsVerify(t *testing.T) {
	analyze := programtest.Find(t, "systemd-analyze")
	system, err := os.ReadFile("systemd/system/ocp.service")
	if err != nil {
		t.Fatal(err)
	}
	for name, unit := range map[string]string{
		"user":   UserUnit(Place{Binary: "/bin/true", Args: place.Args, Path: place.Path}),
		"system": strings.ReplaceAll(string(system), "/usr/local/bin/ocp", "/bin/true"),
	} {
		path := filepath.Join(t.TempDir(), "ocp.service")
		if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || strings.Contains(string(out), path) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		// "--threshold" is in tenths.
		limit := map[string]string{"user": "65", "system": "15"}[name]
		if out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=yes", "--threshold="+limit, path).CombinedOutput(); err != nil {
			t.Errorf("%s is more exposed than it was: %v\n%s", name, err, out)
		}
	}
}

// TestContainerPins wants the container to have the CLI that ocp is tested with last, and
// the Go of go.mod.
func TestContainerPins(t *testing.T) {
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	file := read("Containerfile")
	last := ""
	for line := range strings.Lines(read("../tools/cli/pins.txt")) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "#") {
			last = words[0]
		}
	}
	if last == "" || !strings.Contains(file, "\nARG CLAUDE_VERSION="+last+"\n") {
		t.Errorf("the Containerfile does not pin the CLI %s", last)
	}
	_, version, _ := strings.Cut(read("../go.mod"), "\ngo ")
	version, _, _ = strings.Cut(version, "\n")
	if version = strings.TrimSuffix(version, ".0"); !strings.Contains(file, "golang:"+version+"-") {
		t.Errorf("the Containerfile does not build with Go %s", version)
	}
}
