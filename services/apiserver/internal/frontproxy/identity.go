// Package frontproxy is how the apiserver shows other API servers that a request comes from it, and for whom.
//
// It has a certificate of an authority that signs nothing else: the authority's key is thrown away once it has signed.
// Certificate and key are in a Secret, so that all apiservers on a store are one to others, also after a restart; the
// authority is public in the ConfigMap extension-apiserver-authentication, where others look it up.
package frontproxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"sync/atomic"
	"time"
)

const (
	// CommonName is in the certificate; requestheader-allowed-names names it.
	CommonName = "keelson-front-proxy"
	validity   = 10 * 365 * 24 * time.Hour
	// renewBefore is how long before its end a certificate is replaced. Who asks does so every minute.
	renewBefore = 30 * 24 * time.Hour
)

// Pair is a certificate with its key and the authority that signed it, in PEM.
type Pair struct{ Authority, Certificate, Key []byte }

// New makes a pair that is valid from now on.
func New(now time.Time) (Pair, error) {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making the front proxy's authority: %w", err)
	}
	authority := template(now, CommonName+"-ca")
	authority.IsCA, authority.BasicConstraintsValid, authority.MaxPathLenZero = true, true, true
	authority.KeyUsage = x509.KeyUsageCertSign
	signed, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return Pair{}, fmt.Errorf("making the front proxy's authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making the front proxy's key: %w", err)
	}
	client := template(now, CommonName)
	client.KeyUsage, client.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	certificate, err := x509.CreateCertificate(rand.Reader, client, authority, key.Public(), authorityKey)
	if err != nil {
		return Pair{}, fmt.Errorf("making the front proxy's certificate: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("making the front proxy's key: %w", err)
	}
	return Pair{Authority: encoded("CERTIFICATE", signed), Certificate: encoded("CERTIFICATE", certificate),
		Key: encoded("EC PRIVATE KEY", der)}, nil
}

func template(now time.Time, name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // rand.Reader does not fail
	// An hour earlier, for clocks that are behind.
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity)}
}

func encoded(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// Check says why the pair must be replaced by another; nil: it need not.
func (p Pair) Check(now time.Time) error {
	pair, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return fmt.Errorf("certificate and key do not go together: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(p.Authority) {
		return errors.New("the authority is no certificate")
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now.Add(renewBefore),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return fmt.Errorf("the certificate is not that of the authority, or ends soon: %w", err)
	}
	return nil
}

// Identity is the certificate in use. The zero value shows none.
type Identity struct {
	current atomic.Pointer[tls.Certificate]
}

// Use makes further connections show the pair.
func (i *Identity) Use(p Pair) error {
	pair, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return fmt.Errorf("using the front proxy's certificate: %w", err)
	}
	i.current.Store(&pair)
	return nil
}

// Certificate is a tls.Config's GetClientCertificate. The other side may name the authorities that it believes; the
// certificate is shown whether it names ours or not, since it may not have read the ConfigMap yet.
func (i *Identity) Certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if pair := i.current.Load(); pair != nil {
		return pair, nil
	}
	return &tls.Certificate{}, nil
}
