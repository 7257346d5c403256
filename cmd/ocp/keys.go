package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"ocp/internal/claude"
	"ocp/internal/quota"
	"ocp/internal/store"
)

// keysCommand is about the keys of the store. A serve of the same state directory may run.
type keysCommand struct {
	Add    keysAddCommand    `cmd:"" help:"Make a key, and print it this once."`
	List   keysListCommand   `cmd:"" help:"List the keys and their limits."`
	Revoke keysRevokeCommand `cmd:"" help:"Revoke a key. Turns that run with it may end."`
}

// stateFlag is serve's --state-dir, also from the settings file.
type stateFlag struct {
	ConfigFile
	StateDir string `placeholder:"DIR" help:"The state directory of 'ocp serve'. Default: ~/.local/state/ocp."`
}

// The limits have no variables of the environment, and nothing from the settings file:
// OCP_CONCURRENCY and OCP_MODELS are serve's.
type keysAddCommand struct {
	Name string `arg:"" help:"What to call it, in lists, logs and usage. No other key may have the name."`
	stateFlag
	Models       []string `env:"-" placeholder:"NAME" help:"The only models that it may ask for, with commas between them. Default: any."`
	Concurrency  int      `env:"-" placeholder:"N" help:"How many of its requests may be under way at once, those that wait included. Default: no limit."`
	PerMinute    int      `env:"-" placeholder:"N" help:"How many requests it may send in any 60 seconds. Default: no limit."`
	PerDay       int      `env:"-" placeholder:"N" help:"How many requests it may send in a day of UTC. Default: no limit."`
	TokensPerDay int64    `env:"-" placeholder:"N" help:"How many tokens, of input and output, it may use in a day of UTC. The turn that goes beyond is the last. Default: no limit."`
}

// keyPrefix makes a key known for what it is, to people and to scanners of secrets.
const keyPrefix = "sk-ocp-"

// Run prints the key alone to stdout, for a script to take.
func (c *keysAddCommand) Run(ctx context.Context, p program) error {
	limits := quota.Limits{
		Models: c.Models, Concurrency: c.Concurrency, PerMinute: c.PerMinute, PerDay: c.PerDay, TokensPerDay: c.TokensPerDay,
	}
	if err := errors.Join(store.ValidName(c.Name), limits.Validate()); err != nil {
		return err
	}
	dir, err := stateDirOf(c.StateDir, p.env)
	if err != nil {
		return err
	}
	if dir, err = claude.MakeState(dir); err != nil {
		return err
	}
	s, err := store.Open(ctx, dir)
	if err != nil {
		return err
	}
	secret := keyPrefix + strings.ToLower(rand.Text()) // 130 bits
	key, err := s.AddKey(ctx, c.Name, sha256.Sum256([]byte(secret)), limits)
	if errors.Is(err, store.ErrNameTaken) {
		err = fmt.Errorf("there is a key of the name %q: take another, or revoke that one", c.Name)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	fmt.Fprintf(p.stderr, "The key %q, with the id %s. It is shown this once: only its hash is stored. A running ocp serve takes it up within a second.\n", key.Name, key.ID)
	_, err = fmt.Fprintln(p.stdout, secret)
	return err
}

type keysListCommand struct {
	stateFlag
	JSON bool `name:"json" env:"-" help:"JSON instead of a table."`
}

func (c *keysListCommand) Run(ctx context.Context, p program) error {
	keys, err := readStore(ctx, c.StateDir, p.env, (*store.Store).Keys)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeKeysJSON(p.stdout, keys)
	}
	if len(keys) == 0 {
		fmt.Fprintln(p.stderr, "There are no keys. 'ocp keys add NAME' makes one.")
		return nil
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tID\tCREATED\tMODELS\tAT ONCE\tPER MINUTE\tPER DAY\tTOKENS PER DAY")
	for _, k := range keys {
		models := "any"
		if len(k.Limits.Models) > 0 {
			models = strings.Join(k.Limits.Models, ", ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.Name, k.ID, k.Created.Format(time.DateOnly), models,
			limit(int64(k.Limits.Concurrency)), limit(int64(k.Limits.PerMinute)), limit(int64(k.Limits.PerDay)), limit(k.Limits.TokensPerDay))
	}
	return w.Flush()
}

// limit shows a limit, if it is one.
func limit(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

func writeKeysJSON(w io.Writer, keys []store.Key) error {
	type shown struct {
		ID      string       `json:"id"`
		Name    string       `json:"name"`
		Created time.Time    `json:"created"`
		Limits  quota.Limits `json:"limits"`
	}
	list := []shown{} // never null
	for _, k := range keys {
		list = append(list, shown{k.ID, k.Name, k.Created, k.Limits})
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(list)
}

type keysRevokeCommand struct {
	Key string `arg:"" name:"name|id" help:"The name of the key, or its id."`
	stateFlag
}

func (c *keysRevokeCommand) Run(ctx context.Context, p program) error {
	key, err := readStore(ctx, c.StateDir, p.env, func(s *store.Store, ctx context.Context) (store.Key, error) {
		return s.RevokeKey(ctx, c.Key)
	})
	if errors.Is(err, store.ErrNoKey) || err == nil && key.ID == "" { // there is no store
		if store.ValidName(c.Key) != nil { // it may be a key itself, which no error shows
			return errors.New("there is no key of that name or id: 'ocp keys list' shows those there are")
		}
		return fmt.Errorf("there is no key of the name or id %q: 'ocp keys list' shows those there are", c.Key)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stderr, "The key %q, with the id %s, is revoked. A running ocp serve refuses it within a second; turns that run with it may end.\n", key.Name, key.ID)
	return nil
}
