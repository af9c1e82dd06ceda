package nodecertificates

import "crypto/x509"

// superseded reports whether a certificate is of an authority in the bundle that no longer signs. The first one
// signs: a mesh that replaces its authority lists the new one before the old one for as long as it trusts both. A
// certificate of an authority outside the bundle is of a signer with an authority of its own.
func superseded(leaf *x509.Certificate, bundle []*x509.Certificate) bool {
	for i, authority := range bundle {
		if leaf.CheckSignatureFrom(authority) == nil {
			return i > 0
		}
	}
	return false
}
