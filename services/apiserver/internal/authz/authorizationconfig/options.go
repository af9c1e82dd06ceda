package authorizationconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Options are the settings; the doc of each is its flag's text.
type Options struct {
	// ConfigFile is empty where the flags say all.
	ConfigFile string
	Modes      []string
	Webhook    Webhook

	// given reports whether a flag was set at the start of the server; nil: it is not known.
	given func(flag string) bool
}

// Webhook are the flags of the mode Webhook.
type Webhook struct {
	ConfigFile, Version            string
	AuthorizedTTL, UnauthorizedTTL time.Duration
}

const (
	fileFlag            = "authorization-config"
	modeFlag            = "authorization-mode"
	webhookFileFlag     = "authorization-webhook-config-file"
	versionFlag         = "authorization-webhook-version"
	authorizedTTLFlag   = "authorization-webhook-cache-authorized-ttl"
	unauthorizedTTLFlag = "authorization-webhook-cache-unauthorized-ttl"

	defaultVersion         = "v1beta1"
	defaultAuthorizedTTL   = 5 * time.Minute
	defaultUnauthorizedTTL = 30 * time.Second
)

// defaultModes are the authorizers where nothing is said.
var defaultModes = []string{Node, RBAC}

// NewOptions returns the defaults; those of the webhook are Kubernetes' own.
func NewOptions() Options {
	return Options{Modes: slices.Clone(defaultModes), Webhook: Webhook{Version: defaultVersion,
		AuthorizedTTL: defaultAuthorizedTTL, UnauthorizedTTL: defaultUnauthorizedTTL}}
}

// AddFlags binds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.given = fs.Changed
	fs.StringVar(&o.ConfigFile, fileFlag, o.ConfigFile,
		"file with an apiserver.config.k8s.io AuthorizationConfiguration: who is asked, in which order, what a user "+
			"may; changes of it are followed. It takes the place of --authorization-mode and --authorization-webhook-*")
	fs.StringSliceVar(&o.Modes, modeFlag, o.Modes,
		"who is asked, in this order, what a user may: "+strings.Join(types, ", "))
	fs.StringVar(&o.Webhook.ConfigFile, webhookFileFlag, o.Webhook.ConfigFile,
		"kubeconfig of the webhook of the mode Webhook, which is asked by a SubjectAccessReview")
	fs.StringVar(&o.Webhook.Version, versionFlag, o.Webhook.Version,
		"version of the SubjectAccessReview of authorization.k8s.io: v1 or v1beta1")
	fs.DurationVar(&o.Webhook.AuthorizedTTL, authorizedTTLFlag, o.Webhook.AuthorizedTTL,
		"how long it is believed that somebody may; 0 is not at all")
	fs.DurationVar(&o.Webhook.UnauthorizedTTL, unauthorizedTTLFlag, o.Webhook.UnauthorizedTTL,
		"how long it is believed that somebody may not; 0 is not at all")
}

// Validate says what is wrong with the values.
func (o *Options) Validate() []error {
	var errs []error
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	if o.ConfigFile != "" {
		add(o.othersGiven(), "--%s: not together with --%s or --authorization-webhook-*: what these say stands in the "+
			"file", fileFlag, modeFlag)
		return errs
	}
	add(len(o.Modes) == 0, "--%s: names at least one of %s", modeFlag, strings.Join(types, ", "))
	seen := map[string]bool{}
	for _, mode := range o.Modes {
		add(!slices.Contains(types, mode), "--%s: %q is none of %s", modeFlag, mode, strings.Join(types, ", "))
		add(seen[mode], "--%s: %s stands there twice", modeFlag, mode)
		seen[mode] = true
	}
	if seen[webhook] != (o.Webhook.ConfigFile != "") {
		errs = append(errs, errors.New("--"+webhookFileFlag+": needs "+webhook+" among --"+modeFlag+
			", and the reverse"))
	}
	add(o.Webhook.Version != "v1" && o.Webhook.Version != "v1beta1", "--%s: %q is neither v1 nor v1beta1", versionFlag,
		o.Webhook.Version)
	add(o.Webhook.AuthorizedTTL < 0, "--%s: %s is less than 0s", authorizedTTLFlag, o.Webhook.AuthorizedTTL)
	add(o.Webhook.UnauthorizedTTL < 0, "--%s: %s is less than 0s", unauthorizedTTLFlag, o.Webhook.UnauthorizedTTL)
	return errs
}

// othersGiven is whether flags were set that the file takes the place of.
func (o *Options) othersGiven() bool {
	if !slices.Equal(o.Modes, defaultModes) || o.Webhook != NewOptions().Webhook {
		return true
	}
	return o.given != nil && slices.ContainsFunc([]string{modeFlag, webhookFileFlag, versionFlag, authorizedTTLFlag,
		unauthorizedTTLFlag}, o.given)
}

// isDefault is whether nothing is said about who is asked.
func (o *Options) isDefault() bool { return o.ConfigFile == "" && slices.Equal(o.Modes, defaultModes) }
