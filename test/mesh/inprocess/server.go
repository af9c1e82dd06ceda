package inprocess

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"

	certutil "k8s.io/client-go/util/cert"

	apiserver "keelson.dev/services/apiserver/inproc"
	"keelson.dev/test/mesh"
)

// admin is the operator.
const admin mesh.Daemon = "admin"

// tokens stand for the client certificates of an installation; the users are those of docs/explanation/architecture.md.
var tokens = map[mesh.Daemon]string{
	admin: "admin-token", mesh.Scheduler: "scheduler-token", mesh.WorkloadControllers: "workload-controllers-token",
	mesh.PodGC: "podgc-token",
}

const tokenFile = `admin-token,kubernetes-admin,1,"system:masters"
scheduler-token,system:kube-scheduler,2
workload-controllers-token,system:keelson:workload-controllers,3
podgc-token,system:keelson:podgc,4
`

// serverConfig prepares an apiserver below dir.
func serverConfig(dir string) (*apiserver.Config, error) {
	config := apiserver.NewConfig()
	config.DataDir = filepath.Join(dir, "data")
	config.BindAddress, config.SecurePort = "127.0.0.1", 0
	config.DialExtension = dialExtension
	config.EnableBootstrapTokenAuth = true
	config.TokenAuthFile = filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(config.TokenAuthFile, []byte(strings.TrimSpace(tokenFile)), 0o600); err != nil {
		return nil, fmt.Errorf("writing the tokens: %w", err)
	}
	// A certificate on disk, so that clients still trust the server after a restart.
	cert, certKey, err := certutil.GenerateSelfSignedCertKey(config.BindAddress,
		[]net.IP{net.ParseIP(config.BindAddress)}, nil)
	if err != nil {
		return nil, fmt.Errorf("making the serving certificate: %w", err)
	}
	config.TLSCertFile, config.TLSPrivateKeyFile = filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key")
	if err := errors.Join(os.WriteFile(config.TLSCertFile, cert, 0o600), os.WriteFile(config.TLSPrivateKeyFile, certKey,
		0o600)); err != nil {
		return nil, fmt.Errorf("writing the serving certificate: %w", err)
	}
	if err := writeAuthority(config, dir); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the signing key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("making the signing key: %w", err)
	}
	config.ServiceAccountSigningKeyFile = filepath.Join(dir, "service-account.key")
	block := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err := os.WriteFile(config.ServiceAccountSigningKeyFile, block, 0o600); err != nil {
		return nil, fmt.Errorf("writing the signing key: %w", err)
	}
	return config, nil
}

// authorityKey is the file of the key of the authority whose certificate is ClientCAFile.
const authorityKey = "ca.key"

// writeAuthority makes the authority of client certificates, and of those of nodes.
func writeAuthority(config *apiserver.Config, dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the authority's key: %w", err)
	}
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: "mesh"}, key)
	if err != nil {
		return fmt.Errorf("making the authority's certificate: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding the authority's key: %w", err)
	}
	// What the apiserver shows to nodeagents, with the authority's key.
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: certificate.NotBefore,
		NotAfter: certificate.NotAfter, Subject: pkix.Name{CommonName: "system:keelson:apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	own, err := x509.CreateCertificate(rand.Reader, template, certificate, key.Public(), key)
	if err != nil {
		return fmt.Errorf("making the apiserver's client certificate: %w", err)
	}
	config.ClientCAFile = filepath.Join(dir, "ca.crt")
	config.Nodeagents.CertificateAuthority = config.ClientCAFile
	config.Nodeagents.ClientCertificate = filepath.Join(dir, "nodeagent-client.crt")
	config.Nodeagents.ClientKey = filepath.Join(dir, authorityKey)
	for path, block := range map[string]*pem.Block{
		config.ClientCAFile:                 {Type: "CERTIFICATE", Bytes: certificate.Raw},
		config.Nodeagents.ClientCertificate: {Type: "CERTIFICATE", Bytes: own},
		config.Nodeagents.ClientKey:         {Type: "EC PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			return fmt.Errorf("writing the authority: %w", err)
		}
	}
	return nil
}

// dialExtension leads to an API server that listens on a loopback address, where the apiserver itself goes not.
func dialExtension(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != mesh.ExtensionIP {
		return nil, fmt.Errorf("no API server of a scenario is at %s", address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
}
