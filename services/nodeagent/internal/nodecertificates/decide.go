package nodecertificates

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// userPrefix and group identify a node to the API.
	userPrefix = "system:node:"
	group      = "system:nodes"
)

// found is what an agent that maintains a certificate of its own finds when it starts.
type found struct {
	Node string
	Now  time.Time
	// Kubeconfig means that the kubeconfig exists, NamesPair that its user has a client certificate; Named is that
	// certificate with its key, in PEM. Stored is the pair in the agent's own folder. Either is empty if it could not
	// be read.
	Kubeconfig, NamesPair bool
	Named, Stored         []byte
	// Bootstrap means that a first certificate can be requested, Rotate that certificates are renewed.
	Bootstrap, Rotate bool
}

// source is where the agent's client certificate comes from.
type source string

const (
	// asGiven is the pair of the kubeconfig, until it expires.
	asGiven source = "as given"
	// fromStore is the pair in the agent's own folder.
	fromStore source = "from the store"
	// seeded is the kubeconfig's pair, copied to the folder, to be renewed there.
	seeded source = "seeded"
	// asked is a new certificate, which a newly written kubeconfig names.
	asked source = "asked"
)

// decide returns where the certificate comes from, and why it is not the one that the kubeconfig names. A missing
// kubeconfig means a new start, even if the folder holds a pair: that may be of a mesh that no longer exists.
func decide(f found) (source, error) {
	if !f.Kubeconfig {
		return asked, errors.New("there is no kubeconfig")
	}
	if !f.NamesPair {
		return asGiven, nil
	}
	named, namedFault := judge(f.Named, f.Node, x509.ExtKeyUsageClientAuth, f.Now)
	stored, storedFault := judge(f.Stored, f.Node, x509.ExtKeyUsageClientAuth, f.Now)
	switch {
	case named != nil && !strings.HasPrefix(named.Leaf.Subject.CommonName, userPrefix):
		return asGiven, nil
	case namedFault == nil && !f.Rotate:
		return asGiven, nil
	case namedFault == nil && (storedFault != nil || stored.Leaf.NotBefore.Before(named.Leaf.NotBefore)):
		return seeded, nil
	case storedFault == nil:
		return fromStore, namedFault
	case f.Bootstrap:
		return asked, namedFault
	}
	return asGiven, namedFault
}

// judge returns the pair in a PEM text with a certificate and its key, as far as it can be read, and why the node
// cannot use it. A start in the future is no reason: whether the apiserver's clock or the node's is wrong is
// unknown.
func judge(pair []byte, node string, usage x509.ExtKeyUsage, now time.Time) (*tls.Certificate, error) {
	if len(pair) == 0 {
		return nil, errors.New("there is no certificate with a key")
	}
	read, err := tls.X509KeyPair(pair, pair)
	if err != nil {
		return nil, fmt.Errorf("the certificate or its key is damaged: %w", err)
	}
	leaf := read.Leaf
	usages := leaf.ExtKeyUsage
	switch {
	case leaf.Subject.CommonName != userPrefix+node:
		return &read, fmt.Errorf("the certificate is of %q, not of %q", leaf.Subject.CommonName, userPrefix+node)
	case !slices.Contains(leaf.Subject.Organization, group):
		return &read, fmt.Errorf("the certificate is not of the group %s", group)
	case len(usages) > 0 && !slices.Contains(usages, usage) && !slices.Contains(usages, x509.ExtKeyUsageAny):
		return &read, errors.New("the certificate is for another use")
	case !now.Before(leaf.NotAfter):
		return &read, fmt.Errorf("the certificate has expired at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return &read, nil
}

// clientRequest returns a node's request for a client certificate.
func clientRequest(node string) *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: pkix.Name{CommonName: userPrefix + node, Organization: []string{group}}}
}
