// Package pki maintains the certificates of a mesh: it keeps those that are still good, and makes the others.
package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"keelson.dev/cli/internal/plan"
)

// authority is the cluster CA.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	// bridge is the certificate, in PEM, that clients need which trust only the previous authority.
	bridge []byte
}

// authorityName is the name of a mesh's first authority, and the prefix of the names of later ones.
const authorityName = "keelson-ca"

// Ensure makes every certificate that is missing or due, and returns the files that it wrote.
func Ensure(layout plan.Layout, certificates []plan.Certificate, now time.Time) (written []string, err error) {
	if err := os.MkdirAll(filepath.Dir(layout.PKI("ca.crt")), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the certificates: %w", err)
	}
	ca, made, err := ensureAuthority(layout, now)
	if err != nil {
		return nil, err
	}
	if made {
		written = append(written, "ca")
	}
	for _, certificate := range certificates {
		by, err := signer(layout, certificate, ca, now)
		if err != nil {
			return written, err
		}
		if good(layout, certificate, by, now) {
			continue
		}
		if err := issue(layout, certificate, by, now); err != nil {
			return written, fmt.Errorf("issuing %s: %w", certificate.File, err)
		}
		written = append(written, certificate.File)
	}
	made, err = ensureSigningKey(layout.PKI("service-account.key"))
	if made {
		written = append(written, "service-account")
	}
	return written, err
}

// ensureAuthority never replaces an existing CA, because all clients and servers trust it. A key without a
// certificate belongs to a CA whose certificate was not written yet or was lost: a new certificate makes the
// certificates that it has signed valid again.
func ensureAuthority(layout plan.Layout, now time.Time) (authority, bool, error) {
	if err := completeSwitch(layout); err != nil {
		return authority{}, false, err
	}
	certificate, key, err := load(layout, "ca")
	if err == nil {
		if now.After(certificate.NotAfter) {
			return authority{}, false,
				fmt.Errorf("the CA in %s has expired: remove the folder pki and the folder kubeconfig to begin anew",
					layout.PKI("ca.crt"))
		}
		bridge, err := bridgeTo(layout, certificate, now)
		return authority{certificate, key, bridge}, false, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return authority{}, false, fmt.Errorf("reading the CA: %w", err)
	}
	if _, err := os.Stat(layout.PKI("ca.crt")); !errors.Is(err, fs.ErrNotExist) {
		return authority{}, false,
			fmt.Errorf("reading the CA: its key is not in %s: put it back, or remove the folder pki and the folder "+
				"kubeconfig to begin anew", layout.PKI("ca.key"))
	}
	template := authorityTemplate(pkix.Name{CommonName: authorityName})
	if err := write(layout, "ca", template, nil, plan.Life(true), now); err != nil {
		return authority{}, false, fmt.Errorf("making the CA: %w", err)
	}
	certificate, key, err = load(layout, "ca")
	return authority{certificate, key, nil}, true, err
}

func authorityTemplate(name pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		Subject: name, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
}

// good reports whether the certificate on disk matches the plan.
func good(layout plan.Layout, want plan.Certificate, ca authority, now time.Time) bool {
	have, _, err := load(layout, want.File)
	return err == nil && plan.CertificateFault(want, held(have, ca.certificate), now) == ""
}

// Renew renews certificates, due or not, each with a new key if newKeys is set.
func Renew(layout plan.Layout, certificates []plan.Certificate, newKeys bool, now time.Time) error {
	ca, _, err := ensureAuthority(layout, now)
	if err != nil {
		return err
	}
	for _, certificate := range certificates {
		if newKeys {
			key := layout.PKI(certificate.File + ".key")
			if err := os.Remove(key); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("removing the key of %s: %w", certificate.File, err)
			}
		}
		by, err := signer(layout, certificate, ca, now)
		if err != nil {
			return err
		}
		if err := issue(layout, certificate, by, now); err != nil {
			return fmt.Errorf("issuing %s: %w", certificate.File, err)
		}
	}
	return nil
}

func issue(layout plan.Layout, want plan.Certificate, ca authority, now time.Time) error {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: want.User, Organization: want.Groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		DNSNames:    want.Hosts,
	}
	if want.Serves() {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	if want.Store {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	for _, address := range want.Addresses {
		template.IPAddresses = append(template.IPAddresses, net.IP(address.AsSlice()))
	}
	return write(layout, want.File, template, &ca, plan.Life(false), now)
}

// write makes a certificate for its key; without a parent it signs itself.
func write(layout plan.Layout, file string, template *x509.Certificate, parent *authority, life time.Duration,
	now time.Time) error {
	key, err := ensureKey(layout, file)
	if err != nil {
		return err
	}
	if template.SerialNumber, err = newSerial(); err != nil {
		return err
	}
	// Clients' clocks may be a little behind.
	template.NotBefore, template.NotAfter = now.Add(-5*time.Minute), now.Add(life)
	signer := authority{template, key, nil}
	if parent != nil {
		signer = *parent
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.certificate, key.Public(), signer.key)
	if err != nil {
		return fmt.Errorf("signing: %w", err)
	}
	return replaceFile(layout.PKI(file+".crt"), append(encodeCertificate(der), signer.bridge...))
}

func newSerial() (*big.Int, error) {
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return number, nil
}
