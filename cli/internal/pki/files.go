package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/google/renameio/v2"

	"keelson.dev/cli/internal/plan"
)

// load reads a certificate and its key and checks that they belong together.
func load(layout plan.Layout, file string) (*x509.Certificate, crypto.Signer, error) {
	pair, err := tls.LoadX509KeyPair(layout.PKI(file+".crt"), layout.PKI(file+".key"))
	if err != nil {
		return nil, nil, err
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, nil, fmt.Errorf("the key in %s cannot sign", layout.PKI(file+".key"))
	}
	return pair.Leaf, key, nil
}

// ensureSigningKey keeps a key that is there: tokens out in the world were signed with it.
func ensureSigningKey(file string) (made bool, err error) {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return false, fmt.Errorf("making the key of service-account tokens: %w", err)
	}
	content, err := encodeKey(key)
	if err != nil {
		return false, err
	}
	return true, replaceFile(file, content)
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// replaceFile writes a file that only its owner reads; a reader sees the old content or the new one, also after a power
// failure.
func replaceFile(file string, content []byte) error {
	if err := renameio.WriteFile(file, content, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}

// replacePair writes a key and its certificate as replaceFile does, the one right after the other: a daemon that looks
// for a new pair between them finds two that do not belong together, says so and looks again.
func replacePair(file string, key, certificate []byte) error {
	var pair []*renameio.PendingFile
	for _, part := range []struct {
		suffix  string
		content []byte
	}{{".key", key}, {".crt", certificate}} {
		pending, err := renameio.NewPendingFile(file+part.suffix, renameio.WithStaticPermissions(0o600))
		if err != nil {
			return fmt.Errorf("writing %s: %w", file+part.suffix, err)
		}
		defer pending.Cleanup() //nolint:errcheck // there is nothing left of it once it has its place
		if _, err := pending.Write(part.content); err != nil {
			return fmt.Errorf("writing %s: %w", file+part.suffix, err)
		}
		if err := pending.Sync(); err != nil { // here, where it delays nothing
			return fmt.Errorf("writing %s: %w", file+part.suffix, err)
		}
		pair = append(pair, pending)
	}
	for _, pending := range pair {
		if err := pending.CloseAtomicallyReplace(); err != nil {
			return fmt.Errorf("writing %s: %w", pending.Name(), err)
		}
	}
	return nil
}
