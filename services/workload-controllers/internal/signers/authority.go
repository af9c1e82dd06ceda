package signers

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/spf13/pflag"
)

// serialBits is as many as make it sure that no two certificates have one number.
const serialBits = 127

// Files are where the authority that signs is, and how long what it signs lasts.
type Files struct {
	Certificate, Key string
	// Longest is how long a certificate lasts at most.
	Longest time.Duration
}

// DefaultFiles are no files, and a year.
func DefaultFiles() Files { return Files{Longest: 365 * 24 * time.Hour} }

// AddFlags binds the flags.
func (f *Files) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.Certificate, "cluster-signing-cert-file", f.Certificate,
		"PEM certificate of the authority that signs what CertificateSigningRequests ask the signers of Kubernetes "+
			"for; without it nobody signs here")
	fs.StringVar(&f.Key, "cluster-signing-key-file", f.Key, "PEM key of --cluster-signing-cert-file")
	fs.DurationVar(&f.Longest, "cluster-signing-duration", f.Longest,
		"how long a certificate lasts that is signed with --cluster-signing-key-file, unless less is asked for")
}

// Named reports whether there is an authority.
func (f Files) Named() bool { return f.Certificate != "" && f.Key != "" }

// Validate says what is wrong with the flags and the files.
func (f Files) Validate() error {
	switch {
	case (f.Certificate == "") != (f.Key == ""):
		return errors.New("--cluster-signing-cert-file: needs --cluster-signing-key-file, and the reverse")
	case f.Longest < shortest:
		return fmt.Errorf("--cluster-signing-duration: %s must be at least %s", f.Longest, shortest)
	case !f.Named():
		return nil
	}
	_, err := f.Load()
	return err
}

// Load reads the authority.
func (f Files) Load() (*Authority, error) {
	pair, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return nil, fmt.Errorf("--cluster-signing-cert-file: %w", err)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("--cluster-signing-key-file: %s holds no key that signs", f.Key)
	}
	if !pair.Leaf.IsCA {
		return nil, fmt.Errorf("--cluster-signing-cert-file: %s must begin with the certificate of an authority",
			f.Certificate)
	}
	return &Authority{Certificate: pair.Leaf, key: key}, nil
}

// Authority signs.
type Authority struct {
	Certificate *x509.Certificate
	key         crypto.Signer
}

// NewSerial is a number for a certificate.
func NewSerial() (*big.Int, error) {
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return number, nil
}

// Sign makes the template a certificate for the key, and encodes it.
func (a *Authority) Sign(template *x509.Certificate, key any) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
