// Package store keeps what must outlast ocp: the keys of clients and what was used with
// them, in an SQLite file of the state directory. Several processes may have it open at
// once: `ocp keys` and `ocp usage` need not stop `ocp serve`. It holds no key, only hashes,
// and nothing of a conversation.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // pure Go: ocp is built without cgo, for other machines too
)

// FileName is the name of the file in the state directory. SQLite puts two more beside it,
// FileName-wal and FileName-shm, while it is open.
const FileName = "ocp.db"

// Store is the open file. Its methods may be called at any time by anyone, and wait up to
// 5 s for another process that writes.
type Store struct {
	db   *sql.DB
	path string
}

// Open opens the file in a folder that exists, and makes it if need be, for its owner alone.
func Open(ctx context.Context, dir string) (*Store, error) {
	path := filepath.Join(dir, FileName)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // SQLite would let the umask decide
	if err != nil {
		return nil, fmt.Errorf("open the store of keys and usage: %w", err)
	}
	if err := file.Close(); err != nil {
		return nil, fmt.Errorf("open the store of keys and usage: %w", err)
	}
	return open(ctx, path)
}

// OpenExisting is Open, or nil and no error if there is no file yet.
func OpenExisting(ctx context.Context, dir string) (*Store, error) {
	path := filepath.Join(dir, FileName)
	switch _, err := os.Stat(path); {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("open the store of keys and usage: %w", err)
	}
	return open(ctx, path)
}

// pragmas are those of each connection. With WAL nobody waits to read. With synchronous=FULL
// a commit is on the disk: it costs half a millisecond instead of a fiftieth, which nobody
// waits for, and a power cut brings no revoked key back.
const pragmas = "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate"

func open(ctx context.Context, path string) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open the store of keys and usage: %w", err)
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: abs}).String()+pragmas)
	if err != nil {
		return nil, fmt.Errorf("open the store of keys and usage: %w", err)
	}
	// One is Watch's, the other is everybody's: no more descriptors than at the start.
	db.SetMaxOpenConns(2)
	s := &Store{db: db, path: abs}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store of keys and usage in %s: %w", abs, err), db.Close())
	}
	return s, nil
}

// Close closes the file.
func (s *Store) Close() error { return s.db.Close() }

// migrations make each version of the schema from the one before; the first from nothing.
// What has been released is never changed. The file's version is how many of them it has.
var migrations = []string{
	`CREATE TABLE keys (
		id             TEXT PRIMARY KEY,
		name           TEXT NOT NULL UNIQUE,
		hash           BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
		created        INTEGER NOT NULL, -- seconds since 1970
		models         TEXT NOT NULL,    -- a JSON array; null for any
		concurrency    INTEGER NOT NULL, -- 0 for no limit, as with all limits
		per_minute     INTEGER NOT NULL,
		per_day        INTEGER NOT NULL,
		tokens_per_day INTEGER NOT NULL
	) STRICT;
	CREATE TABLE usage (
		day            TEXT NOT NULL,    -- of UTC, on which the turns began: 2006-01-02
		key            TEXT NOT NULL,    -- its name
		model          TEXT NOT NULL,
		dialect        TEXT NOT NULL,
		outcome        TEXT NOT NULL,
		turns          INTEGER NOT NULL,
		input          INTEGER NOT NULL, -- tokens
		output         INTEGER NOT NULL,
		cache_read     INTEGER NOT NULL,
		cache_creation INTEGER NOT NULL,
		estimated      INTEGER NOT NULL, -- turns whose tokens are an estimate
		PRIMARY KEY (day, key, model, dialect, outcome)
	) STRICT, WITHOUT ROWID;`,
}

// migrate brings the schema up to date. Of several processes one does, and the others wait.
func (s *Store) migrate(ctx context.Context) error {
	has, err := s.version(ctx, s.db)
	if err != nil || has == len(migrations) {
		return err
	}
	return s.change(ctx, func(tx *sql.Tx) error {
		has, err := s.version(ctx, tx)
		if err != nil {
			return err
		}
		for i, m := range migrations[has:] {
			if _, err := tx.ExecContext(ctx, m); err != nil {
				return fmt.Errorf("to version %d of the schema: %w", has+i+1, err)
			}
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", len(migrations)))
		return err
	})
}

// rower is a database or a transaction in it.
type rower interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// version returns the version of the file's schema.
func (s *Store) version(ctx context.Context, db rower) (int, error) {
	var has int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&has); err != nil {
		return 0, err
	}
	if has > len(migrations) {
		return 0, fmt.Errorf("its schema is of version %d, and this ocp knows those up to %d: use the newer ocp that wrote it", has, len(migrations))
	}
	return has, nil
}

// change runs f in a transaction that writes: all of it counts, or nothing.
func (s *Store) change(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		_ = tx.Rollback() // the failure at hand is the one to tell
		return err
	}
	return tx.Commit()
}
