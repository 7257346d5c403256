// Package certificate is the server's TLS certificate: read from two files, and read again
// when they have changed, so that a renewal needs no restart.
package certificate

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Soon is how long before its end a certificate is worth a warning. Those of the usual
// authorities are renewed a month ahead.
const Soon = 7 * 24 * time.Hour

// Files is a certificate and its private key, in PEM. It is safe for use by several
// goroutines.
type Files struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex
	loaded *tls.Certificate // guarded by mu, as all below
	seen   [2]os.FileInfo   // the files when they were last read, with what success ever
}

// Open reads a certificate and the key that belongs to it. Later changes that cannot be
// read, and certificates that have expired, are logged.
func Open(cert, key string, log *slog.Logger) (*Files, error) {
	f := &Files{cert: cert, key: key, log: log}
	seen, err := f.look()
	if err != nil {
		return nil, err
	}
	if f.loaded, err = f.read(); err != nil {
		return nil, err
	}
	f.seen = seen
	f.warn()
	return f, nil
}

// Config returns how a server is to use the certificate.
func (f *Files) Config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.current(), nil },
	}
}

// Expires is when the certificate does.
func (f *Files) Expires() time.Time { return f.current().Leaf.NotAfter }

// current returns the certificate of the files as they are, or the last one that could be
// read. Two looks at files for each connection cost little beside its handshake.
func (f *Files) current() *tls.Certificate {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen, err := f.look()
	if err != nil || same(seen, f.seen) {
		return f.loaded // a file that is missing is about to come, or was said to be at the start
	}
	f.seen = seen
	loaded, err := f.read()
	if err != nil {
		f.log.Warn("the changed TLS certificate cannot be used; the one before is kept", "err", err)
		return f.loaded
	}
	f.loaded = loaded
	f.log.Info("took up the changed TLS certificate", "expires", loaded.Leaf.NotAfter.UTC())
	f.warn()
	return loaded
}

func (f *Files) look() (seen [2]os.FileInfo, err error) {
	for i, name := range []string{f.cert, f.key} {
		if seen[i], err = os.Stat(name); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

func same(a, b [2]os.FileInfo) bool {
	for i := range a {
		if !os.SameFile(a[i], b[i]) || !a[i].ModTime().Equal(b[i].ModTime()) || a[i].Size() != b[i].Size() {
			return false
		}
	}
	return true
}

func (f *Files) read() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", f.cert, f.key, err)
	}
	return &pair, nil
}

// warn says that clients will not trust the certificate for its time. The caller holds mu,
// or has f alone.
func (f *Files) warn() {
	leaf, now := f.loaded.Leaf, time.Now()
	switch {
	case now.After(leaf.NotAfter):
		f.log.Warn("the TLS certificate has expired: clients will refuse it", "expired", leaf.NotAfter.UTC(), "file", f.cert)
	case now.Before(leaf.NotBefore):
		f.log.Warn("the TLS certificate is not valid yet: clients will refuse it", "from", leaf.NotBefore.UTC(), "file", f.cert)
	case leaf.NotAfter.Sub(now) < Soon:
		f.log.Warn("the TLS certificate expires soon", "expires", leaf.NotAfter.UTC(), "file", f.cert)
	}
}
