package pki

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"keelson.dev/cli/internal/plan"
)

// meshAuthority is the certificate of the mesh's authority.
const meshAuthority = "pki/ca.crt"

// Read reads the certificates in files and returns the results by path below the data directory. Errors are part
// of the result.
func Read(layout plan.Layout, files []plan.CertificateFile) map[string]plan.ReadCertificate {
	found := map[string]plan.ReadCertificate{}
	// Without an authority, no certificate counts as signed by it.
	mesh, _ := readCertificate(layout, meshAuthority)
	store, _ := readCertificate(layout, plan.StoreAuthorityPath)
	for _, file := range files {
		authority := mesh
		if file.Path == plan.StoreAuthorityPath || file.Want != nil && file.Want.Store {
			authority = store
		}
		certificate, err := readCertificate(layout, file.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			found[file.Path] = plan.ReadCertificate{Missing: true}
		case err != nil:
			found[file.Path] = plan.ReadCertificate{Fault: err.Error()}
		default:
			found[file.Path] = plan.ReadCertificate{Held: held(certificate, authority)}
		}
	}
	return found
}

// readCertificate reads the certificate of a file and checks that its key is there, except for an authority.
func readCertificate(layout plan.Layout, path string) (*x509.Certificate, error) {
	file := filepath.Join(layout.Dir, path)
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key := content
	switch {
	case path == meshAuthority, path == plan.StoreAuthorityPath:
		block, _ := pem.Decode(content)
		if block == nil {
			return nil, errors.New("it holds no PEM certificate")
		}
		return x509.ParseCertificate(block.Bytes)
	case strings.HasSuffix(path, ".kubeconfig"):
		if content, key, err = userOf(content); err != nil {
			return nil, err
		}
	case strings.HasSuffix(path, ".crt"):
		if key, err = os.ReadFile(strings.TrimSuffix(file, ".crt") + ".key"); err != nil {
			return nil, fmt.Errorf("its key is of no use: %v", err) //nolint:errorlint // the certificate is there
		}
	}
	pair, err := tls.X509KeyPair(content, key)
	if err != nil {
		return nil, err
	}
	return pair.Leaf, nil
}

// userOf returns the certificate and the key of the only user of a kubeconfig.
func userOf(content []byte) (certificate, key []byte, err error) {
	config, err := clientcmd.Load(content)
	if err != nil {
		return nil, nil, err
	}
	for _, user := range config.AuthInfos {
		return user.ClientCertificateData, user.ClientKeyData, nil
	}
	return nil, nil, errors.New("it has no user")
}

// held returns the properties of a certificate; the authority may be nil.
func held(certificate, authority *x509.Certificate) plan.HeldCertificate {
	sum := sha256.Sum256(certificate.Raw)
	h := plan.HeldCertificate{User: certificate.Subject.CommonName, Groups: certificate.Subject.Organization,
		Hosts: certificate.DNSNames, Signer: certificate.Issuer.CommonName, CA: certificate.IsCA,
		NotBefore: certificate.NotBefore, NotAfter: certificate.NotAfter, Sum: hex.EncodeToString(sum[:]),
		Vouched: authority != nil && (bytes.Equal(certificate.Raw, authority.Raw) ||
			certificate.CheckSignatureFrom(authority) == nil)}
	for _, ip := range certificate.IPAddresses {
		if address, ok := netip.AddrFromSlice(ip); ok {
			h.Addresses = append(h.Addresses, address.Unmap())
		}
	}
	return h
}
