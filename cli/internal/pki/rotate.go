package pki

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"keelson.dev/cli/internal/discovery"
	"keelson.dev/cli/internal/plan"
)

// Authorities reads the state of the mesh's authorities on disk.
func Authorities(layout plan.Layout) (plan.Authorities, error) {
	bundle, err := Trusted(layout)
	if err != nil {
		return plan.Authorities{}, err
	}
	var a plan.Authorities
	for _, certificate := range bundle {
		a.Bundle = append(a.Bundle, discovery.PinOf(certificate))
	}
	key, err := keyutil.PrivateKeyFromFile(layout.PKI("ca.key"))
	if err != nil {
		return a, fmt.Errorf("reading the authority's key: %w", err)
	}
	for _, certificate := range bundle {
		if isKeyOf(key, certificate) {
			a.Key = discovery.PinOf(certificate)
		}
	}
	next, err := tls.LoadX509KeyPair(layout.PKI(plan.NextAuthority+".crt"), layout.PKI(plan.NextAuthority+".key"))
	if err == nil && next.Leaf.IsCA {
		a.Next = discovery.PinOf(next.Leaf)
	}
	bridge, err := readBridge(layout)
	if err != nil {
		return a, err
	}
	if bridge == nil {
		return a, nil
	}
	a.Bridge = discovery.PinOf(bridge)
	for _, certificate := range bundle {
		if bridge.CheckSignatureFrom(certificate) == nil {
			a.BridgeBy = discovery.PinOf(certificate)
		}
	}
	return a, nil
}

// Trusted returns the authorities of ca.crt, the one that signs first.
func Trusted(layout plan.Layout) ([]*x509.Certificate, error) {
	content, err := os.ReadFile(layout.PKI("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the mesh's authority: %w", err)
	}
	bundle, err := cert.ParseCertsPEM(content)
	if err != nil {
		return nil, fmt.Errorf("reading the mesh's authority: %s: %w", layout.PKI("ca.crt"), err)
	}
	return bundle, nil
}

func isKeyOf(key any, certificate *x509.Certificate) bool {
	signer, ok := key.(crypto.Signer)
	if !ok {
		return false
	}
	public, ok := signer.Public().(interface {
		Equal(other crypto.PublicKey) bool
	})
	return ok && public.Equal(certificate.PublicKey)
}

// readBridge returns nil if there is no bridge, or none that can be parsed.
func readBridge(layout plan.Layout) (*x509.Certificate, error) {
	content, err := os.ReadFile(layout.PKI(bridgeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what the authority before has signed: %w", err)
	}
	if certificates, err := cert.ParseCertsPEM(content); err == nil {
		return certificates[0], nil
	}
	return nil, nil
}

// bridgeTo returns the certificate, in PEM, through which clients that know only the previous authority trust this
// one; empty without one. It is appended to each certificate that the authority signs.
func bridgeTo(layout plan.Layout, authority *x509.Certificate, now time.Time) ([]byte, error) {
	bridge, err := readBridge(layout)
	if err != nil || bridge == nil || now.After(bridge.NotAfter) ||
		discovery.PinOf(bridge) != discovery.PinOf(authority) {
		return nil, err
	}
	return encodeCertificate(bridge.Raw), nil
}

// Rotate carries out a step.
func Rotate(layout plan.Layout, step plan.RotationStep, now time.Time) error {
	switch step {
	case plan.RotationMake:
		return makeNext(layout, now)
	case plan.RotationTrust:
		return trustNext(layout)
	case plan.RotationSwitch:
		return switchToNext(layout)
	case plan.RotationTidy:
		// The key is removed first: a certificate alone is no pair, and the next rotation replaces it.
		return errors.Join(remove(layout.PKI(plan.NextAuthority+".key")), remove(layout.PKI(plan.NextAuthority+".crt")))
	case plan.RotationFinish:
		return trustFirst(layout)
	case plan.RotationRest:
	}
	return nil
}

// makeNext makes an authority and has the one that signs vouch for it.
func makeNext(layout plan.Layout, now time.Time) error {
	ca, _, err := ensureAuthority(layout, now)
	if err != nil {
		return err
	}
	key, err := ensureKey(layout, plan.NextAuthority)
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(layout.PKI(plan.NextAuthority+".crt"), layout.PKI(plan.NextAuthority+".key"))
	if err != nil || !pair.Leaf.IsCA {
		template, err := nextTemplate(key)
		if err != nil {
			return err
		}
		if err := write(layout, plan.NextAuthority, template, nil, plan.Life(true), now); err != nil {
			return fmt.Errorf("making the next CA: %w", err)
		}
	}
	next, _, err := load(layout, plan.NextAuthority)
	if err != nil {
		return fmt.Errorf("reading the next CA: %w", err)
	}
	template := authorityTemplate(next.Subject)
	if template.SerialNumber, err = newSerial(); err != nil {
		return err
	}
	// It cannot be valid for longer than its signer.
	template.NotBefore, template.NotAfter = next.NotBefore, ca.certificate.NotAfter
	der, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, next.PublicKey, ca.key)
	if err != nil {
		return fmt.Errorf("signing the next CA: %w", err)
	}
	return replaceFile(layout.PKI(bridgeFile), encodeCertificate(der))
}

