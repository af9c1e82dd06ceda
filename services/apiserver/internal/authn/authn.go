// Package authn answers who sends a request: a proxy's headers, client certificates, bearer tokens from a file,
// service-account tokens, bootstrap tokens, tokens of issuers from elsewhere, tokens that a webhook knows, anonymous.
package authn

import (
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/apiserver/internal/fairshare"
)

const (
	// tokenTTL is how long a verified token is believed without looking again at what it is bound to.
	tokenTTL = 10 * time.Second
	// lookUps is how many requests may wait at once for what others say about their tokens.
	lookUps = 8192
)

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
	// Issuers verifies tokens of external issuers, Webhook asks a webhook about tokens; nil: there is none.
	Issuers, Webhook authenticator.Token
	// Proxy says which proxies name the user in headers; nil: none does.
	Proxy *authenticatorfactory.RequestHeaderConfig
	// Audiences are the names that this server goes by in tokens.
	Audiences authenticator.Audiences
	// Anonymous lets requests without credentials in as system:anonymous; nil: they are refused.
	Anonymous authenticator.Request
}

// Authenticators are what New makes: one for requests, one for bare tokens as TokenReview gets them.
type Authenticators struct {
	Request authenticator.Request
	Token   authenticator.Token
}

// New returns the authenticators that the configuration asks for.
func New(c Config) (Authenticators, error) {
	own, err := c.own()
	if err != nil {
		return Authenticators{}, err
	}
	var known []authenticator.Request
	var tokens []authenticator.Token
	if c.Proxy != nil {
		known = append(known, group.NewAuthenticatedGroupAdder(
			authenticator.WrapAudienceAgnosticRequest(c.Audiences, headerrequest.NewDynamicVerifyOptionsSecure(
				c.Proxy.CAContentProvider.VerifyOptions, c.Proxy.AllowedClientNames, c.Proxy.UsernameHeaders,
				c.Proxy.UIDHeaders, c.Proxy.GroupHeaders, c.Proxy.ExtraHeaderPrefixes))))
	}
	if c.VerifyClients != nil {
		known = append(known, newCertificates(c.VerifyClients))
	}
	if own != nil {
		known = append(known, bearertoken.New(own), websocket.NewProtocolAuthenticator(own))
		tokens = append(tokens, own)
	}
	if elsewhere := c.elsewhere(); elsewhere != nil {
		asks := union.New(bearertoken.New(elsewhere), websocket.NewProtocolAuthenticator(elsewhere))
		known = append(known, perPlace{asks, fairshare.New(lookUps, 1)})
		tokens = append(tokens, elsewhere)
	}
	request := union.New(known...)
	if c.Anonymous != nil {
		// A wrong credential is refused; only the lack of one is anonymous.
		request = union.NewFailOnError(request, c.Anonymous)
	}
	out := Authenticators{Request: request}
	if len(tokens) > 0 {
		out.Token = tokenunion.New(tokens...)
	}
	return out, nil
}

// own knows the tokens that the server gives out itself, or has in a file; nil: there are none.
func (c Config) own() (authenticator.Token, error) {
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
	return cached(all), nil
}

// elsewhere knows the tokens about which others are asked; nil: there are none.
func (c Config) elsewhere() authenticator.Token {
	var all []authenticator.Token
	if c.Issuers != nil {
		all = append(all, authenticator.WrapAudienceAgnosticToken(c.Audiences, c.Issuers))
	}
	if c.Webhook != nil {
		all = append(all, c.Webhook)
	}
	return cached(all)
}

// cached says the same of whoever has a token, in a request or in a TokenReview, and for a while.
func cached(all []authenticator.Token) authenticator.Token {
	if len(all) == 0 {
		return nil
	}
	return bounded{tokencache.New(authenticated{tokenunion.New(all...)}, false, tokenTTL, 0)}
}
