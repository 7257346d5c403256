package config

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// valid is what the defaults are.
func valid() Serve {
	return Serve{
		Listen: "127.0.0.1:3456", Concurrency: 2, Queue: 16, Effort: "low",
		TurnTimeout: time.Minute, StartTimeout: time.Minute, KeepAlive: time.Second,
	}
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Serve)
		says   string // empty if it is valid
	}{
		{"defaults", func(*Serve) {}, ""},
		{"localhost", func(s *Serve) { s.Listen = "localhost:0" }, ""},
		{"IPv6 loopback", func(s *Serve) { s.Listen = "[::1]:80" }, ""},
		{"another loopback", func(s *Serve) { s.Listen = "127.9.9.9:80" }, ""},
		{"all interfaces", func(s *Serve) { s.Listen = "0.0.0.0:80" }, "--listen"},
		{"all interfaces of IPv6", func(s *Serve) { s.Listen = "[::]:80" }, "--listen"},
		{"no host", func(s *Serve) { s.Listen = ":80" }, "--listen"},
		{"an address of the network", func(s *Serve) { s.Listen = "192.168.1.2:80" }, "--api-key-file or OCP_API_KEY"},
		{"a name", func(s *Serve) { s.Listen = "example.com:80" }, "--listen"},
		{"no port", func(s *Serve) { s.Listen = "127.0.0.1" }, "HOST:PORT"},
		{"all interfaces with a key", func(s *Serve) { s.Listen, s.APIKey = "0.0.0.0:80", []string{"k"} }, ""},
		{"all interfaces with a file", func(s *Serve) { s.Listen, s.APIKeyFile = ":80", "keys" }, ""},
		{"empty key", func(s *Serve) { s.APIKey = []string{""} }, "--api-key"},
		{"key with a space", func(s *Serve) { s.APIKey = []string{"a", "secret key"} }, "--api-key"},
		{"further names", func(s *Serve) { s.AllowHost = []string{"ocp.example.org", "10.0.0.7", "::1"} }, ""},
		{"a name with a port", func(s *Serve) { s.AllowHost = []string{"ocp.example.org:80"} }, "--allow-host"},
		{"a name with a scheme", func(s *Serve) { s.AllowHost = []string{"http://ocp.example.org"} }, "--allow-host"},
		{"an empty name", func(s *Serve) { s.AllowHost = []string{""} }, "--allow-host"},
		{"part of a name", func(s *Serve) { s.AllowHost, s.APIKey = []string{"*.example.org"}, []string{"k"} }, "--allow-host"},
		{"any name", func(s *Serve) { s.AllowHost = []string{"*"} }, "needs keys"},
		{"any name with keys", func(s *Serve) { s.AllowHost, s.APIKey = []string{"*"}, []string{"k"} }, ""},
		{"origins", func(s *Serve) {
			s.CORSOrigin = []string{"https://chat.example.org", "http://localhost:8080", "app://obsidian.md", "http://[::1]:3000"}
		}, ""},
		{"any origin", func(s *Serve) { s.CORSOrigin, s.APIKey = []string{"*"}, []string{"k"} }, "name each origin"},
		{"no origin", func(s *Serve) { s.CORSOrigin = []string{"null"} }, "name each origin"},
		{"an origin with a path", func(s *Serve) { s.CORSOrigin = []string{"https://chat.example.org/"} }, "--cors-origin"},
		{"a name for an origin", func(s *Serve) { s.CORSOrigin = []string{"chat.example.org"} }, "--cors-origin"},
		{"capitals in an origin", func(s *Serve) { s.CORSOrigin = []string{"https://Chat.example.org"} }, "small letters"},
		{"all of a domain", func(s *Serve) { s.CORSOrigin = []string{"https://*.example.org"} }, "--cors-origin"},
		{"a port too much", func(s *Serve) { s.CORSOrigin = []string{"https://chat.example.org:443"} }, "leave it out"},
		{"a certificate alone", func(s *Serve) { s.TLSCert = "c" }, "--tls-key"},
		{"a TLS key alone", func(s *Serve) { s.TLSKey = "k" }, "--tls-cert"},
		{"no slots", func(s *Serve) { s.Concurrency = 0 }, "--concurrency"},
		{"less than no queue", func(s *Serve) { s.Queue = -1 }, "--queue"},
		{"less than no pool", func(s *Serve) { s.Pool = -1 }, "--pool"},
		{"less than nothing kept", func(s *Serve) { s.Keep = -1 }, "--keep"},
		{"kept for no time", func(s *Serve) { s.Keep = 1 }, "--keep-for"},
		{"no time", func(s *Serve) { s.TurnTimeout = 0 }, "--turn-timeout"},
		{"no limit", func(s *Serve) { s.FirstByteTimeout, s.IdleTimeout = 0, 0 }, ""},
		{"less than no time to the first text", func(s *Serve) { s.FirstByteTimeout = -1 }, "--first-byte-timeout"},
		{"less than no silence", func(s *Serve) { s.IdleTimeout = -1 }, "--idle-timeout"},
		{"usage kept for less than no time", func(s *Serve) { s.UsageKeep = -1 }, "--usage-keep"},
		{"all interfaces with a key of the store", func(s *Serve) { s.Listen, s.StoredKeys = ":80", true }, ""},
		{"odd effort", func(s *Serve) { s.Effort = "--x" }, "--effort"},
		{"odd variable", func(s *Serve) { s.PassEnv = []string{"A=B"} }, "--pass-env"},
		{"keys for sessions", func(s *Serve) { s.PassEnv = []string{"OCP_API_KEY"} }, "no session"},
	} {
		s := valid()
		test.change(&s)
		err := s.Validate()
		if (err == nil) != (test.says == "") || err != nil && (!strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.says)
		}
	}
}