// nextTemplate returns a template with a unique name, so that a search for an authority by name finds one, not
// two.
func nextTemplate(key crypto.Signer) (*x509.Certificate, error) {
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("naming the next CA: %w", err)
	}
	sum := sha256.Sum256(public)
	return authorityTemplate(pkix.Name{CommonName: authorityName + "-" + hex.EncodeToString(sum[:4])}), nil
}

// trustNext adds the next authority to the bundle, after the one that signs.
func trustNext(layout plan.Layout) error {
	bundle, next, err := trustedAndNext(layout)
	if err != nil {
		return err
	}
	return trust(layout, append(bundle, next)...)
}

func trustedAndNext(layout plan.Layout) (bundle []*x509.Certificate, next *x509.Certificate, err error) {
	if bundle, err = Trusted(layout); err != nil {
		return nil, nil, err
	}
	if next, _, err = load(layout, plan.NextAuthority); err != nil {
		return nil, nil, fmt.Errorf("reading the next CA: %w", err)
	}
	return bundle, next, nil
}

// switchToNext puts the next authority first in the bundle and installs its key. Nothing is signed between the
// writes of the two files.
func switchToNext(layout plan.Layout) error {
	bundle, next, err := trustedAndNext(layout)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(layout.PKI(plan.NextAuthority + ".key"))
	if err != nil {
		return fmt.Errorf("reading the next CA's key: %w", err)
	}
	if err := replaceFile(layout.PKI("ca.key"), key); err != nil {
		return err
	}
	others := slices.DeleteFunc(bundle, func(c *x509.Certificate) bool {
		return discovery.PinOf(c) == discovery.PinOf(next)
	})
	return trust(layout, append([]*x509.Certificate{next}, others...)...)
}

// trustFirst keeps only the authority that signs.
func trustFirst(layout plan.Layout) error {
	bundle, err := Trusted(layout)
	if err != nil {
		return err
	}
	return trust(layout, bundle[0])
}

func trust(layout plan.Layout, bundle ...*x509.Certificate) error {
	var text bytes.Buffer
	for _, certificate := range bundle {
		text.Write(encodeCertificate(certificate.Raw))
	}
	return replaceFile(layout.PKI("ca.crt"), text.Bytes())
}

// completeSwitch completes a RotationSwitch during which keel was killed.
func completeSwitch(layout plan.Layout) error {
	a, err := Authorities(layout)
	if err != nil || !a.Switching() {
		return nil //nolint:nilerr // whoever reads the authority says what is wrong with it
	}
	return switchToNext(layout)
}

func remove(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", file, err)
	}
	return nil
}
