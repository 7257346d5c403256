package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"ocp/internal/claude"
	"ocp/internal/config"
	"ocp/internal/quota"
	"ocp/internal/server"
	"ocp/internal/store"
)

// keysInterval is how soon a running serve takes up keys that were added or revoked.
const keysInterval = time.Second

// clients is what a proxy knows of its clients: their keys, and what they have used.
type clients struct {
	settings config.Serve
	log      *slog.Logger
	store    *store.Store
	recorder *store.Recorder
	book     *quota.Book // of today, as the store had it at the start

	stop    context.CancelFunc
	watched sync.WaitGroup

	mu    sync.Mutex
	given []config.Key       // of flags and --api-key-file; guarded by mu, as all below
	keys  []config.Key       // all
	set   func([]config.Key) // of the server; nil until serve
}

// openClients opens the store in the state directory, which exists. No keys is an error
// beyond loopback.
func openClients(ctx context.Context, c config.Serve, logger *slog.Logger) (*clients, error) {
	s, err := store.Open(ctx, c.StateDir)
	if err != nil {
		return nil, err
	}
	k := &clients{settings: c, log: logger, store: s, book: &quota.Book{}, stop: func() {}}
	err = errors.Join(k.load(ctx, true), k.resume(ctx, time.Now()))
	if err == nil && c.StoredKeys && len(k.keys) == 0 {
		err = errors.New("the last key was revoked while ocp started, and without any it may not serve like this: make one with 'ocp keys add'")
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	k.recorder = store.Record(s, time.Duration(c.UsageKeep), logger)
	return k, nil
}

// resume has the limits of a day count what this day's turns have used before.
func (k *clients) resume(ctx context.Context, now time.Time) error {
	turns, err := k.store.Usage(ctx, store.Day(now))
	if err != nil {
		return err
	}
	type sum struct {
		requests int
		tokens   int64
	}
	sums := map[string]sum{}
	for _, t := range turns {
		if t.Outcome == server.Limited || t.Day != store.Day(now) {
			continue
		}
		s := sums[t.Key]
		s.requests += int(t.Count)
		s.tokens += t.Input + t.Output + t.CacheRead + t.CacheCreation
		sums[t.Key] = s
	}
	for name, s := range sums {
		k.book.Account(name).Resume(now, s.requests, s.tokens)
	}
	return nil
}

// serve gives the keys to the server as they change, until close.
func (k *clients) serve(set func([]config.Key)) {
	ctx, cancel := context.WithCancel(context.Background())
	k.stop = cancel
	k.mu.Lock()
	k.set = set
	k.mu.Unlock()
	k.watched.Go(func() {
		k.store.Watch(ctx, keysInterval, func() {
			if err := k.load(ctx, false); err != nil && ctx.Err() == nil {
				k.log.Error("changed keys could not be read; those that were read before go on", "err", err)
			}
		})
	})
}

// reload reads all keys anew, those of --api-key-file too. What cannot be read stays as it
// was.
func (k *clients) reload(ctx context.Context) {
	if err := k.load(ctx, true); err != nil {
		k.log.Error("keys could not be reloaded; those that were read before go on", "err", err)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log.Info("keys and limits are reloaded", "keys", len(k.keys))
}

// load reads the keys of the store, and those of the file if it is asked to.
func (k *clients) load(ctx context.Context, file bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	if file {
		given, err := k.settings.Keys()
		if err == nil {
			k.given = given
		}
		errs = append(errs, err)
	}
	stored, err := k.store.Keys(ctx)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	k.keys = append([]config.Key{}, k.given...)
	for _, key := range stored {
		k.keys = append(k.keys, config.Key{Name: key.Name, Hash: key.Hash, Limits: key.Limits})
	}
	if k.set != nil {
		k.set(k.keys)
	}
	return errors.Join(errs...)
}

// observe has a turn that is over written down.
func (k *clients) observe(t server.Trace) {
	if t.Outcome == "" {
		return
	}
	turns := store.Turns{
		Line:  store.Line{Day: store.Day(t.Begun), Key: t.Key, Model: t.Model, Dialect: t.Dialect, Outcome: t.Outcome},
		Count: 1,
		Input: int64(t.Usage.Input), Output: int64(t.Usage.Output),
		CacheRead: int64(t.Usage.CacheRead), CacheCreation: int64(t.Usage.CacheCreation),
	}
	if t.Usage.Estimated {
		turns.Estimated = 1
	}
	k.recorder.Add(turns)
}

// close writes what is to be written. No turn may be running.
func (k *clients) close() error {
	k.stop()
	k.watched.Wait()
	k.recorder.Close()
	return k.store.Close()
}

// storedKeys reports whether the store has keys, where that decides whether ocp may serve:
// without other keys, and beyond loopback or under any name. It makes no file.
func storedKeys(s config.Serve, env []string) (bool, error) {
	if len(s.APIKey) > 0 || s.APIKeyFile != "" || s.Loopback() && !slices.Contains(s.AllowHost, "*") {
		return false, nil
	}
	keys, err := readStore(context.Background(), s.StateDir, env, (*store.Store).Keys)
	return len(keys) > 0, err
}

// readStore returns what read finds in the store of a state directory; nothing if there is
// no store yet. The directory is the default one if none is named.
func readStore[T any](ctx context.Context, stateDir string, env []string, read func(*store.Store, context.Context) (T, error)) (T, error) {
	var found T
	dir, err := stateDirOf(stateDir, env)
	if err != nil {
		return found, err
	}
	s, err := store.OpenExisting(ctx, dir)
	if s == nil || err != nil {
		return found, err
	}
	found, err = read(s, ctx)
	return found, errors.Join(err, s.Close())
}

// stateDirOf is the state directory named, or the default one.
func stateDirOf(named string, env []string) (string, error) {
	if named == "" {
		named = claude.DefaultStateDir(env)
	}
	if named == "" {
		return "", errors.New("--state-dir: give a directory, since the environment has no HOME")
	}
	return named, nil
}
