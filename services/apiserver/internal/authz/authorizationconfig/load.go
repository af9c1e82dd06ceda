package authorizationconfig

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	libraryload "k8s.io/apiserver/pkg/apis/apiserver/load"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
)

// kind is what a file holds.
const kind = "AuthorizationConfiguration"

// compiler compiles match conditions. It is large.
var compiler = sync.OnceValue(authorizationcel.NewDefaultCompiler)

// load reads a configuration that can be followed. Each of the types of stays must be in it.
func load(content []byte, stays []apiserver.AuthorizerType) (*apiserver.AuthorizationConfiguration, error) {
	c, err := libraryload.LoadFromData(content)
	if err != nil {
		return nil, err
	}
	errs := validation.ValidateAuthorizationConfiguration(compiler(), nil, c, sets.New(types...), sets.New(webhook))
	for _, e := range errs {
		e.Field = placed(e.Field)
	}
	root := field.NewPath("authorizers")
	for i, a := range c.Authorizers {
		at := root.Index(i)
		name := strings.ToLower(string(a.Type))
		if a.Webhook == nil && slices.Contains(types, string(a.Type)) && a.Name != "" && a.Name != name {
			errs = append(errs, field.NotSupported(at.Child("name"), a.Name, []string{name}))
		}
		if a.Webhook != nil &&
			a.Webhook.ConnectionInfo.Type == apiserver.AuthorizationWebhookConnectionInfoTypeInCluster {
			errs = append(errs, field.NotSupported(at.Child("webhook", "connectionInfo", "type"),
				a.Webhook.ConnectionInfo.Type,
				[]string{apiserver.AuthorizationWebhookConnectionInfoTypeKubeConfigFile}))
		}
	}
	for _, kept := range stays {
		is := func(a apiserver.AuthorizerConfiguration) bool { return a.Type == kept }
		if !slices.ContainsFunc(c.Authorizers, is) {
			errs = append(errs, field.Required(root,
				fmt.Sprintf("the type %s, with which the apiserver has started, stays while it runs", kept)))
		}
	}
	if len(errs) == 1 {
		return nil, errs[0]
	}
	return c, errs.ToAggregate()
}

// ofAuthorizer is a path of the library below an authorizer.
var ofAuthorizer = regexp.MustCompile(`^(authorizers\[\d+\]\.)(.*)$`)

// placed is where a field is in the file: the library leaves the step webhook out.
func placed(path string) string {
	parts := ofAuthorizer.FindStringSubmatch(path)
	if parts == nil || slices.Contains([]string{"type", "name", "webhook"}, parts[2]) {
		return path
	}
	return parts[1] + "webhook." + parts[2]
}

// kept are the types of a configuration that later ones must have.
func kept(c *apiserver.AuthorizationConfiguration) []apiserver.AuthorizerType {
	var out []apiserver.AuthorizerType
	for _, a := range c.Authorizers {
		if a.Webhook == nil {
			out = append(out, a.Type)
		}
	}
	return out
}
