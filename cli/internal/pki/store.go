package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"keelson.dev/cli/internal/plan"
)

// signer returns the authority for a certificate: the mesh's or the store's.
func signer(layout plan.Layout, certificate plan.Certificate, mesh authority, now time.Time) (authority, error) {
	if !certificate.Store {
		return mesh, nil
	}
	return ensureStoreAuthority(layout, now)
}

// ensureStoreAuthority never replaces an existing authority, because the other machines that have the store trust
// it.
func ensureStoreAuthority(layout plan.Layout, now time.Time) (authority, error) {
	certificate, key, err := load(layout, plan.StoreAuthority)
	if err == nil {
		return authority{certificate: certificate, key: key}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return authority{}, fmt.Errorf("reading the store's authority: %w", err)
	}
	if _, err := os.Stat(layout.PKI(plan.StoreAuthority + ".crt")); !errors.Is(err, fs.ErrNotExist) {
		return authority{}, fmt.Errorf("reading the store's authority: its key is not in %s: put it back, from "+
			"another machine of the control plane", layout.PKI(plan.StoreAuthority+".key"))
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "keelson-store-ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if err := write(layout, plan.StoreAuthority, template, nil, plan.Life(true), now); err != nil {
		return authority{}, fmt.Errorf("making the store's authority: %w", err)
	}
	certificate, key, err = load(layout, plan.StoreAuthority)
	return authority{certificate: certificate, key: key}, err
}

// ReadShared reads the files that every machine of the control plane has.
func ReadShared(layout plan.Layout) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range plan.SharedFiles() {
		content, err := os.ReadFile(layout.PKI(name))
		if err != nil {
			return nil, fmt.Errorf("reading what the control plane shares: %w", err)
		}
		files[name] = content
	}
	bridge, err := os.ReadFile(layout.PKI(bridgeFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading what the control plane shares: %w", err)
	}
	if err == nil {
		files[bridgeFile] = bridge
	}
	return files, nil
}

// bridgeFile is shared too if the mesh's authority was replaced: with it, clients that know the previous authority
// trust the apiserver of the machine that joins.
const bridgeFile = plan.AuthorityBridge + ".crt"

// WriteShared writes these files on a machine that joins the control plane.
func WriteShared(layout plan.Layout, files map[string][]byte) error {
	if bridge := files[bridgeFile]; len(bridge) > 0 {
		if err := ensureFile(layout.PKI(bridgeFile), bridge); err != nil {
			return err
		}
	}
	for _, name := range plan.SharedFiles() {
		if err := ensureFile(layout.PKI(name), files[name]); err != nil {
			return err
		}
	}
	return nil
}

// WriteEncryption writes the store's encryption configuration, including its keys.
func WriteEncryption(layout plan.Layout, content []byte) error {
	return ensureFile(layout.Encryption(), content)
}

// HasShared reports whether the machine has all files that every machine of the control plane has.
func HasShared(layout plan.Layout) bool {
	for _, name := range plan.SharedFiles() {
		if _, err := os.Stat(layout.PKI(name)); err != nil {
			return false
		}
	}
	return true
}
