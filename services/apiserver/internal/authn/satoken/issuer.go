package satoken

import (
	"crypto"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
)

// Issuer makes tokens.
type Issuer struct {
	name   string
	signer jose.Signer
	public crypto.PublicKey
}

// LoadIssuer returns the issuer called name that signs with the private key in a PEM file.
func LoadIssuer(name, file string) (*Issuer, error) {
	key, err := keyutil.PrivateKeyFromFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the signing key: %w", err)
	}
	private, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("reading the signing key in %s: a %T cannot sign", file, key)
	}
	return NewIssuer(name, private)
}

// NewIssuer returns the issuer called name that signs with key.
func NewIssuer(name string, key crypto.Signer) (*Issuer, error) {
	alg, err := algorithm(key.Public())
	if err != nil {
		return nil, err
	}
	id, err := keyID(key.Public())
	if err != nil {
		return nil, err
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Algorithm: string(alg), Key: key, KeyID: id, Use: "sig"}},
		nil)
	if err != nil {
		return nil, fmt.Errorf("preparing the signing key: %w", err)
	}
	return &Issuer{name: name, signer: signer, public: key.Public()}, nil
}

// Public is the key that verifies the issuer's tokens.
func (i *Issuer) Public() crypto.PublicKey { return i.public }

// Issue signs a token for what spec asks, bound to b. Its expiration must be set.
func (i *Issuer) Issue(b Bound, spec authenticationv1.TokenRequestSpec,
	now time.Time) (authenticationv1.TokenRequestStatus, error) {
	public, private := claimsFor(b, spec, i.name, uuid.NewString(), now)
	token, err := jwt.Signed(i.signer).Claims(public).Claims(private).Serialize()
	if err != nil {
		return authenticationv1.TokenRequestStatus{}, fmt.Errorf("signing a token: %w", err)
	}
	return authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(public.Expiry.Time())},
		nil
}
