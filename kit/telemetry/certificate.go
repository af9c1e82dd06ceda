package telemetry

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// selfSignedLife is how long a certificate made in memory is valid; every start makes another.
const selfSignedLife = 10 * 365 * 24 * time.Hour

func tlsConfig(o Options) (*tls.Config, error) {
	certificate, err := certificate(o)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
	}
	if o.ClientCAFile == "" {
		return config, nil
	}
	bundle, err := os.ReadFile(o.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("--status-client-ca-file: %w", err)
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(bundle) {
		return nil, fmt.Errorf("--status-client-ca-file: %s holds no PEM certificate", o.ClientCAFile)
	}
	config.ClientAuth = tls.VerifyClientCertIfGiven
	return config, nil
}

func certificate(o Options) (tls.Certificate, error) {
	if (o.CertFile == "") != (o.KeyFile == "") {
		return tls.Certificate{}, fmt.Errorf("--status-cert-file and --status-key-file must be given together")
	}
	if o.CertFile == "" {
		return selfSigned(o.Address)
	}
	certificate, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("--status-cert-file: %w", err)
	}
	return certificate, nil
}

func selfSigned(address string) (tls.Certificate, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("--status-address: %q must have the form HOST:PORT", address)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making the status certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "keelson-status"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(selfSignedLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making the status certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
