package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// maxFile bounds a settings file, in bytes.
const maxFile = 1 << 20

// A Line is one setting of a file. Value is a string, an int64, a float64, a bool, or a
// []any of them.
type Line struct {
	Key    string
	Value  any
	Number int // of the line, from 1

	start, end int // of the expression, in the file
}

// A File is a settings file as read.
type File struct {
	Path  string
	Lines []Line
	Open  bool // others can read it
}

// DefaultFile is where the settings are looked for if none are named; empty if the
// environment does not say.
func DefaultFile(variable func(name string) string) string {
	if dir := variable("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ocp", "config.toml")
	}
	if home := variable("HOME"); home != "" {
		return filepath.Join(home, ".config", "ocp", "config.toml")
	}
	return ""
}

// ReadFile reads a settings file. The keys are those it may have; an error names the file,
// the line and the key, and never shows a value.
func ReadFile(path string, keys []string) (*File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s: more than %d bytes are no settings file", path, maxFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines, err := ParseFile(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, line := range lines {
		if !slices.Contains(keys, line.Key) {
			return nil, fmt.Errorf("%s: line %d: there is no setting %q%s", path, line.Number, line.Key, nearest(line.Key, keys))
		}
	}
	return &File{Path: path, Lines: lines, Open: info.Mode()&0o077 != 0}, nil
}

// Line returns the line that sets a key.
func (f *File) Line(key string) (Line, bool) {
	if f == nil {
		return Line{}, false
	}
	i := slices.IndexFunc(f.Lines, func(l Line) bool { return l.Key == key })
	if i < 0 {
		return Line{}, false
	}
	return f.Lines[i], true
}

// ParseFile reads settings: TOML of keys and values alone.
func ParseFile(data []byte) ([]Line, error) {
	var values map[string]any
	if err := toml.Unmarshal(data, &values); err != nil {
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			row, _ := at.Position()
			return nil, fmt.Errorf("line %d: %s", row, strings.TrimPrefix(at.Error(), "toml: "))
		}
		return nil, err
	}
	var lines []Line
	parser := unstable.Parser{}
	parser.Reset(data)
	for parser.NextExpression() {
		e := parser.Expression()
		var parts []string
		number := 0
		for key := e.Key(); key.Next(); {
			if number == 0 {
				number = parser.Shape(key.Node().Raw).Start.Line
			}
			parts = append(parts, string(key.Node().Data))
		}
		name := strings.Join(parts, ".")
		switch {
		case e.Kind != unstable.KeyValue:
			return nil, fmt.Errorf("line %d: settings have no sections: write the keys without [%s]", number, name)
		case len(parts) > 1:
			return nil, fmt.Errorf("line %d: settings have no sections: %q has a dot in it", number, name)
		}
		value := values[name]
		if !plain(value) {
			return nil, fmt.Errorf("line %d: %s is neither a text, a number, true, false nor a list of them", number, name)
		}
		start := int(e.Raw.Offset)
		lines = append(lines, Line{Key: name, Value: value, Number: number, start: start, end: start + int(e.Raw.Length)})
	}
	return lines, parser.Error()
}

// plain reports whether a setting can have the value.
func plain(value any) bool {
	switch v := value.(type) {
	case string, int64, float64, bool:
		return true
	case []any:
		return !slices.ContainsFunc(v, func(one any) bool {
			_, list := one.([]any)
			return list || !plain(one)
		})
	}
	return false
}

// nearest is a hint at the key that was meant; empty if none is like it.
func nearest(key string, keys []string) string {
	best, distance := "", len(key)/2+1
	for _, k := range keys {
		if d := levenshtein.ComputeDistance(strings.ToLower(key), k); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return "; `ocp serve --help` lists the flags, whose names without -- are the keys"
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// SetLine returns the text of a settings file with a key set, and all else as it was: in
// the place where it is set, below the comment that shows it, or at the end.
func SetLine(data []byte, key string, value any) ([]byte, error) {
	lines, err := ParseFile(data)
	if err != nil {
		return nil, err
	}
	literal, err := toml.Marshal(map[string]any{key: value})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	literal = []byte(strings.TrimSuffix(string(literal), "\n"))
	for _, line := range lines {
		if line.Key == key {
			return slices.Concat(data[:line.start], literal, data[line.end:]), nil
		}
	}
	before := 0
	for line := range strings.Lines(string(data)) {
		before += len(line)
		inside := slices.ContainsFunc(lines, func(l Line) bool { return l.start < before && before < l.end })
		if strings.HasPrefix(line, "#"+key+" =") && !inside && strings.HasSuffix(line, "\n") {
			return slices.Concat(data[:before], literal, []byte("\n"), data[before:]), nil
		}
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		data = slices.Concat(data, []byte("\n"))
	}
	return slices.Concat(data, literal, []byte("\n")), nil
}
