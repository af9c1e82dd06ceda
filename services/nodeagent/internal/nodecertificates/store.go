package nodecertificates

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/certificate"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/wholefile"
)

// store keeps a node's certificate and its key in one file, which always holds a complete pair: the old one or the
// new one. It implements certificate.Store.
type store struct {
	file  string
	node  string
	usage x509.ExtKeyUsage
}

// openStore creates the folder of the file if it is missing, and removes what an interrupted write has left there.
func openStore(dir, name, node string, usage x509.ExtKeyUsage) (*store, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("making the folder of certificates: %w", err)
	}
	if err := wholefile.Clear(dir, name); err != nil {
		return nil, fmt.Errorf("opening the folder of certificates: %w", err)
	}
	return &store{file: filepath.Join(dir, name), node: node, usage: usage}, nil
}

// read returns the contents of the file; nil if it does not exist.
func (s *store) read() ([]byte, error) {
	data, err := os.ReadFile(s.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the node's certificate: %w", err)
	}
	return data, nil
}

// Current implements certificate.Store. It treats an unusable pair as missing, so that another is requested.
func (s *store) Current() (*tls.Certificate, error) {
	data, err := s.read()
	if err != nil {
		return nil, err
	}
	current, err := judge(data, s.node, s.usage, time.Now())
	if err != nil {
		return nil, new(certificate.NoCertKeyError(err.Error()))
	}
	return current, nil
}

// Update implements certificate.Store. It refuses an unusable pair, regardless of its signer, and keeps the old
// one.
func (s *store) Update(cert, key []byte) (*tls.Certificate, error) {
	data := joined(cert, key)
	fresh, err := judge(data, s.node, s.usage, time.Now())
	if err != nil {
		return nil, fmt.Errorf("taking the new certificate: %w", err)
	}
	err = failpoint.Around("nodeagent/certificate.write", func() error {
		return wholefile.Write(s.file, data, 0o600)
	})
	if err != nil {
		return nil, fmt.Errorf("writing the node's certificate: %w", err)
	}
	return fresh, nil
}

// joined returns a certificate and its key in one text; nil if either is missing.
func joined(certificate, key []byte) []byte {
	if len(certificate) == 0 || len(key) == 0 {
		return nil
	}
	return bytes.Join([][]byte{bytes.TrimSpace(certificate), bytes.TrimSpace(key), nil}, []byte("\n"))
}
