package authenticationconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
	cliflag "k8s.io/component-base/cli/flag"
)

// Options are the settings; the doc of each is its flag's text.
type Options struct {
	// ConfigFile is empty where the flags say all.
	ConfigFile string
	Anonymous  bool
	OIDC       OIDC

	// given reports whether a flag was set at the start of the server; nil: it is not known.
	given func(flag string) bool
}

// OIDC are the flags that stand for one issuer.
type OIDC struct {
	IssuerURL, ClientID, CAFile   string
	UsernameClaim, UsernamePrefix string
	GroupsClaim, GroupsPrefix     string
	SigningAlgs                   []string
	RequiredClaims                map[string]string
}

const (
	fileFlag      = "authentication-config"
	anonymousFlag = "anonymous-auth"
	oidcFlags     = "oidc-"

	defaultUsernameClaim = "sub"
	defaultSigningAlg    = "RS256"
)

// NewOptions returns the defaults.
func NewOptions() Options {
	return Options{
		Anonymous: true,
		OIDC:      OIDC{UsernameClaim: defaultUsernameClaim, SigningAlgs: []string{defaultSigningAlg}},
	}
}

// AddFlags binds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.given = fs.Changed
	fs.StringVar(&o.ConfigFile, fileFlag, o.ConfigFile,
		"file with an apiserver.config.k8s.io AuthenticationConfiguration: the issuers of tokens that are believed, "+
			"and which requests may be anonymous; changes of it are followed. It takes the place of all --oidc-* flags")
	fs.BoolVar(&o.Anonymous, anonymousFlag, o.Anonymous,
		"let requests without credentials in as system:anonymous; not with a file that says so itself")
	fs.StringVar(&o.OIDC.IssuerURL, "oidc-issuer-url", o.OIDC.IssuerURL,
		"https URL of the issuer whose OpenID Connect tokens are believed; default: none")
	fs.StringVar(&o.OIDC.ClientID, "oidc-client-id", o.OIDC.ClientID, "audience that its tokens must be meant for")
	fs.StringVar(&o.OIDC.CAFile, "oidc-ca-file", o.OIDC.CAFile,
		"PEM bundle that verifies the issuer; default: the machine's roots")
	fs.StringVar(&o.OIDC.UsernameClaim, "oidc-username-claim", o.OIDC.UsernameClaim, "claim that is the user's name")
	fs.StringVar(&o.OIDC.UsernamePrefix, "oidc-username-prefix", o.OIDC.UsernamePrefix,
		"what stands before the user's name; - is nothing; default: the issuer's URL and #, and nothing for the claim "+
			"email")
	fs.StringVar(&o.OIDC.GroupsClaim, "oidc-groups-claim", o.OIDC.GroupsClaim,
		"claim that has the user's groups, one or a list; default: none")
	fs.StringVar(&o.OIDC.GroupsPrefix, "oidc-groups-prefix", o.OIDC.GroupsPrefix,
		"what stands before each of these groups; without it an issuer can put its users into system:masters")
	fs.StringSliceVar(&o.OIDC.SigningAlgs, "oidc-signing-algs", o.OIDC.SigningAlgs,
		"algorithms by which its tokens may be signed: "+strings.Join(oidc.AllValidSigningAlgorithms(), ", "))
	fs.Var(cliflag.NewMapStringStringNoSplit(&o.OIDC.RequiredClaims), "oidc-required-claim",
		"CLAIM=VALUE that a token must have; may be repeated")
}

// Validate says what is wrong with the values.
func (o *Options) Validate() []error {
	var errs []error
	if o.ConfigFile != "" && (o.OIDC.configured() || o.oidcFlagGiven()) {
		errs = append(errs, fmt.Errorf("--%s: not together with --%s* flags: what these say stands in the file, "+
			"as one of jwt", fileFlag, oidcFlags))
	}
	if o.ConfigFile == "" && (o.OIDC.IssuerURL == "" || o.OIDC.ClientID == "") &&
		(o.OIDC.configured() || o.oidcFlagGiven()) {
		errs = append(errs, errors.New("--oidc-issuer-url: needs --oidc-client-id, and all --oidc-* flags need both"))
	}
	for _, name := range o.OIDC.SigningAlgs {
		if !slices.Contains(oidc.AllValidSigningAlgorithms(), name) {
			errs = append(errs, fmt.Errorf("--oidc-signing-algs: %q is none of %s", name,
				strings.Join(oidc.AllValidSigningAlgorithms(), ", ")))
		}
	}
	return errs
}

// configured is whether anything is there that stands for an issuer.
func (o OIDC) configured() bool {
	return o.IssuerURL != "" || o.ClientID != "" || o.CAFile != "" || o.UsernamePrefix != "" || o.GroupsClaim != "" ||
		o.GroupsPrefix != "" || len(o.RequiredClaims) > 0
}

func (o *Options) oidcFlagGiven() bool {
	return o.given != nil && (o.given("oidc-username-claim") || o.given("oidc-signing-algs"))
}

// anonymousGiven is whether --anonymous-auth was set by hand.
func (o *Options) anonymousGiven() bool {
	return !o.Anonymous || o.given != nil && o.given(anonymousFlag)
}
