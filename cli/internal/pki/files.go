package pki

import (
	"bytes"
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
	"path/filepath"

	"github.com/google/renameio/v2"
	"k8s.io/client-go/util/keyutil"

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

// ensureSigningKey keeps an existing key, because tokens in use are signed with it.
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

// ensureKey returns the key of a certificate, and makes a missing one. A renewed certificate keeps its key: the
// two are never replaced together, so that after a crash no reader finds a key and a certificate that do not
// match.
func ensureKey(layout plan.Layout, file string) (crypto.Signer, error) {
	content, err := os.ReadFile(layout.PKI(file + ".key"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading a key: %w", err)
	}
	// A file without a key counts as missing.
	if known, err := keyutil.ParsePrivateKeyPEM(content); err == nil {
		if key, ok := known.(crypto.Signer); ok {
			return key, nil
		}
	}
	// The certificate belongs to a key that is gone.
	if err := os.Remove(layout.PKI(file + ".crt")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("removing a certificate whose key is gone: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	if content, err = encodeKey(key); err != nil {
		return nil, err
	}
	return key, replaceFile(layout.PKI(file+".key"), content)
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

// replaceFile writes a file that only its owner can read; a reader sees the old content or the new one, also after
// a power failure.
func replaceFile(file string, content []byte) error {
	if err := renameio.WriteFile(file, content, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}

// ensureFile writes a file as replaceFile does, if it is missing or differs.
func ensureFile(path string, content []byte) error {
	have, err := os.ReadFile(path)
	if err == nil && bytes.Equal(have, content) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the folder of %s: %w", path, err)
	}
	return replaceFile(path, content)
}

// EnsureForeignAuthorities writes the authorities of a mesh whose key is on another machine, and updates the
// authorities and the URL of the mesh in the agent's kubeconfig, if that exists. It writes the bundle last,
// because the agent is restarted for it.
func EnsureForeignAuthorities(layout plan.Layout, agentKubeconfig, server string, bundle []byte) error {
	if err := ensureCluster(agentKubeconfig, server, bundle); err != nil {
		return err
	}
	return ensureFile(layout.PKI("ca.crt"), bundle)
}
