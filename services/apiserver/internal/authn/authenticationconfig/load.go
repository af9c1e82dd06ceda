package authenticationconfig

import (
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
)

// decoder reads the versions of the file, and refuses what it does not know.
var decoder = sync.OnceValue(func() runtime.Decoder {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
})

// kind is what a file holds.
const kind = "AuthenticationConfiguration"

// compiler compiles the expressions. It is large.
var compiler = sync.OnceValue(authenticationcel.NewDefaultCompiler)

// load reads a configuration that can be followed. Tokens of the issuers own are the server's own to verify.
func load(content []byte, own []string) (*apiserver.AuthenticationConfiguration, error) {
	decoded, err := runtime.Decode(decoder(), content)
	if err != nil {
		return nil, err
	}
	c, ok := decoded.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, fmt.Errorf("kind: must be %s", kind)
	}
	return c, check(c, own)
}

// check says what is wrong with a configuration.
func check(c *apiserver.AuthenticationConfiguration, own []string) error {
	errs := validation.ValidateAuthenticationConfiguration(compiler(), c, own)
	for i, jwt := range c.JWT {
		if jwt.Issuer.EgressSelectorType != "" {
			errs = append(errs, field.Forbidden(
				field.NewPath("jwt").Index(i).Child("issuer", "egressSelectorType"),
				"there is no egress selection: the issuer is reached from the apiserver's machine"))
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errs.ToAggregate()
}

var errAnonymousTwice = errors.New("anonymous: must not be set together with --" + anonymousFlag)
