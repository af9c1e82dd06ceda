package nodecertificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/certificate"
)

// servingFile is the name of the serving certificate's file in the folder, the same as the kubelet's.
const servingFile = "kubelet-server-current.pem"

// errNoServing ends a client's handshake.
var errNoServing = errors.New("the node has no serving certificate that is valid now: its request " +
	"(kubectl get csr) has to be approved and signed")

// ServingConfig is what a Serving needs.
type ServingConfig struct {
	// Dir is the folder of the certificate, Node the node's name.
	Dir, Node string
	Client    kubernetes.Interface
	// Authorities are the authorities that the node trusts for the apiserver: when the agent starts, a certificate
	// that another than the first of them has signed is requested again.
	Authorities []*x509.Certificate
	// Addresses returns the Node's addresses in the API; none before it is registered.
	Addresses func() []corev1.NodeAddress
	// Given returns the certificate to show while the node has no signed one; nil for none.
	Given func() *tls.Certificate
	// Failed counts failed requests; it may be nil.
	Failed certificate.Counter
	Log    *zap.Logger
}

// Serving maintains the certificate of the node API. The node requests it at first, before it expires, and when the
// node has an address that it lacks. Until the next one arrives, clients see the one before.
type Serving struct {
	ServingConfig
	manager certificate.Manager
}

// NewServing takes the certificate in the folder, if it is usable. It requests nothing before Run.
func NewServing(c ServingConfig) (*Serving, error) {
	pairs, err := openStore(c.Dir, servingFile, c.Node, x509.ExtKeyUsageServerAuth)
	if err != nil {
		return nil, err
	}
	config, err := pairs.renewing(telling{pairs, c.Log}, c.Authorities)
	if err != nil {
		return nil, err
	}
	if config.BootstrapCertificatePEM != nil {
		c.Log.Info("asking for a serving certificate of the mesh's new authority, which somebody has to approve")
	}
	config.Name, config.SignerName = "serving-certificate", certificatesv1.KubeletServingSignerName
	config.ClientsetFn = func(*tls.Certificate) (kubernetes.Interface, error) { return c.Client, nil }
	config.GetTemplate = func() *x509.CertificateRequest { return servingRequest(c.Node, c.Addresses()) }
	config.GetUsages, config.CertificateRenewFailure = certificate.DefaultKubeletServingGetUsages, c.Failed
	manager, err := certificate.NewManager(config)
	if err != nil {
		return nil, fmt.Errorf("asking for serving certificates: %w", err)
	}
	return &Serving{c, manager}, nil
}

// Run requests certificates until ctx ends. The existing one is shown meanwhile.
func (s *Serving) Run(ctx context.Context) {
	if s.manager.Current() == nil {
		s.Log.Info("asking for the serving certificate of the node API, which somebody has to approve")
	}
	if !s.awaitAddresses(ctx) {
		return
	}
	s.manager.Start()
	<-ctx.Done()
	s.manager.Stop()
}

// awaitAddresses waits until a certificate can be requested; false if ctx has ended. A Manager that is started
// earlier forgets that it has to replace the existing pair.
func (s *Serving) awaitAddresses(ctx context.Context) bool {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for servingRequest(s.Node, s.Addresses()) == nil {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}

// Certificate returns the certificate to show to a client.
func (s *Serving) Certificate() (*tls.Certificate, error) {
	if current := s.manager.Current(); current != nil {
		return current, nil
	}
	if s.Given != nil {
		return s.Given(), nil
	}
	return nil, errNoServing
}

// telling is a store that logs each new pair.
type telling struct {
	*store
	log *zap.Logger
}

// Update implements certificate.Store.
func (t telling) Update(cert, key []byte) (*tls.Certificate, error) {
	fresh, err := t.store.Update(cert, key)
	if err == nil {
		t.log.Info("the node has a new serving certificate", zap.String("file", t.file),
			zap.Strings("names", fresh.Leaf.DNSNames), zap.Any("addresses", fresh.Leaf.IPAddresses),
			zap.Time("until", fresh.Leaf.NotAfter))
	}
	return fresh, err
}
