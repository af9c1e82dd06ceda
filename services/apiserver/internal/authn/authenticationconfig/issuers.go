package authenticationconfig

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
	certutil "k8s.io/client-go/util/cert"

	"keelson.dev/services/apiserver/internal/webhookcall"
)

const (
	// maxDocument is how many bytes an issuer may answer with: its description, its keys, or claims that it keeps.
	maxDocument = 1 << 20
	// issuerTimeout bounds how long it may take for that.
	issuerTimeout = 30 * time.Second
	// askAgain is how often an issuer that becomes known is looked at.
	askAgain = 100 * time.Millisecond
)

// issuers verify the tokens of the issuers of one configuration.
type issuers struct {
	// tokens is nil where no issuer is believed.
	tokens authenticator.Token
	known  []func() error
	close  context.CancelFunc
}

// newIssuers begins to ask the issuers for their keys, until ctx ends or they are closed. Until an issuer has answered,
// its tokens are refused.
func newIssuers(ctx context.Context, jwt []apiserver.JWTAuthenticator, algorithms []string, own []string,
	serverID string) (*issuers, error) {
	ctx, cancel := context.WithCancel(ctx)
	out := &issuers{close: cancel}
	var all []authenticator.Token
	for i, j := range jwt {
		client, err := newClient(j.Issuer.CertificateAuthority)
		if err == nil {
			var verifier oidc.AuthenticatorTokenWithHealthCheck
			verifier, err = oidc.New(ctx, oidc.Options{JWTAuthenticator: j, Client: client, Compiler: compiler(),
				SupportedSigningAlgs: algorithms, DisallowedIssuers: own, APIServerID: serverID})
			if err == nil {
				all, out.known = append(all, verifier), append(out.known, verifier.HealthCheck)
			}
		}
		if err != nil {
			cancel()
			return nil, fmt.Errorf("jwt[%d]: %w", i, err)
		}
	}
	if len(all) > 0 {
		out.tokens = tokenunion.New(all...)
	}
	return out, nil
}

// newClient reaches an issuer, and takes of its answers what is bounded.
func newClient(authority string) (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != "" {
		roots, err := certutil.NewPoolFromBytes([]byte(authority))
		if err != nil {
			return nil, fmt.Errorf("issuer.certificateAuthority: %w", err)
		}
		config.RootCAs = roots
	}
	transport := utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: config})
	return &http.Client{Transport: webhookcall.Ending(transport, maxDocument), Timeout: issuerTimeout}, nil
}

// await returns when all issuers have answered, or with why one has not when ctx ends.
func (i *issuers) await(ctx context.Context) error {
	ticker := time.NewTicker(askAgain)
	defer ticker.Stop()
	for {
		err := i.unknown()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}

func (i *issuers) unknown() error {
	var errs []error
	for _, known := range i.known {
		errs = append(errs, known())
	}
	return errors.Join(errs...)
}
