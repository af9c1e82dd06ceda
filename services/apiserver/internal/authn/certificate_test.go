package authn

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	testingclock "k8s.io/utils/clock/testing"
)

// TestCertificateIsVerifiedOncePerConnection: and again when the time of the answer is over.
func TestCertificateIsVerifiedOncePerConnection(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	verifications := 0
	c := &certificates{
		verified: cache.NewLRUExpireCacheWithClock(10, clock),
		verify: authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
			verifications++
			return &authenticator.Response{User: &user.DefaultInfo{Name: "ann"}}, true, nil
		}),
	}
	request := func(leaf *x509.Certificate) *http.Request {
		return &http.Request{TLS: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}}
	}
	first := &x509.Certificate{NotAfter: time.Now().Add(time.Hour)}
	ending := &x509.Certificate{NotAfter: time.Now().Add(-time.Second)}
	rows := []struct {
		name string
		leaf *x509.Certificate
		wait time.Duration
		want int
	}{
		{"first request", first, 0, 1},
		{"second request", first, 0, 1},
		{"another connection", &x509.Certificate{NotAfter: first.NotAfter}, 0, 2},
		{"after the time", first, verifiedTTL + time.Second, 3},
		{"an expired certificate is never kept", ending, 0, 4},
		{"nor later", ending, 0, 5},
	}
	for _, row := range rows {
		clock.Step(row.wait)
		response, ok, err := c.AuthenticateRequest(request(row.leaf))
		if err != nil || !ok || response.User.GetName() != "ann" {
			t.Errorf("%s: %v, %v, %v", row.name, response, ok, err)
		}
		if verifications != row.want {
			t.Errorf("%s: %d verifications, want %d", row.name, verifications, row.want)
		}
	}
	if _, ok, err := c.AuthenticateRequest(&http.Request{}); ok || err != nil {
		t.Errorf("without TLS: %v, %v", ok, err)
	}
}
