package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// files are a certificate's files, and a log of what is said of them.
type files struct {
	t         *testing.T
	cert, key string
	log       bytes.Buffer
}

func newFiles(t *testing.T) *files {
	dir := t.TempDir()
	return &files{t: t, cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
}

func (f *files) logger() *slog.Logger { return slog.New(slog.NewTextHandler(&f.log, nil)) }

// makePair returns a certificate of its own signature, and its key.
func makePair(t *testing.T, serial int64, from, until time.Duration) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "ocp"},
		NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(until), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// write replaces a file in one step.
func (f *files) write(path string, content []byte) {
	f.t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		f.t.Fatal(err)
	}
}

func (f *files) writePair(serial int64, from, until time.Duration) {
	f.t.Helper()
	cert, key := makePair(f.t, serial, from, until)
	f.write(f.cert, cert)
	f.write(f.key, key)
}

const year = 365 * 24 * time.Hour

// serial is that of the certificate that a connection gets.
func serial(t *testing.T, c *tls.Config) int64 {
	t.Helper()
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	done := make(chan error, 1)
	go func() { done <- tls.Server(server, c).Handshake() }()
	conn := tls.Client(client, &tls.Config{InsecureSkipVerify: true})
	if err := conn.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// TestChange replaces the files while the certificate is in use, one after the other as
// programs do that renew them.
func TestChange(t *testing.T) {
	on := newFiles(t)
	on.writePair(1, -time.Hour, year)
	f, err := Open(on.cert, on.key, on.logger())
	if err != nil {
		t.Fatal(err)
	}
	config := f.Config()
	wantSerial := func(want int64, says string) {
		t.Helper()
		for range 2 { // the second says nothing more
			if got := serial(t, config); got != want {
				t.Errorf("got certificate %d, want %d", got, want)
			}
		}
		log := on.log.String()
		if on.log.Reset(); says == "" && log != "" || strings.Count(log, says) != 1 && says != "" {
			t.Errorf("logged %q, want %q once", log, says)
		}
	}
	wantSerial(1, "")

	cert, key := makePair(t, 2, -time.Hour, year)
	on.write(on.cert, cert)
	wantSerial(1, "the one before is kept")
	on.write(on.key, key)
	wantSerial(2, "took up the changed TLS certificate")

	if err := os.Remove(on.cert); err != nil {
		t.Fatal(err)
	}
	wantSerial(2, "")
	on.write(on.cert, []byte("nothing\n"))
	wantSerial(2, "the one before is kept")
	on.writePair(3, -year, -time.Hour)
	wantSerial(3, "has expired")
}

func TestExpiry(t *testing.T) {
	for _, test := range []struct {
		from, until time.Duration
		says        string
	}{
		{-time.Hour, year, ""},
		{-time.Hour, Soon + time.Hour, ""},
		{-time.Hour, Soon - time.Hour, "expires soon"},
		{-year, -time.Hour, "has expired"},
		{time.Hour, year, "not valid yet"},
	} {
		on := newFiles(t)
		on.writePair(1, test.from, test.until)
		f, err := Open(on.cert, on.key, on.logger())
		if err != nil {
			t.Fatal(err)
		}
		if log := on.log.String(); !strings.Contains(log, test.says) || test.says == "" && log != "" {
			t.Errorf("until %s: logged %q, want %q", test.until, log, test.says)
		}
		if off := time.Until(f.Expires()) - test.until; off.Abs() > time.Hour {
			t.Errorf("it expires %s, %s off", f.Expires(), off)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	cert, key := makePair(t, 1, -time.Hour, year)
	_, otherKey := makePair(t, 2, -time.Hour, year)
	for name, test := range map[string]struct {
		cert, key []byte // nil for no file
		says      string
	}{
		"no certificate":   {nil, key, "cert.pem: no such file"},
		"no key":           {cert, nil, "key.pem: no such file"},
		"another's key":    {cert, otherKey, "does not match"},
		"the other way":    {key, cert, "certificate"},
		"empty":            {[]byte{}, key, "failed to find"},
		"no PEM in either": {[]byte("x"), []byte("secret"), "failed to find"},
	} {
		on := newFiles(t)
		if test.cert != nil {
			on.write(on.cert, test.cert)
		}
		if test.key != nil {
			on.write(on.key, test.key)
		}
		if _, err := Open(on.cert, on.key, on.logger()); err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %q", name, err, test.says)
		}
	}
}

// TestNoOldTLS checks that what is older than TLS 1.2 is refused.
func TestNoOldTLS(t *testing.T) {
	on := newFiles(t)
	on.writePair(1, -time.Hour, year)
	f, err := Open(on.cert, on.key, on.logger())
	if err != nil {
		t.Fatal(err)
	}
	client, server := net.Pipe()
	defer client.Close()
	done := make(chan error, 1)
	go func() {
		done <- tls.Server(server, f.Config()).Handshake()
		server.Close()
	}()
	err = tls.Client(client, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}).Handshake()
	if err == nil || <-done == nil {
		t.Error("TLS 1.1 was spoken")
	}
}
