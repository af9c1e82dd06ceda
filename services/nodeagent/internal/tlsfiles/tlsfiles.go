// Package tlsfiles reads the certificates that the node API shows and trusts from files that may be replaced while
// the agent runs: an operator's pair, and a bundle of authorities.
//
// The files are checked when their contents are requested, so that nothing wakes an agent with an unused API, and
// no file system needs to report changes.
package tlsfiles

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// pause is how long a result is reused: strangers may begin any number of handshakes.
const pause = time.Second

// Followed is the usable contents of files. It stays the same until the files have other usable contents.
type Followed[T any] struct {
	flag  string
	paths []string
	parse func(contents [][]byte) (T, error)
	log   *zap.Logger

	mu     sync.Mutex // guards all fields below
	looked time.Time
	// read are the contents that were last read; inForce was made of them if they are usable.
	read    [][]byte
	inForce T
	// fault is the last reported error of unusable files; empty if they were usable since.
	fault string
}

// Pair follows a certificate and its key. The flag names the certificate.
func Pair(flag, certificate, key string, log *zap.Logger) (*Followed[*tls.Certificate], error) {
	return open(flag, []string{certificate, key}, log, func(contents [][]byte) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(contents[0], contents[1])
		if err != nil {
			return nil, fmt.Errorf("%s and %s hold no certificate with its key: %w", certificate, key, err)
		}
		return &pair, nil
	})
}

// Authorities follows a bundle of certificates.
func Authorities(flag, bundle string, log *zap.Logger) (*Followed[*x509.CertPool], error) {
	return open(flag, []string{bundle}, log, func(contents [][]byte) (*x509.CertPool, error) {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(contents[0]) {
			return nil, fmt.Errorf("%s holds no PEM certificate", bundle)
		}
		return pool, nil
	})
}

// open fails if the files are not usable now.
func open[T any](flag string, paths []string, log *zap.Logger, parse func([][]byte) (T, error)) (*Followed[T], error) {
	f := &Followed[T]{flag: flag, paths: paths, parse: parse, looked: time.Now(),
		log: log.With(zap.String("flag", "--"+flag), zap.Strings("paths", paths))}
	contents, err := f.contents()
	if err == nil {
		f.read = contents
		f.inForce, err = parse(contents)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return f, nil
}

// Current returns the value in force.
func (f *Followed[T]) Current() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.looked) >= pause {
		f.lookLocked()
		f.looked = time.Now()
	}
	return f.inForce
}

// lookLocked reads the files and takes usable contents. Unusable contents are reported once: a pair whose files are
// replaced one after the other is unusable in between.
func (f *Followed[T]) lookLocked() {
	contents, err := f.contents()
	if err == nil {
		if slices.EqualFunc(contents, f.read, bytes.Equal) {
			f.fault = ""
			return
		}
		var fresh T
		f.read = contents
		if fresh, err = f.parse(contents); err == nil {
			f.inForce, f.fault = fresh, ""
			f.log.Info("the files have changed and are in force")
			return
		}
	}
	if f.fault != err.Error() {
		f.fault = err.Error()
		f.log.Warn("the files are not in force; what they had before is", zap.Error(err))
	}
}

func (f *Followed[T]) contents() ([][]byte, error) {
	contents := make([][]byte, len(f.paths))
	for i, path := range f.paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		contents[i] = content
	}
	return contents, nil
}
