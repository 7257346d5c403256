package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"ocp/internal/config"
)

// keyring is what keys there are at one moment.
type keyring struct {
	keys   []config.Key
	wanted bool // there are or were some
}

// SetKeys replaces the keys of clients. Requests under way are not asked again. If the last
// key has gone, nobody gets in: a server that wanted keys never serves without.
func (s *Server) SetKeys(keys []config.Key) {
	for {
		old := s.keys.Load()
		if s.keys.CompareAndSwap(old, &keyring{keys, len(keys) > 0 || old != nil && old.wanted}) {
			return
		}
	}
}

// guard lets a request pass that has a key, if keys are wanted.
func (s *Server) guard(x *exchange) error {
	ring := s.keys.Load()
	if !ring.wanted {
		return nil
	}
	offered := offeredKeys(x.r.Header)
	if len(offered) == 0 {
		return unauthorized(x, "a key is required: send it as Authorization: Bearer KEY or as x-api-key")
	}
	for _, key := range offered {
		hash := sha256.Sum256([]byte(key))
		if key := find(ring.keys, hash); key != nil {
			x.caller, x.key, x.limits = string(hash[:]), key.Name, key.Limits
			return nil
		}
	}
	return unauthorized(x, "the key is not one that this server knows")
}

// offeredKeys returns the keys of a request; a client may be set up to send one in both
// ways.
func offeredKeys(h http.Header) []string {
	keys := h.Values("X-Api-Key")
	for _, value := range h.Values("Authorization") {
		if scheme, key, ok := strings.Cut(value, " "); ok && strings.EqualFold(scheme, "Bearer") {
			keys = append(keys[:len(keys):len(keys)], strings.TrimSpace(key))
		}
	}
	return keys
}

// find compares a key's hash with all there are, in a time that tells nothing of them.
func find(keys []config.Key, hash [sha256.Size]byte) *config.Key {
	var found *config.Key
	for i := range keys {
		if subtle.ConstantTimeCompare(hash[:], keys[i].Hash[:]) == 1 {
			found = &keys[i]
		}
	}
	return found
}

func unauthorized(x *exchange, message string) *fault {
	x.w.Header().Set("WWW-Authenticate", "Bearer")
	return &fault{status: http.StatusUnauthorized, code: "invalid_api_key", message: message}
}
