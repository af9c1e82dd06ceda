package nodecertificates

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate"
)

// passing is a store whose pair is shown only until a pair of the current authority arrives, which is requested at
// once. The Manager does that for a pair that comes from outside its store.
type passing struct {
	certificate.Store
	pair []byte
}

// Current implements certificate.Store.
func (passing) Current() (*tls.Certificate, error) {
	return nil, new(certificate.NoCertKeyError("a certificate of the new authority is wanted"))
}

// Update implements certificate.Store. It does not write the pair itself again.
func (p passing) Update(cert, key []byte) (*tls.Certificate, error) {
	if !bytes.Equal(cert, p.pair) {
		return p.Store.Update(cert, key)
	}
	current, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("reading the node's certificate: %w", err)
	}
	return &current, nil
}

// renewing returns the configuration of a Manager for the pairs in a store that replaces a pair of an authority
// that no longer signs. bundle are the authorities that the node trusts for the apiserver.
func (s *store) renewing(as certificate.Store, bundle []*x509.Certificate) (*certificate.Config, error) {
	current, err := s.Current()
	var none *certificate.NoCertKeyError
	if errors.As(err, &none) || err == nil && !superseded(current.Leaf, bundle) {
		return &certificate.Config{CertificateStore: as}, nil
	}
	if err != nil {
		return nil, err
	}
	pair, err := s.read()
	if err != nil {
		return nil, err
	}
	return &certificate.Config{CertificateStore: passing{as, pair}, BootstrapCertificatePEM: pair,
		BootstrapKeyPEM: pair}, nil
}

// Authorities returns the authorities that a connection trusts for its server; none if it trusts the system's.
func Authorities(config *rest.Config) ([]*x509.Certificate, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("reading whom the node trusts: %w", err)
	}
	if len(config.CAData) == 0 {
		return nil, nil
	}
	bundle, err := cert.ParseCertsPEM(config.CAData)
	if err != nil {
		return nil, fmt.Errorf("reading whom the node trusts: %w", err)
	}
	return bundle, nil
}
