// Package certrequest reads requests for certificates (PKCS #10) in the form in which CertificateSigningRequests carry
// them. The code that checks a request and the code that signs it read the same one.
package certrequest

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

const (
	// BlockType is that of the PEM block.
	BlockType = "CERTIFICATE REQUEST"
	// maxRSABits bounds what it costs to look at a signature. TLS takes no larger key either.
	maxRSABits = 8192
)

// Parse reads the one PEM block that text holds, and checks that the requester has its key. Text in front of
// the block, which tools write there for people, is skipped.
func Parse(text []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != BlockType {
		return nil, errors.New("PEM block type must be " + BlockType)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("must end with its PEM block: what follows would be signed by nobody")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	if key, ok := request.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSABits {
		return nil, fmt.Errorf("an RSA key must have at most %d bits, not %d", maxRSABits, key.N.BitLen())
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("the request must be signed with its own key: %w", err)
	}
	return request, nil
}
