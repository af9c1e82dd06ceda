package authn

import (
	"crypto/x509"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
)

const (
	// verifiedConnections bounds the memory of verified certificates.
	verifiedConnections = 8192
	// verifiedTTL is how long a connection's certificate is believed before its
	// chain is verified again, so that a changed CA file takes effect.
	verifiedTTL = time.Minute
)

// certificates authenticates by client certificate. Verifying a chain costs
// more than all other request filters together, so the answer is kept for the
// connection: all requests of one connection carry the same certificate object.
type certificates struct {
	verify   authenticator.Request
	verified *cache.LRUExpireCache
}

func newCertificates(options x509request.VerifyOptionFunc) *certificates {
	return &certificates{
		verify: group.NewAuthenticatedGroupAdder(x509request.NewDynamic(options,
			x509request.CommonNameUserConversion)),
		verified: cache.NewLRUExpireCache(verifiedConnections),
	}
}

// AuthenticateRequest implements authenticator.Request.
func (c *certificates) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, false, nil
	}
	leaf := r.TLS.PeerCertificates[0]
	if known, ok := c.verified.Get(leaf); ok {
		return known.(*authenticator.Response), true, nil
	}
	response, ok, err := c.verify.AuthenticateRequest(r)
	if err != nil || !ok {
		return nil, false, err
	}
	if ttl := trustFor(leaf, time.Now()); ttl > 0 {
		c.verified.Add(leaf, response, ttl)
	}
	return response, true, nil
}

// trustFor is how long a certificate that was just verified needs no further look.
func trustFor(leaf *x509.Certificate, now time.Time) time.Duration {
	return min(verifiedTTL, leaf.NotAfter.Sub(now))
}
