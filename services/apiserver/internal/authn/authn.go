// Package authn answers who sends a request: client certificates, bearer
// tokens from a file, service-account tokens, bootstrap tokens, anonymous.
package authn

import (
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/authentication/user"

	"keelson.dev/kit/daemon"
)

// tokenTTL is how long a verified token is believed without looking again at
// what it is bound to.
const tokenTTL = 10 * time.Second

// Config says who is believed.
type Config struct {
	// VerifyClients gives the CAs of client certificates; nil: certificates are not looked at.
	VerifyClients x509.VerifyOptionFunc
	// TokenFile is a CSV file of token, user, uid and groups; empty: none.
	TokenFile string
	// ServiceAccounts verifies service-account tokens; nil: they are not believed.
	ServiceAccounts authenticator.Token
	// BootstrapTokens verifies bootstrap tokens; nil: they are not believed.
	BootstrapTokens authenticator.Token
	// Audiences are the names that this server goes by in tokens.
	Audiences authenticator.Audiences
	// Anonymous lets requests without credentials in as system:anonymous.
	Anonymous bool
}

// Authenticators are what New makes: one for requests, one for bare tokens as TokenReview gets them.
type Authenticators struct {
	Request authenticator.Request
	Token   authenticator.Token
}

// New returns the authenticators that the configuration asks for.
func New(c Config) (Authenticators, error) {
	tokens, err := c.tokens()
	if err != nil {
		return Authenticators{}, err
	}
	var known []authenticator.Request
	if c.VerifyClients != nil {
		known = append(known, newCertificates(c.VerifyClients))
	}
	if tokens != nil {
		known = append(known, bearertoken.New(tokens), websocket.NewProtocolAuthenticator(tokens))
	}
	request := union.New(known...)
	if c.Anonymous {
		// A wrong credential is refused; only the lack of one is anonymous.
		request = union.NewFailOnError(request, anonymous.NewAuthenticator(nil))
	}
	return Authenticators{Request: request, Token: tokens}, nil
}

// tokens say the same of whoever has one, in a request or in a TokenReview.
func (c Config) tokens() (authenticator.Token, error) {
	var all []authenticator.Token
	if c.TokenFile != "" {
		file, err := tokenfile.NewCSV(c.TokenFile)
		if err != nil {
			return nil, daemon.UsageError(fmt.Errorf("--token-auth-file: %w", err))
		}
		all = append(all, authenticator.WrapAudienceAgnosticToken(c.Audiences, file))
	}
	if c.ServiceAccounts != nil {
		all = append(all, c.ServiceAccounts)
	}
	if c.BootstrapTokens != nil {
		all = append(all, authenticator.WrapAudienceAgnosticToken(c.Audiences, c.BootstrapTokens))
	}
	if len(all) == 0 {
		return nil, nil
	}
	everyone := group.NewTokenGroupAdder(tokenunion.New(all...), []string{user.AllAuthenticated})
	return tokencache.New(everyone, false, tokenTTL, 0), nil
}
