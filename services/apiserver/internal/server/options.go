// Package server puts the apiserver together: store, authentication,
// authorization, admission, resources and HTTPS serving.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"keelson.dev/kit/connections"
	"keelson.dev/services/apiserver/internal/admission"
	"keelson.dev/services/apiserver/internal/authn/authenticationconfig"
	"keelson.dev/services/apiserver/internal/authn/tokenwebhook"
	"keelson.dev/services/apiserver/internal/authz/authorizationconfig"
	"keelson.dev/services/apiserver/internal/longrunning"
	"keelson.dev/services/apiserver/internal/nodeproxy"
	"keelson.dev/services/apiserver/internal/objectsize"
	"keelson.dev/services/apiserver/internal/requestbatch"
	"keelson.dev/services/apiserver/internal/storage"
	"keelson.dev/services/apiserver/internal/storage/encryption"
)

const (
	defaultPort = 6443
	// defaultIssuer is the issuer of service-account tokens unless a flag says otherwise.
	defaultIssuer = "https://kubernetes.default.svc"
	// maxGoawayChance keeps connections from ending before they have been of use.
	maxGoawayChance = 0.02
	// The use of tokens is recorded by the day.
	defaultCleanUpPeriod, minCleanUpPeriod = 365 * 24 * time.Hour, 24 * time.Hour
)

// Options are the apiserver's settings; the doc of each is its flag's text.
type Options struct {
	DataDir    string
	Etcd       storage.Cluster
	Peers      storage.Peers
	Encryption encryption.Options

	BindAddress      string
	SecurePort       int
	AdvertiseAddress string
	// Listener is used in place of address and port; tests set it.
	Listener net.Listener
	// Progress is told what the start waits for; it may be nil.
	Progress func(doing string)

	TLSCertFile, TLSPrivateKeyFile string
	ClientCAFile                   string
	TokenAuthFile                  string
	EnableBootstrapTokenAuth       bool
	// Authentication says whose tokens from elsewhere are believed, TokenWebhook who else is asked about tokens,
	// Proxies which proxies name users in headers, Authorization who is asked what users may.
	Authentication authenticationconfig.Options
	TokenWebhook   tokenwebhook.Options
	Proxies        genericoptions.RequestHeaderAuthenticationOptions
	Authorization  authorizationconfig.Options

	ServiceAccountKeyFiles       []string
	ServiceAccountSigningKeyFile string
	ServiceAccountIssuer         string
	APIAudiences                 []string
	// LegacyTokenCleanUpPeriod is how long a token of a Secret stays unused before it is refused, and again before its
	// Secret is deleted.
	LegacyTokenCleanUpPeriod time.Duration

	AdmissionControlConfigFile string
	// EnableAdmissionPlugins and DisableAdmissionPlugins are names of plugins.
	EnableAdmissionPlugins, DisableAdmissionPlugins []string

	Nodeagents nodeproxy.Config

	// DialExtension connects to the endpoints of APIServices and webhooks in place of a dialer that reaches no address
	// of this machine alone; tests set it.
	DialExtension func(ctx context.Context, network, address string) (net.Conn, error)

	Audit   *genericoptions.AuditOptions
	Tracing *genericoptions.TracingOptions

	// ServiceClusterIPRange is one range, or one of each family with a comma between them.
	ServiceClusterIPRange string
	EventTTL              time.Duration
	// MaxLongRunningPerClient is how many watches and other lasting requests one client may have open; zero is no
	// limit.
	MaxLongRunningPerClient int
	FlowControl             FlowControl
	// RuntimeConfig says of versions, resources and classes of versions by "true" or "false" whether they are served.
	RuntimeConfig map[string]string
	// GoawayChance is the share of requests over HTTP/2 whose connections are given up.
	GoawayChance float64
	// Batches bound what batches of requests take, Connections how many there may be; no flag sets them.
	Batches     requestbatch.Limits
	Connections connections.Limits

	delegates delegates
	// accepted are the connections of the server; nil as long as it does not serve.
	accepted *connections.Listener
	// sizes are those of large objects and lists.
	sizes *objectsize.Book
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		DataDir:               "/var/lib/keelson/apiserver",
		BindAddress:           "0.0.0.0",
		SecurePort:            defaultPort,
		Authentication:        authenticationconfig.NewOptions(),
		TokenWebhook:          tokenwebhook.NewOptions(),
		Authorization:         authorizationconfig.NewOptions(),
		ServiceAccountIssuer:  defaultIssuer,
		Audit:                 genericoptions.NewAuditOptions(),
		Tracing:               genericoptions.NewTracingOptions(),
		ServiceClusterIPRange: "10.96.0.0/16",
		EventTTL:              time.Hour,
		RuntimeConfig:         map[string]string{},
		Batches:               requestbatch.DefaultLimits(),
		Connections:           connections.OfProcess(),
		FlowControl:           defaultFlowControl(),
		sizes:                 &objectsize.Book{},

		MaxLongRunningPerClient:  longrunning.Default,
		LegacyTokenCleanUpPeriod: defaultCleanUpPeriod,
	}
}

