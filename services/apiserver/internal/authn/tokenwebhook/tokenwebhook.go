// Package tokenwebhook has a webhook say whose a token is, by a TokenReview.
package tokenwebhook

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	tokenwebhook "k8s.io/apiserver/plugin/pkg/authenticator/token/webhook"

	"keelson.dev/services/apiserver/internal/followedfile"
	"keelson.dev/services/apiserver/internal/webhookcall"
)

const (
	fileFlag    = "authentication-token-webhook-config-file"
	versionFlag = "authentication-token-webhook-version"
	ttlFlag     = "authentication-token-webhook-cache-ttl"

	defaultTTL = 2 * time.Minute
)

// Options are the settings; the doc of each is its flag's text.
type Options struct {
	// ConfigFile is empty where no webhook is asked.
	ConfigFile string
	Version    string
	CacheTTL   time.Duration
}

// NewOptions returns the defaults, which are those of Kubernetes.
func NewOptions() Options { return Options{Version: "v1beta1", CacheTTL: defaultTTL} }

// AddFlags binds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.ConfigFile, fileFlag, o.ConfigFile,
		"kubeconfig of the webhook that is asked, by an authentication.k8s.io TokenReview, about tokens that nobody "+
			"else knows; default: none")
	fs.StringVar(&o.Version, versionFlag, o.Version, "version of the TokenReview: v1 or v1beta1")
	fs.DurationVar(&o.CacheTTL, ttlFlag, o.CacheTTL, "how long its answers are believed")
}

// Validate says what is wrong with the values.
func (o *Options) Validate() []error {
	var errs []error
	if o.Version != "v1" && o.Version != "v1beta1" {
		errs = append(errs, fmt.Errorf("--%s: %q is neither v1 nor v1beta1", versionFlag, o.Version))
	}
	if o.CacheTTL < 0 {
		errs = append(errs, fmt.Errorf("--%s: %s is less than 0s", ttlFlag, o.CacheTTL))
	}
	return errs
}

// New returns who asks the webhook; nil: there is none. Tokens are for the audiences where the webhook says nothing of
// them.
func New(o Options, audiences authenticator.Audiences) (authenticator.Token, error) {
	if o.ConfigFile == "" {
		return nil, nil
	}
	config, err := webhookcall.OfReviews(o.ConfigFile)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", fileFlag, err)
	}
	asks, err := tokenwebhook.New(config, o.Version, audiences, *genericoptions.DefaultAuthWebhookRetryBackoff())
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", fileFlag, followedfile.Wrong(o.ConfigFile, err))
	}
	return tokencache.New(named{asks}, false, o.CacheTTL, o.CacheTTL), nil
}

// named refuses an answer without a user name.
type named struct{ authenticator.Token }

// AuthenticateToken implements authenticator.Token.
func (n named) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	response, ok, err := n.Token.AuthenticateToken(ctx, token)
	if err == nil && ok && response.User.GetName() == "" {
		return nil, false, fmt.Errorf("the webhook of --%s says that the token is somebody's without a name", fileFlag)
	}
	return response, ok, err
}