func TestLoopback(t *testing.T) {
	for listen, want := range map[string]bool{"127.0.0.1:1": true, "localhost:1": true, "[::1]:1": true, ":1": false, "0.0.0.0:1": false, "x": false} {
		if got := (&Serve{Listen: listen}).Loopback(); got != want {
			t.Errorf("%s: got %v", listen, got)
		}
	}
}

func TestHostNames(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:1": "ocp.test", "localhost:1": "ocp.test",
		":1": "ocp.test box box.local", "0.0.0.0:1": "ocp.test 0.0.0.0 box box.local", "lan.test:1": "ocp.test lan.test box box.local",
	} {
		s := Serve{Listen: listen, AllowHost: []string{"ocp.test"}}
		if got := strings.Join(s.HostNames("box"), " "); got != want {
			t.Errorf("%s: got %q, want %q", listen, got, want)
		}
		if len(s.AllowHost) != 1 {
			t.Errorf("%s: the setting has changed", listen)
		}
	}
	if got := (&Serve{Listen: ":1"}).HostNames(""); len(got) != 0 {
		t.Errorf("got %q", got)
	}
}

func TestKeys(t *testing.T) {
	one, two := sha256.Sum256([]byte("one")), sha256.Sum256([]byte("two"))
	file := fmt.Sprintf("# clients\n\nsha256:%x\n  sha256:%X my phone \n", one, two)
	s := Serve{APIKey: []string{"three"}, APIKeyFile: write(t, file)}
	got, err := s.Keys()
	if err != nil {
		t.Fatal(err)
	}
	want := []Key{{Hash: sha256.Sum256([]byte("three"))}, {Hash: one}, {Name: "my phone", Hash: two}}
	if len(got) != len(want) {
		t.Fatalf("got %d keys", len(got))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("key %d is %+v", i, got[i])
		}
	}
	if got, err := (&Serve{}).Keys(); err != nil || got != nil {
		t.Errorf("got %v (%v)", got, err)
	}
}

// TestKeyFileRefuses checks that a file without sense stops ocp rather than leave it
// open, and that the error shows no key.
func TestKeyFileRefuses(t *testing.T) {
	for name, test := range map[string]struct{ file, says string }{
		"plain key":    {"# mine\nsk-secret\n", "line 2"},
		"bare hash":    {strings.Repeat("5ec7e7", 10) + "abcd\n", "sha256sum"},
		"short hash":   {"sha256:5ec7e7\n", "printf %s KEY | sha256sum"},
		"no hex":       {"sha256:" + strings.Repeat("secret00", 8) + "\n", "line 1"},
		"another hash": {"sha512:5ec7e7\n", "line 1"},
		"no key":       {"# nobody\n\n", "no key"},
		"endless line": {strings.Repeat("x", 1<<20), "too long"},
	} {
		s := Serve{APIKeyFile: write(t, test.file)}
		_, err := s.Keys()
		if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "--api-key-file") || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "5ec7e7") {
			t.Errorf("%s: got %v, want %q", name, err, test.says)
		}
	}
	s := Serve{APIKeyFile: filepath.Join(t.TempDir(), "none")}
	if _, err := s.Keys(); err == nil || !strings.Contains(err.Error(), "--api-key-file") {
		t.Errorf("got %v", err)
	}
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDays(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"400d": 400 * 24 * time.Hour, "0d": 0, "0": 0, "36h": 36 * time.Hour, "-1h": -time.Hour,
		"-1d": -1, "d": -1, "1.5d": -1, "400": -1, "100001d": -1, "99999999999999999999d": -1, "": -1, "1w": -1,
	} {
		var d Days
		err := d.UnmarshalText([]byte(text))
		if want == -1 && err == nil || want != -1 && (err != nil || time.Duration(d) != want) {
			t.Errorf("%q: got %v, %v", text, time.Duration(d), err)
		}
	}
}
