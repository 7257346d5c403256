package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// HostNames returns the names by which clients may call the server, besides localhost
// and addresses: those given, and beyond loopback its own. machine is the name of the
// machine, and may be empty. "*" among them is for any name.
func (s *Serve) HostNames(machine string) []string {
	names := append([]string{}, s.AllowHost...)
	if s.Loopback() {
		return names
	}
	if host, _, err := net.SplitHostPort(s.Listen); err == nil && host != "" {
		names = append(names, host)
	}
	if machine != "" {
		names = append(names, machine, machine+".local") // as multicast DNS has it
	}
	return names
}

func (s *Serve) hasKeys() bool { return len(s.APIKey) > 0 || s.APIKeyFile != "" || s.StoredKeys }

// validHosts refuses what no Host header could match, and any name where there are no
// keys: a web page that calls this machine by its own name has none.
func validHosts(names []string, keys bool) error {
	for _, name := range names {
		_, notAddr := netip.ParseAddr(name)
		switch {
		case name == "*" && !keys:
			return errors.New("--allow-host: * needs keys, since without them any web page could use the server: name the hosts, make a key with 'ocp keys add', or give --api-key-file or OCP_API_KEY")
		case name == "*" || notAddr == nil:
		case name == "" || strings.ContainsAny(name, "*/:@[] \t"):
			return fmt.Errorf("--allow-host: %q is not the name of a host: give it without scheme and port, such as ocp.example.org", name)
		}
	}
	return nil
}

// validOrigins wants each origin as a browser writes it.
func validOrigins(origins []string) error {
	for _, origin := range origins {
		if origin == "*" || origin == "null" {
			return fmt.Errorf("--cors-origin: %s would let any web page use the server: name each origin, such as https://chat.example.org", origin)
		}
		u, err := url.Parse(origin)
		ok := err == nil && u.Host != "" && origin == strings.ToLower(u.Scheme+"://"+u.Host) && !strings.Contains(u.Host, "*")
		if !ok {
			return fmt.Errorf("--cors-origin: %q is not an origin as browsers send it: scheme and host in small letters, the port if it is not the scheme's own, and nothing else, such as https://chat.example.org", origin)
		}
		if u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443" {
			return fmt.Errorf("--cors-origin: %q: browsers leave out the port that is the scheme's own, so leave it out", origin)
		}
	}
	return nil
}

func validTLS(cert, key string) error {
	switch {
	case cert != "" && key == "":
		return errors.New("--tls-cert needs --tls-key, the file of its private key")
	case cert == "" && key != "":
		return errors.New("--tls-key needs --tls-cert, the file of the certificate and those that signed it")
	}
	return nil
}
