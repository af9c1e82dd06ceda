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

// servingFile is the name of the serving certificate's file in the folder, that of the kubelet.
const servingFile = "kubelet-server-current.pem"

// errNoServing is what a client's handshake ends with.
var errNoServing = errors.New("the node has no serving certificate that is valid now: its request " +
	"(kubectl get csr) has to be approved and signed")

// ServingConfig is what a Serving needs.
type ServingConfig struct {
	// Dir is the folder of the certificate, Node the node's name.
	Dir, Node string
	Client    kubernetes.Interface
	// Authorities are by whom the node knows the apiserver: what the first has not signed, but another one, is asked
	// for anew when the agent starts.
	Authorities []*x509.Certificate
	// Addresses are the Node's, as the API has them; none before it is registered.
	Addresses func() []corev1.NodeAddress
	// Given is what is shown while the node has no certificate that was signed for it; nil for nothing.
	Given func() *tls.Certificate
	// Failed counts the requests that came to nothing; it may be nil.
	Failed certificate.Counter
	Log    *zap.Logger
}

// Serving is the certificate of the node API, for which the node asks: first, before it expires, and when the node has
// an address that it lacks. Until the next one is there, clients see the one before.
type Serving struct {
	ServingConfig
	manager certificate.Manager
}

// NewServing takes up the certificate that the folder holds, if that is of use. Nothing is asked before Run.
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

// Run asks for certificates until ctx ends. What there is goes on being shown.
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

// awaitAddresses waits until there is something to ask for; false: ctx has ended. A Manager that is started before
// forgets that a pair is wanted in place of the one that there is.
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

// Certificate returns the one to show to a client.
func (s *Serving) Certificate() (*tls.Certificate, error) {
	if current := s.manager.Current(); current != nil {
		return current, nil
	}
	if s.Given != nil {
		return s.Given(), nil
	}
	return nil, errNoServing
}

// telling is a store that tells of each pair that it takes.
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