// AddFlags binds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir, "directory of the embedded store")
	o.Etcd.AddFlags(fs)
	o.Peers.AddFlags(fs)
	o.Encryption.AddFlags(fs)
	fs.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "IP address to listen on")
	fs.IntVar(&o.SecurePort, "secure-port", o.SecurePort, "port to listen on; 0 takes a free one")
	fs.StringVar(&o.AdvertiseAddress, "advertise-address", o.AdvertiseAddress,
		"IP address that Pods reach the apiserver at; default: the bind address or the host's own")
	fs.StringVar(&o.TLSCertFile, "tls-cert-file", o.TLSCertFile,
		"PEM serving certificate; without it a self-signed one is made in memory")
	fs.StringVar(&o.TLSPrivateKeyFile, "tls-private-key-file", o.TLSPrivateKeyFile, "PEM key of --tls-cert-file")
	fs.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile,
		"PEM bundle; client certificates of it authenticate by common name and organizations")
	fs.StringVar(&o.TokenAuthFile, "token-auth-file", o.TokenAuthFile,
		"CSV file of token, user, uid and \"group1,group2\"")
	fs.BoolVar(&o.EnableBootstrapTokenAuth, "enable-bootstrap-token-auth", o.EnableBootstrapTokenAuth,
		"let Secrets of type bootstrap.kubernetes.io/token in kube-system be bearer tokens, and look after them")
	o.addAuthFlags(fs)
	fs.StringSliceVar(&o.ServiceAccountKeyFiles, "service-account-key-file", o.ServiceAccountKeyFiles,
		"PEM files of keys that verify service-account tokens; default: the signing key")
	fs.StringVar(&o.ServiceAccountSigningKeyFile, "service-account-signing-key-file", o.ServiceAccountSigningKeyFile,
		"PEM private key that signs service-account tokens; without it none are issued")
	fs.StringVar(&o.ServiceAccountIssuer, "service-account-issuer", o.ServiceAccountIssuer,
		"issuer of service-account tokens")
	fs.StringSliceVar(&o.APIAudiences, "api-audiences", o.APIAudiences,
		"audiences that service-account tokens must be meant for; default: the issuer")
	fs.DurationVar(&o.LegacyTokenCleanUpPeriod, "legacy-service-account-token-clean-up-period",
		o.LegacyTokenCleanUpPeriod, "how long a token in a Secret that was made for its account stays unused before "+
			"it is refused, and again before the Secret is deleted")
	fs.StringVar(&o.AdmissionControlConfigFile, "admission-control-config-file", o.AdmissionControlConfigFile,
		"file with an apiserver.config.k8s.io/v1 AdmissionConfiguration: the configurations of admission plugins")
	fs.StringSliceVar(&o.EnableAdmissionPlugins, "enable-admission-plugins", o.EnableAdmissionPlugins,
		"names of admission plugins that are to be on beside those that are on by themselves, comma-separated: "+
			strings.Join(admission.Optional(), ", "))
	fs.StringSliceVar(&o.DisableAdmissionPlugins, "disable-admission-plugins", o.DisableAdmissionPlugins,
		"names of admission plugins that are to be off though they are on by themselves, comma-separated: "+
			strings.Join(admission.Standard(), ", "))
	fs.IntVar(&o.MaxLongRunningPerClient, "max-long-running-requests-per-client", o.MaxLongRunningPerClient,
		"how many watches, logs, exec and other requests that last one client may have open, the ServiceAccounts of a "+
			"namespace together; 0 is no limit")
	fs.Float64Var(&o.GoawayChance, "goaway-chance", o.GoawayChance,
		"share of the requests over HTTP/2 after which a client is told to connect anew, between 0 and 0.02, so that "+
			"behind a load balancer clients do not all stay with one apiserver; what lasts goes on. 0 is never")
	o.addRuntimeConfigFlag(fs)
	o.FlowControl.addFlags(fs)
	o.Nodeagents.AddFlags(fs)
	o.addObservabilityFlags(fs)
	fs.StringVar(&o.ServiceClusterIPRange, "service-cluster-ip-range", o.ServiceClusterIPRange,
		"CIDR of the Services' cluster IPs, or one of each IP family separated by a comma, the default one first")
	fs.DurationVar(&o.EventTTL, "event-ttl", o.EventTTL, "how long Events are kept")
}

