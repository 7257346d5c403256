package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var someKeys = []string{"listen", "concurrency", "turn-timeout", "start-check", "api-key", "models"}

func TestReadFile(t *testing.T) {
	path := write(t, "# mine\nlisten = \"[::1]:80\" # here\n\nconcurrency = 0x4\nstart-check = false\nmodels = [\n  \"a\", # one\n  \"b,c\",\n]\n")
	file, err := ReadFile(path, someKeys)
	if err != nil {
		t.Fatal(err)
	}
	want := []Line{
		{Key: "listen", Value: "[::1]:80", Number: 2},
		{Key: "concurrency", Value: int64(4), Number: 4},
		{Key: "start-check", Value: false, Number: 5},
		{Key: "models", Value: []any{"a", "b,c"}, Number: 6},
	}
	if diff := cmp.Diff(want, file.Lines, cmpopts.IgnoreUnexported(Line{})); diff != "" {
		t.Error(diff)
	}
	if file.Open || file.Path != path {
		t.Errorf("%+v", file)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if file, err = ReadFile(path, someKeys); err != nil || !file.Open {
		t.Errorf("a file that others can read: %+v, %v", file, err)
	}
}

// TestReadFileRefuses checks that an error says where and what, and shows no value.
func TestReadFileRefuses(t *testing.T) {
	for name, test := range map[string]struct{ file, says string }{
		"unknown key":     {"listen = \"secret\"\nlisten-on = \"secret\"\n", `line 2: there is no setting "listen-on"; did you mean "listen"?`},
		"underscores":     {"turn_timeout = \"1m\"", `did you mean "turn-timeout"?`},
		"nothing like it": {"zzzzzzzzzzzz = 1", "serve --help"},
		"section":         {"\n\n[server]\nlisten = \"secret\"", "line 3: settings have no sections"},
		"dotted":          {"server.listen = \"secret\"", `line 1: settings have no sections: "server.listen"`},
		"table":           {"listen = {a = \"secret\"}", "line 1: listen is neither"},
		"date":            {"listen = 2026-01-02", "line 1: listen is neither"},
		"nested":          {"models = [[\"secret\"]]", "line 1: models is neither"},
		"twice":           {"listen = \"a\"\nlisten = \"b\"", "line 2"},
		"no quotes":       {"# c\nlisten = 127.0.0.1:80", "line 2"},
		"no value":        {"listen", "line 1"},
		"too long":        {strings.Repeat("#\n", maxFile), "no settings file"},
	} {
		path := write(t, test.file)
		_, err := ReadFile(path, someKeys)
		if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %q", name, err, test.says)
		}
	}
}

func TestDefaultFile(t *testing.T) {
	for name, test := range map[string]struct {
		env  map[string]string
		want string
	}{
		"home":         {map[string]string{"HOME": "/h"}, "/h/.config/ocp/config.toml"},
		"xdg":          {map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x/ocp/config.toml"},
		"relative xdg": {map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "x"}, "/h/.config/ocp/config.toml"},
		"nothing":      {nil, ""},
	} {
		if got := DefaultFile(func(n string) string { return test.env[n] }); got != filepath.FromSlash(test.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestSetLine(t *testing.T) {
	const file = "# top\n\n#listen = \"127.0.0.1:3456\"\n\n# how many\nconcurrency = 2 # mine\nmodels = [\n \"a\",\n] # end\n"
	for name, test := range map[string]struct {
		key   string
		value any
		want  string
	}{
		"there":          {"concurrency", 4, strings.Replace(file, "concurrency = 2", "concurrency = 4", 1)},
		"a list":         {"models", []string{"b"}, strings.Replace(file, "[\n \"a\",\n]", "['b']", 1)},
		"shown":          {"listen", "[::1]:80", strings.Replace(file, "3456\"\n", "3456\"\nlisten = '[::1]:80'\n", 1)},
		"neither":        {"start-check", false, file + "start-check = false\n"},
		"with a quote":   {"x", `a'b"c`, file + "x = \"a'b\\\"c\"\n"},
		"a longer name":  {"listen-on", "x", file + "listen-on = 'x'\n"},
		"part of a name": {"list", "x", file + "list = 'x'\n"},
	} {
		got, err := SetLine([]byte(file), test.key, test.value)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, string(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got, err := SetLine([]byte("a = 1"), "b", 2); err != nil || string(got) != "a = 1\nb = 2\n" {
		t.Errorf("no newline at the end: %q, %v", got, err)
	}
	if _, err := SetLine([]byte("a"), "b", 2); err == nil {
		t.Error("a file that is no TOML was changed")
	}
}

// FuzzSetLine checks that what is set can be read again, that nothing else changes, and
// that no file crashes the reader.
func FuzzSetLine(f *testing.F) {
	f.Add("a = 1\n#b = 2\n", "b", "x")
	f.Add("a = '''\n#b = 3\n'''", "b", "x")
	f.Add("[t]\na=1", "a", "\x00")
	f.Add("b = [1,\n2] # c", "b", "'\"\n")
	f.Fuzz(func(t *testing.T, file, key, value string) {
		before, err := ParseFile([]byte(file))
		if err != nil || len(key) == 0 || strings.Trim(key, "abcdefghijklmnopqrstuvwxyz-") != "" || strings.ToValidUTF8(value, "") != value {
			return
		}
		got, err := SetLine([]byte(file), key, value)
		if err != nil {
			t.Fatal(err)
		}
		after, err := ParseFile(got)
		if err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		values := func(lines []Line) map[string]any {
			all := map[string]any{}
			for _, l := range lines {
				all[l.Key] = l.Value
			}
			return all
		}
		want := values(before)
		want[key] = value
		if diff := cmp.Diff(want, values(after)); diff != "" {
			t.Errorf("%q became %q: %s", file, got, diff)
		}
	})
}
