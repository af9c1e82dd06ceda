package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/apiserver/internal/authn"
	"keelson.dev/services/apiserver/internal/authn/authenticationconfig"
	"keelson.dev/services/apiserver/internal/authn/bootstraptoken"
	"keelson.dev/services/apiserver/internal/authn/tokenwebhook"
	"keelson.dev/services/apiserver/internal/authz"
	"keelson.dev/services/apiserver/internal/authz/authorizationconfig"
	"keelson.dev/services/apiserver/internal/authz/node"
	"keelson.dev/services/apiserver/internal/authz/rbac"
	"keelson.dev/services/apiserver/internal/bootstrap"
)

const (
	proxyCAFlag       = "requestheader-client-ca-file"
	proxyUsernameFlag = "requestheader-username-headers"
)

// addAuthFlags binds the flags of who is believed and who may what.
func (o *Options) addAuthFlags(fs *pflag.FlagSet) {
	o.Authentication.AddFlags(fs)
	o.TokenWebhook.AddFlags(fs)
	o.Authorization.AddFlags(fs)
	o.Proxies.AddFlags(fs)
	reword(fs, map[string]string{
		proxyCAFlag: "PEM bundle; who shows a client certificate of it names users in headers, and is believed. It " +
			"must not be a CA that anybody else gets certificates of",
		"requestheader-allowed-names": "common names of certificates of --" + proxyCAFlag + " that are believed; " +
			"default: all",
		proxyUsernameFlag:                    "headers that name the user, as X-Remote-User",
		"requestheader-uid-headers":          "headers that have the user's UID, as X-Remote-Uid",
		"requestheader-group-headers":        "headers that name the user's groups, as X-Remote-Group",
		"requestheader-extra-headers-prefix": "prefixes of headers with more about the user, as X-Remote-Extra-",
	})
}

func (o *Options) checkAuth() []error {
	errs := slices.Concat(o.Authentication.Validate(), o.TokenWebhook.Validate(), o.Authorization.Validate(),
		o.Proxies.Validate())
	if (o.Proxies.ClientCAFile == "") != (len(o.Proxies.UsernameHeaders) == 0) {
		errs = append(errs, fmt.Errorf("--%s: needs --%s, and the reverse", proxyCAFlag, proxyUsernameFlag))
	}
	return errs
}

func (s *Server) openAuth(context.Context) error {
	if err := s.openAuthorization(); err != nil {
		return err
	}
	return s.openAuthentication()
}

// openAuthorization says who decides what users may.
func (s *Server) openAuthorization() (err error) {
	s.policy = rbac.NewPolicy(bootstrap.Confined()...)
	ofNodes := node.Objects{Pods: s.objects.PodsOnNode, Volume: s.objects.Volume, Claim: s.objects.Claim,
		Attachment: s.objects.Attachment, Slice: s.objects.Slice}
	if s.authority, err = authz.NewAuthorizer(s.policy, ofNodes); err != nil {
		return err
	}
	s.authorization, err = authorizationconfig.Open(s.options.Authorization, authorizationconfig.Config{
		Use: s.authority.Use, ServerID: s.config.APIServerID, Log: s.log.Named("authorization")})
	if err != nil {
		return daemon.UsageError(err)
	}
	s.config.Authorization.Authorizer = s.authority
	s.config.RuleResolver = s.authority
	return nil
}

// openAuthentication says who is believed to be who.
func (s *Server) openAuthentication() (err error) {
	c := authn.Config{TokenFile: s.options.TokenAuthFile, Audiences: s.options.audiences()}
	if s.tokens, err = s.options.newTokens(&s.objects, s.recordUse); err != nil {
		return err
	}
	if s.tokens != nil {
		c.ServiceAccounts = s.tokens.verifier
	}
	if s.options.EnableBootstrapTokenAuth {
		c.BootstrapTokens = &bootstraptoken.Authenticator{Secret: s.objects.Secret, Now: time.Now,
			Log: s.log.Named("bootstraptoken")}
	}
	s.authentication, err = authenticationconfig.Open(s.options.Authentication, authenticationconfig.Config{
		OwnIssuers: []string{s.options.ServiceAccountIssuer}, ServerID: s.config.APIServerID,
		Log: s.log.Named("authentication")})
	if err != nil {
		return daemon.UsageError(err)
	}
	c.Issuers, c.Anonymous = s.authentication.Tokens(), s.authentication.Anonymous()
	if c.Webhook, err = tokenwebhook.New(s.options.TokenWebhook, c.Audiences); err != nil {
		return daemon.UsageError(err)
	}
	if s.clientCA, err = s.options.authority("client-ca-file", s.options.ClientCAFile); err != nil {
		return err
	}
	if s.clientCA != nil {
		c.VerifyClients = s.clientCA.VerifyOptions
	}
	if c.Proxy, err = s.options.proxies(); err != nil {
		return err
	}
	askFor(s.config, s.clientCA, c.Proxy)
	if s.authn, err = authn.New(c); err != nil {
		return err
	}
	s.config.Authentication.Authenticator = s.authn.Request
	s.config.Authentication.APIAudiences = c.Audiences
	s.config.Authentication.RequestHeaderConfig = c.Proxy
	return nil
}

// followAuth begins to take changes of the files that say who is believed and who may what.
func (s *Server) followAuth() {
	s.authorization.Follow()
	s.authentication.Follow()
}

func (s *Server) closeAuth() {
	if s.authorization != nil {
		s.authorization.Close()
	}
	if s.authentication != nil {
		s.authentication.Close()
	}
}

// authority reads the CAs of certificates, and follows changes of the file; nil: there is none.
func (o *Options) authority(flag, path string) (*dynamiccertificates.DynamicFileCAContent, error) {
	if path == "" {
		return nil, nil
	}
	ca, err := dynamiccertificates.NewDynamicCAContentFromFile(flag, path)
	if err != nil {
		return nil, daemon.UsageError(fmt.Errorf("--%s: %w", flag, err))
	}
	return ca, nil
}

// proxies are those that name users in headers; nil: there are none.
func (o *Options) proxies() (*authenticatorfactory.RequestHeaderConfig, error) {
	c, err := o.Proxies.ToAuthenticationRequestHeaderConfig()
	if err != nil {
		return nil, daemon.UsageError(fmt.Errorf("--%s: %w", proxyCAFlag, err))
	}
	return c, nil
}

// askFor has clients show certificates of these authorities. Which one a certificate is of decides what it is good for.
func askFor(config *genericapiserver.Config, clients *dynamiccertificates.DynamicFileCAContent,
	proxies *authenticatorfactory.RequestHeaderConfig) {
	if clients != nil {
		config.SecureServing.ClientCA = clients
	}
	if proxies == nil {
		return
	}
	config.SecureServing.ClientCA = proxies.CAContentProvider
	if clients != nil {
		config.SecureServing.ClientCA = dynamiccertificates.NewUnionCAContentProvider(clients,
			proxies.CAContentProvider)
	}
}
