package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"ocp/internal/config"
)

// guard lets a request pass that may use the API.
func (s *Server) guard(x *exchange) error {
	if err := s.checkBrowser(x.r); err != nil {
		return err
	}
	if len(s.options.Keys) == 0 {
		return nil
	}
	offered := offeredKeys(x.r.Header)
	if len(offered) == 0 {
		return unauthorized(x, "a key is required: send it as Authorization: Bearer KEY or as x-api-key")
	}
	for _, key := range offered {
		hash := sha256.Sum256([]byte(key))
		if key := find(s.options.Keys, hash); key != nil {
			x.caller, x.key = string(hash[:]), key.Name
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

// checkBrowser refuses what only a browser on a foreign page sends. A page may not read
// a foreign server's answers, but its requests would cost turns all the same; and one
// whose name was made to point to this machine could read them too, which Host shows.
// No such page has a key, so that with keys a proxy in front may use its own name.
func (s *Server) checkBrowser(r *http.Request) error {
	if s.options.Loopback && len(s.options.Keys) == 0 && !isLoopback(r.Host) {
		return &fault{
			status:  http.StatusForbidden,
			code:    "foreign_host",
			message: "the Host header names another host: without keys this server answers to localhost and loopback addresses only",
		}
	}
	for _, origin := range r.Header.Values("Origin") {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
			return &fault{
				status:  http.StatusForbidden,
				code:    "foreign_origin",
				message: "web pages of another origin may not use this server",
			}
		}
	}
	return nil
}

// isLoopback reports whether a Host header, with a port or without, names this machine.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

func unauthorized(x *exchange, message string) *fault {
	x.w.Header().Set("WWW-Authenticate", "Bearer")
	return &fault{status: http.StatusUnauthorized, code: "invalid_api_key", message: message}
}
