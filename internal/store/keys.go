package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ocp/internal/quota"
)

// Key is a key of a client, at rest: the key itself is nowhere in it.
type Key struct {
	ID      string // the first digits of Hash in hex: who finds a key can tell which it is
	Name    string // the operator's own, and unique
	Hash    [sha256.Size]byte
	Created time.Time
	Limits  quota.Limits
}

// The errors of keys that a caller can tell from others.
var (
	ErrNameTaken = errors.New("there is a key of that name")
	ErrNoKey     = errors.New("there is no such key")
)

const idDigits = 12

// maxName is the most that a name may have, in characters.
const maxName = 64

// ValidName says what is wrong with the name of a key. The error does not show the name if
// that may be a key itself.
func ValidName(name string) error {
	switch {
	case strings.HasPrefix(name, "sk-"):
		return errors.New("the name of a key may not begin with sk-, as keys do")
	case name == "" || utf8.RuneCountInString(name) > maxName:
		return fmt.Errorf("the name of a key must have 1 to %d characters", maxName)
	case !utf8.ValidString(name) || strings.TrimSpace(name) != name || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("the name of a key must be of printable characters, without white space around it: %q is not", name)
	}
	return nil
}

// AddKey adds a key under a name that no other has: else ErrNameTaken. It returns the key
// as it was stored.
func (s *Store) AddKey(ctx context.Context, name string, hash [sha256.Size]byte, limits quota.Limits) (Key, error) {
	k := Key{
		ID: hex.EncodeToString(hash[:])[:idDigits], Name: name, Hash: hash,
		Created: time.Now().UTC().Truncate(time.Second), Limits: limits,
	}
	models, err := json.Marshal(limits.Models)
	if err != nil {
		return Key{}, fmt.Errorf("add a key: %w", err)
	}
	err = s.change(ctx, func(tx *sql.Tx) error {
		var taken bool
		if err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM keys WHERE name = ?)", name).Scan(&taken); err != nil {
			return err
		}
		if taken {
			return ErrNameTaken
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
			k.ID, name, hash[:], k.Created.Unix(), string(models),
			limits.Concurrency, limits.PerMinute, limits.PerDay, limits.TokensPerDay)
		return err
	})
	if err != nil {
		return Key{}, fmt.Errorf("add a key: %w", err)
	}
	return k, nil
}

// RevokeKey removes the key of that name, or else of that id, and returns it. If there is
// neither the error is ErrNoKey.
func (s *Store) RevokeKey(ctx context.Context, nameOrID string) (Key, error) {
	var revoked Key
	err := s.change(ctx, func(tx *sql.Tx) error {
		keys, err := readKeys(ctx, tx, "WHERE name = ?1 OR id = ?1 ORDER BY name <> ?1 LIMIT 1", nameOrID)
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			return ErrNoKey
		}
		revoked = keys[0]
		_, err = tx.ExecContext(ctx, "DELETE FROM keys WHERE id = ?", revoked.ID)
		return err
	})
	if err != nil {
		return Key{}, fmt.Errorf("revoke a key: %w", err)
	}
	return revoked, nil
}

// Keys returns all keys, by name.
func (s *Store) Keys(ctx context.Context) ([]Key, error) {
	keys, err := readKeys(ctx, s.db, "ORDER BY name")
	if err != nil {
		return nil, fmt.Errorf("read the keys in %s: %w", s.path, err)
	}
	return keys, nil
}

// querier is a database or a transaction in it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func readKeys(ctx context.Context, db querier, which string, args ...any) ([]Key, error) {
	rows, err := db.QueryContext(ctx, `SELECT id, name, hash, created, models, concurrency, per_minute, per_day, tokens_per_day FROM keys `+which, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var keys []Key
	for rows.Next() {
		var k Key
		var hash, models []byte
		var created int64
		if err := rows.Scan(&k.ID, &k.Name, &hash, &created, &models,
			&k.Limits.Concurrency, &k.Limits.PerMinute, &k.Limits.PerDay, &k.Limits.TokensPerDay); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(models, &k.Limits.Models); err != nil {
			return nil, fmt.Errorf("the models of %s: %w", k.Name, err)
		}
		k.Hash, k.Created = [sha256.Size]byte(hash), time.Unix(created, 0).UTC()
		keys = append(keys, k)
	}
	return keys, rows.Err()
}

// Watch calls changed when another process has changed the file, or this one has through
// another connection, until ctx ends. It asks once each interval: that costs some
// microseconds, and keeps the disk out of the way of requests, which a question with each
// of them would not. A question that fails is asked again.
func (s *Store) Watch(ctx context.Context, interval time.Duration, changed func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var conn *sql.Conn // data_version is a connection's own
	var seen int64
	defer func() { closeConn(conn) }()
	for {
		var now int64
		var err error
		fresh := conn == nil
		if fresh {
			conn, err = s.db.Conn(ctx)
		}
		if err == nil {
			err = conn.QueryRowContext(ctx, "PRAGMA data_version").Scan(&now)
		}
		switch {
		case err != nil:
			closeConn(conn)
			conn = nil
		case fresh || now != seen:
			seen = now
			changed() // also at first: there is no telling what was before
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func closeConn(c *sql.Conn) {
	if c != nil {
		_ = c.Close() // only asked through
	}
}