// reword says of flags that the library has bound what they are here.
func reword(fs *pflag.FlagSet, usages map[string]string) {
	for name, usage := range usages {
		fs.Lookup(name).Usage = usage
	}
}

// Validate says everything that is wrong with the values.
func (o *Options) Validate() error {
	var errs []error
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	add(o.DataDir == "" && len(o.Etcd.Servers) == 0, "--data-dir: must be set unless --etcd-servers is")
	add(net.ParseIP(o.BindAddress) == nil, "--bind-address: %q is not an IP address", o.BindAddress)
	add(o.SecurePort < 0 || o.SecurePort > 65535, "--secure-port: %d is not between 0 and 65535", o.SecurePort)
	add(o.AdvertiseAddress != "" && net.ParseIP(o.AdvertiseAddress) == nil,
		"--advertise-address: %q is not an IP address", o.AdvertiseAddress)
	add((o.TLSCertFile == "") != (o.TLSPrivateKeyFile == ""),
		"--tls-cert-file: needs --tls-private-key-file, and the reverse")
	add(o.ServiceAccountIssuer == "", "--service-account-issuer: must not be empty")
	add(o.LegacyTokenCleanUpPeriod < minCleanUpPeriod,
		"--legacy-service-account-token-clean-up-period: %s is less than %s", o.LegacyTokenCleanUpPeriod,
		minCleanUpPeriod)
	add(o.EventTTL < time.Second, "--event-ttl: %s is less than 1s", o.EventTTL)
	add(o.MaxLongRunningPerClient < 0, "--max-long-running-requests-per-client: %d is less than 0",
		o.MaxLongRunningPerClient)
	add(!(o.GoawayChance >= 0 && o.GoawayChance <= maxGoawayChance), "--goaway-chance: %v is not between 0 and %v",
		o.GoawayChance, maxGoawayChance)
	errs = append(errs, admission.CheckNames(o.EnableAdmissionPlugins, o.DisableAdmissionPlugins))
	if _, err := serviceRanges(o.ServiceClusterIPRange); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, o.Peers.Validate(len(o.Etcd.Servers) > 0)...)
	errs = append(errs, o.Encryption.Validate()...)
	errs = append(errs, o.checkAuth()...)
	errs = append(errs, o.FlowControl.validate()...)
	errs = append(errs, o.Nodeagents.Validate()...)
	errs = append(errs, o.checkObservability()...)
	return errors.Join(append(errs, o.checkFiles()...)...)
}

func (o *Options) checkFiles() []error {
	files := []struct{ flag, path string }{
		{"tls-cert-file", o.TLSCertFile},
		{"tls-private-key-file", o.TLSPrivateKeyFile},
		{"client-ca-file", o.ClientCAFile},
		{"token-auth-file", o.TokenAuthFile},
		{"authentication-config", o.Authentication.ConfigFile},
		{"oidc-ca-file", o.Authentication.OIDC.CAFile},
		{"authentication-token-webhook-config-file", o.TokenWebhook.ConfigFile},
		{proxyCAFlag, o.Proxies.ClientCAFile},
		{"authorization-config", o.Authorization.ConfigFile},
		{"authorization-webhook-config-file", o.Authorization.Webhook.ConfigFile},
		{"service-account-signing-key-file", o.ServiceAccountSigningKeyFile},
		{"admission-control-config-file", o.AdmissionControlConfigFile},
		{"nodeagent-client-certificate", o.Nodeagents.ClientCertificate},
		{"nodeagent-client-key", o.Nodeagents.ClientKey},
		{"nodeagent-certificate-authority", o.Nodeagents.CertificateAuthority},
		{"audit-policy-file", o.Audit.PolicyFile},
		{"audit-webhook-config-file", o.Audit.WebhookOptions.ConfigFile},
		{"tracing-config-file", o.Tracing.ConfigFile},
		{"etcd-certfile", o.Etcd.CertFile},
		{"etcd-keyfile", o.Etcd.KeyFile},
		{"etcd-cafile", o.Etcd.CAFile},
		{"encryption-provider-config", o.Encryption.ConfigFile},
	}
	for _, path := range o.ServiceAccountKeyFiles {
		files = append(files, struct{ flag, path string }{"service-account-key-file", path})
	}
	var errs []error
	for _, f := range files {
		if f.path == "" {
			continue
		}
		if _, err := os.Stat(f.path); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", f.flag, err))
		}
	}
	return errs
}

// audiences are the names that the server goes by in tokens.
func (o *Options) audiences() []string {
	if len(o.APIAudiences) > 0 {
		return o.APIAudiences
	}
	return []string{o.ServiceAccountIssuer}
}
