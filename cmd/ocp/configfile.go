package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"ocp/internal/claude"
	"ocp/internal/config"
)

// configName is the flag that names the settings file, which no file can set.
const configName = "config"

// ConfigFile makes a command take its flags from the settings file as well, where neither
// the command line nor the environment gives them. Keys are the names of serve's flags;
// those that the command has not are of no effect on it.
type ConfigFile struct {
	Config string `placeholder:"FILE" help:"Settings file: TOML of lines such as 'listen = \"127.0.0.1:3456\"', keys named as the flags. A flag goes before its OCP_ variable, that before the file, the file before the default. Default: ~/.config/ocp/config.toml, if it is there. /dev/null for none."`

	file *config.File // nil if there is none
}

// BeforeResolve reads the file. The parser calls it when flags and environment are known.
func (c *ConfigFile) BeforeResolve(ctx *kong.Context, p program) error {
	path := c.Config
	for _, flag := range ctx.Flags() {
		if flag.Name == configName {
			path, _ = ctx.FlagValue(flag).(string)
		}
	}
	file, err := readConfig(ctx.Model, p, path)
	if file != nil {
		c.file = file
		ctx.AddResolver(fromFile{file})
	}
	return err
}

// readConfig reads the settings file of a path, or the one that is looked for by itself if
// the path is empty. It is nil if there is none.
func readConfig(app *kong.Application, p program, path string) (*config.File, error) {
	named := path != ""
	if !named {
		path = config.DefaultFile(func(name string) string { return claude.Variable(p.env, name) })
	}
	if path == "" {
		return nil, nil
	}
	file, err := config.ReadFile(path, settingKeys(app))
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	return file, nil
}

// exposed reports whether others can read keys in the file.
func (c *ConfigFile) exposed() bool {
	_, keys := c.file.Line("api-key")
	return keys && c.file.Open
}

// settingFlags are the flags of serve that a settings file can set.
func settingFlags(app *kong.Application) []*kong.Flag {
	i := slices.IndexFunc(app.Children, func(n *kong.Node) bool { return n.Name == "serve" })
	return slices.DeleteFunc(slices.Clone(app.Children[i].Flags), func(f *kong.Flag) bool { return f.Name == configName || f.Hidden })
}

func settingKeys(app *kong.Application) []string {
	var keys []string
	for _, flag := range settingFlags(app) {
		keys = append(keys, flag.Name)
	}
	return keys
}

// fromFile gives flags the values of a settings file.
type fromFile struct {
	*config.File
}

func (f fromFile) Validate(*kong.Application) error { return nil }

func (f fromFile) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	line, ok := f.Line(flag.Name)
	if !ok || flag.Name == configName || len(flag.Envs) == 0 { // without a variable it is not serve's
		return nil, nil
	}
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set { // the parser has taken it
			return nil, nil
		}
	}
	value := forFlag(flag, line.Value)
	// Tried here, since the parser's own error would not say where the value stands.
	err := flag.Parse(kong.Scan().PushTyped(value, kong.FlagValueToken), reflect.New(flag.Target.Type()).Elem())
	if one, isText := value.(string); err == nil && isText && flag.Enum != "" && !flag.EnumMap()[one] {
		err = fmt.Errorf("must be one of %s", flag.Enum)
	}
	if err != nil {
		// The parser names the flag itself, each time.
		return nil, fmt.Errorf("%s: line %d: %s", f.Path, line.Number, strings.TrimPrefix(err.Error(), flag.ShortSummary()+": "))
	}
	return value, nil
}

// forFlag is a value of a file as the parser takes it: as on a command line, but that the
// commas of a text do not make it a list.
func forFlag(flag *kong.Flag, value any) any {
	if flag.IsSlice() {
		if list, ok := value.([]any); ok {
			return list
		}
		return []any{value}
	}
	switch v := value.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return value
}
