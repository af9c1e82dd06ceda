// Package signers says what the signers of Kubernetes issue: who may have which certificate for what.
//
//	decide_rules.go     what each signer issues (pure)
//	decide_template.go  what is in a certificate (pure)
//	authority.go        the certificate and key that sign
//
// The rules are those of
// https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers.
package signers

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
)

const (
	// nodesGroup is the organization of nodes, nodePrefix what their names begin with.
	nodesGroup, nodePrefix = "system:nodes", "system:node:"
	// everything is the group whose members may do everything: no certificate is issued for it.
	everything = "system:masters"
	// minRSABits is what a key must have to be worth a certificate.
	minRSABits = 2048
)

// rule says why a signer does not issue what is asked for.
type rule func(request *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error

var rules = map[string]rule{
	certificatesv1.KubeAPIServerClientSignerName:        checkClient,
	certificatesv1.KubeAPIServerClientKubeletSignerName: checkNodeClient,
	certificatesv1.KubeletServingSignerName:             checkNodeServing,
}

// Names are the signers.
func Names() []string {
	return []string{certificatesv1.KubeAPIServerClientSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName,
		certificatesv1.KubeletServingSignerName}
}

// Check says why the signer does not issue what is asked for; nil: it does. It must be one of Names.
func Check(signer string, request *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	check, known := rules[signer]
	if !known {
		return fmt.Errorf("%q is no signer of Kubernetes", signer)
	}
	if err := checkKey(request.PublicKey); err != nil {
		return err
	}
	if asksForAuthority(request) {
		return errors.New("no certificate of an authority is issued (basicConstraints with CA:TRUE)")
	}
	if slices.Contains(request.Subject.Organization, everything) {
		return fmt.Errorf("no certificate is issued for the group %s", everything)
	}
	return check(request, usages)
}

func checkKey(key any) error {
	switch key := key.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSABits {
			return fmt.Errorf("an RSA key must have at least %d bits, not %d", minRSABits, bits)
		}
	case *ecdsa.PublicKey:
		if !slices.Contains([]elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()}, key.Curve) {
			return fmt.Errorf(
				"an ECDSA key must be of the curve P-256, P-384 or P-521, not %s",
				key.Curve.Params().Name,
			)
		}
	case ed25519.PublicKey:
	default:
		return errors.New("a key must be of RSA, ECDSA or Ed25519")
	}
	return nil
}

// basicConstraints is the extension in which a certificate says whether it is that of an authority.
var basicConstraints = asn1.ObjectIdentifier{2, 5, 29, 19}

// asksForAuthority reports whether the certificate is to be one that signs others. What cannot be read asks for
// anything.
func asksForAuthority(request *x509.CertificateRequest) bool {
	for _, extension := range request.Extensions {
		if !extension.Id.Equal(basicConstraints) {
			continue
		}
		var value struct {
			IsCA       bool `asn1:"optional"`
			MaxPathLen int  `asn1:"optional,default:-1"`
		}
		if rest, err := asn1.Unmarshal(extension.Value, &value); err != nil || len(rest) > 0 || value.IsCA {
			return true
		}
	}
	return false
}

// checkClient is the rule of client certificates for anybody, of whom somebody says that he may have them.
func checkClient(_ *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	return checkUsages(usages, certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature,
		certificatesv1.UsageKeyEncipherment)
}

// checkUsages wants the usage to be among them, and none but the optional ones beside it.
func checkUsages(usages []certificatesv1.KeyUsage, wanted certificatesv1.KeyUsage,
	optional ...certificatesv1.KeyUsage) error {
	for _, usage := range usages {
		if usage != wanted && !slices.Contains(optional, usage) {
			return fmt.Errorf("usages: %q is not allowed beside %q", usage, wanted)
		}
	}
	if !slices.Contains(usages, wanted) {
		return fmt.Errorf("usages: must include %q", wanted)
	}
	return nil
}

// checkNodeClient is the rule of the certificates by which nodes are clients.
func checkNodeClient(request *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	if err := checkNode(request); err != nil {
		return err
	}
	if len(request.DNSNames) > 0 || len(request.IPAddresses) > 0 {
		return errors.New("subjectAltName: DNS names and IP addresses are not allowed")
	}
	return checkNodeUsages(usages, certificatesv1.UsageClientAuth)
}

// checkNodeServing is the rule of the certificates by which nodes are servers.
func checkNodeServing(request *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	if err := checkNode(request); err != nil {
		return err
	}
	if len(request.DNSNames)+len(request.IPAddresses) == 0 {
		return errors.New("subjectAltName: at least one DNS name or IP address is required")
	}
	return checkNodeUsages(usages, certificatesv1.UsageServerAuth)
}

// checkNode is what certificates of nodes have in common.
func checkNode(request *x509.CertificateRequest) error {
	if !slices.Equal(request.Subject.Organization, []string{nodesGroup}) {
		return fmt.Errorf(
			"subject: the organization must be %s alone, not %q",
			nodesGroup,
			request.Subject.Organization,
		)
	}
	if name := request.Subject.CommonName; !strings.HasPrefix(name, nodePrefix) || name == nodePrefix {
		return fmt.Errorf("subject: the common name must be %sNAME, not %q", nodePrefix, name)
	}
	if len(request.EmailAddresses) > 0 || len(request.URIs) > 0 {
		return errors.New("subjectAltName: email addresses and URIs are not allowed")
	}
	return nil
}

// checkNodeUsages wants just what nodes use a certificate for. Keys other than RSA encipher none.
func checkNodeUsages(usages []certificatesv1.KeyUsage, wanted certificatesv1.KeyUsage) error {
	if err := checkUsages(usages, wanted, certificatesv1.UsageDigitalSignature,
		certificatesv1.UsageKeyEncipherment); err != nil {
		return err
	}
	if !slices.Contains(usages, certificatesv1.UsageDigitalSignature) {
		return fmt.Errorf("usages: must include %q", certificatesv1.UsageDigitalSignature)
	}
	return nil
}
