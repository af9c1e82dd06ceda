// Package authenticationconfig believes the tokens of issuers from elsewhere, by OpenID Connect, and lets requests be
// anonymous, as an AuthenticationConfiguration or the flags that stand for one say.
package authenticationconfig

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/server/options/authenticationconfig/metrics"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"

	"keelson.dev/kit/contained"
	"keelson.dev/services/apiserver/internal/followedfile"
)

const (
	// issuersWait is how long the issuers of a file that has changed may take to answer before it is in force.
	issuersWait = time.Minute
	// lastRequests is how long those of before go on, for requests that are being authenticated.
	lastRequests = time.Minute
)

// Config is what the authenticators need beside their options.
type Config struct {
	// OwnIssuers are those of the server's own tokens.
	OwnIssuers []string
	// ServerID tells one apiserver from another in metrics.
	ServerID string
	Log      *zap.Logger
}

// Authenticators are in force as the file, or the flags, have it. Make them with Open.
type Authenticators struct {
	options Options
	config  Config
	file    *followedfile.File // nil where the flags say all

	issuers   atomic.Pointer[issuers]
	anonymous atomic.Pointer[authenticator.Request]
	// wait is issuersWait, but for tests.
	wait time.Duration

	ctx     context.Context //nolint:containedctx // That of what runs until Close.
	close   context.CancelFunc
	running contained.Group
}

// Open reads the file and begins to ask the issuers. The caller must Close what it gets.
func Open(options Options, config Config) (*Authenticators, error) {
	a := &Authenticators{options: options, config: config, wait: issuersWait}
	a.ctx, a.close = context.WithCancel(context.Background())
	if err := a.open(); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

func (a *Authenticators) open() error {
	if a.options.ConfigFile == "" {
		return a.openFlags()
	}
	a.file = &followedfile.File{
		Flag: fileFlag, Path: a.options.ConfigFile, Kind: kind, Apply: a.apply,
		Succeeded: func(content []byte) {
			metrics.RecordAuthenticationConfigAutomaticReloadSuccess(a.config.ServerID, string(content))
		},
		Failed: func() { metrics.RecordAuthenticationConfigAutomaticReloadFailure(a.config.ServerID) },
		Log:    a.config.Log,
	}
	return a.file.Open(a.openFile)
}

// openFlags takes what the flags say.
func (a *Authenticators) openFlags() error {
	a.allow(&apiserver.AnonymousAuthConfig{Enabled: a.options.Anonymous})
	if a.options.OIDC.IssuerURL == "" {
		return nil
	}
	var authority []byte
	if path := a.options.OIDC.CAFile; path != "" {
		var err error
		if authority, err = os.ReadFile(path); err != nil {
			return fmt.Errorf("--oidc-ca-file: %w", err)
		}
	}
	c := &apiserver.AuthenticationConfiguration{
		JWT: []apiserver.JWTAuthenticator{a.options.OIDC.issuer(string(authority))}}
	err := check(c, a.config.OwnIssuers)
	if err == nil {
		var all *issuers
		if all, err = a.newIssuers(c.JWT, a.options.OIDC.SigningAlgs); err == nil {
			a.issuers.Store(all)
		}
	}
	if err != nil {
		return fmt.Errorf("--%s*, of which jwt[0] is made: %w", oidcFlags, err)
	}
	return nil
}

// openFile takes what the file says, whether the issuers answer or not.
func (a *Authenticators) openFile(content []byte) error {
	c, all, err := a.load(content)
	if err != nil {
		return err
	}
	a.issuers.Store(all)
	a.allow(c.Anonymous)
	metrics.RegisterMetrics()
	metrics.RecordAuthenticationConfigLastConfigInfo(a.config.ServerID, string(content))
	return nil
}

// load makes what content asks for.
func (a *Authenticators) load(content []byte) (*apiserver.AuthenticationConfiguration, *issuers, error) {
	c, err := load(content, a.config.OwnIssuers)
	if err != nil {
		return nil, nil, err
	}
	if c.Anonymous != nil && a.options.anonymousGiven() {
		return nil, nil, errAnonymousTwice
	}
	if c.Anonymous == nil {
		c.Anonymous = &apiserver.AnonymousAuthConfig{Enabled: a.options.Anonymous}
	}
	all, err := a.newIssuers(c.JWT, oidc.AllValidSigningAlgorithms())
	return c, all, err
}

func (a *Authenticators) newIssuers(jwt []apiserver.JWTAuthenticator, algorithms []string) (*issuers, error) {
	return newIssuers(a.ctx, jwt, algorithms, a.config.OwnIssuers, a.config.ServerID)
}

// allow says which requests may be anonymous from now on.
func (a *Authenticators) allow(c *apiserver.AnonymousAuthConfig) {
	var request authenticator.Request = authenticator.RequestFunc(
		func(*http.Request) (*authenticator.Response, bool, error) { return nil, false, nil })
	if c.Enabled {
		request = anonymous.NewAuthenticator(c.Conditions)
	}
	a.anonymous.Store(&request)
}

// Tokens verifies the tokens of the issuers; nil: none can ever be believed.
func (a *Authenticators) Tokens() authenticator.Token {
	if a.options.ConfigFile == "" && a.issuers.Load() == nil {
		return nil
	}
	return authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		if tokens := a.issuers.Load().tokens; tokens != nil {
			return tokens.AuthenticateToken(ctx, token)
		}
		return nil, false, nil
	})
}

// Anonymous is for requests without credentials; nil: they are refused.
func (a *Authenticators) Anonymous() authenticator.Request {
	if a.options.ConfigFile == "" {
		if !a.options.Anonymous {
			return nil
		}
		return *a.anonymous.Load()
	}
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		return (*a.anonymous.Load()).AuthenticateRequest(r)
	})
}

// Follow begins to take changes of the file, if there is one, until Close.
func (a *Authenticators) Follow() {
	if a.file != nil {
		a.running.Go("following "+fileFlag, func() { a.file.Follow(a.ctx) }, nil)
	}
}

// apply takes a file that has changed once all its issuers have answered.
func (a *Authenticators) apply(ctx context.Context, content []byte) error {
	c, all, err := a.load(content)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, a.wait, errors.New("the issuers did not answer"))
	defer cancel()
	if err := all.await(ctx); err != nil {
		all.close()
		return err
	}
	before := a.issuers.Swap(all)
	a.allow(c.Anonymous)
	contained.After(lastRequests, "leaving issuers", before.close, nil)
	return nil
}

// Close ends what asks issuers: no token of theirs can be verified any more.
func (a *Authenticators) Close() {
	a.close()
	a.running.Wait()
}
