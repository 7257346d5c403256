package config

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"

	"ocp/internal/quota"
)

// Key is a key of a client, at rest: the key itself is nowhere in it.
type Key struct {
	Name   string // the operator's own; may be empty
	Hash   [sha256.Size]byte
	Limits quota.Limits // none for the keys of flags and of --api-key-file
}

// Keys returns the keys that clients may use by flags: those given and those of the file,
// which is read each time. No error shows one.
func (s *Serve) Keys() ([]Key, error) {
	var keys []Key
	for _, key := range s.APIKey {
		keys = append(keys, Key{Hash: sha256.Sum256([]byte(key))})
	}
	if s.APIKeyFile == "" {
		return keys, nil
	}
	file, err := os.ReadFile(s.APIKeyFile)
	if err != nil {
		return nil, fmt.Errorf("--api-key-file: %w", err)
	}
	hashed, err := parseKeys(file)
	if err != nil {
		return nil, fmt.Errorf("--api-key-file: %s: %w", s.APIKeyFile, err)
	}
	return append(keys, hashed...), nil
}

const howToHash = "each line must be sha256:HEX and, if you like, a name; printf %s KEY | sha256sum prints the HEX of a key"

// parseKeys reads a file of hashed keys, one a line. Lines that begin with # say
// nothing.
func parseKeys(file []byte) ([]Key, error) {
	var keys []Key
	lines := bufio.NewScanner(bytes.NewReader(file))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		hash, name, _ := strings.Cut(line, " ")
		digits, ok := strings.CutPrefix(hash, "sha256:")
		sum, err := hex.DecodeString(digits)
		if !ok || err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("line %d is not a hashed key: %s", n, howToHash)
		}
		keys = append(keys, Key{Name: strings.TrimSpace(name), Hash: [sha256.Size]byte(sum)})
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no key in it: " + howToHash)
	}
	return keys, nil
}

// validKeys refuses keys that no client could send.
func validKeys(keys []string) error {
	for _, key := range keys {
		if key == "" || strings.ContainsFunc(key, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
			return errors.New("--api-key: a key is empty or has white space or control characters in it")
		}
	}
	return nil
}
