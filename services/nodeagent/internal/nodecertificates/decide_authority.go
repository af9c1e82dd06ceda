package nodecertificates

import "crypto/x509"

// superseded says whether a certificate is of an authority of the bundle that signs no more. The first signs: a mesh
// that replaces its authority names the new one before the old one for as long as it trusts both. A certificate of
// nobody in the bundle is of a signer that has an authority of its own.
func superseded(leaf *x509.Certificate, bundle []*x509.Certificate) bool {
	for i, authority := range bundle {
		if leaf.CheckSignatureFrom(authority) == nil {
			return i > 0
		}
	}
	return false
}
