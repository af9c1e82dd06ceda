package credentialprovider

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	kubeletv1 "k8s.io/kubelet/config/v1"
	credentialproviderv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// version is that of the requests to plugins and of their answers.
var version = credentialproviderv1.SchemeGroupVersion.String()

// problems collects what is wrong with a configuration, a sentence for each field.
type problems []string

func (p *problems) add(path, format string, args ...any) {
	*p = append(*p, path+": "+fmt.Sprintf(format, args...))
}

// check returns what is wrong with the providers of a file.
func check(providers []kubeletv1.CredentialProvider) problems {
	var wrong problems
	if len(providers) == 0 {
		wrong.add("providers", "must name at least one provider")
	}
	for i := range providers {
		checkProvider(&wrong, fmt.Sprintf("providers[%d]", i), &providers[i])
	}
	return wrong
}

func checkProvider(wrong *problems, at string, p *kubeletv1.CredentialProvider) {
	if p.Name == "" || p.Name == "." || p.Name == ".." || strings.ContainsAny(p.Name, "/ \x00") {
		wrong.add(at+".name", "%q must be the name of a file in the folder of plugins, without slashes and spaces",
			p.Name)
	}
	if len(p.MatchImages) == 0 {
		wrong.add(at+".matchImages", "must have at least one entry")
	}
	for i, text := range p.MatchImages {
		if _, err := parsePattern(text); err != nil {
			wrong.add(fmt.Sprintf("%s.matchImages[%d]", at, i), "%q %s", text, err)
		}
	}
	switch {
	case p.DefaultCacheDuration == nil:
		wrong.add(at+".defaultCacheDuration", "must be set, for example to 10m; 0s keeps no credentials")
	case p.DefaultCacheDuration.Duration < 0:
		wrong.add(at+".defaultCacheDuration", "%s must be at least 0s", p.DefaultCacheDuration.Duration)
	}
	if p.APIVersion != version {
		wrong.add(at+".apiVersion", "%q must be %q", p.APIVersion, version)
	}
	checkCommand(wrong, at, p)
	if p.TokenAttributes != nil {
		checkToken(wrong, at+".tokenAttributes", p.TokenAttributes)
	}
}

// checkCommand refuses what no program can be given.
func checkCommand(wrong *problems, at string, p *kubeletv1.CredentialProvider) {
	for i, arg := range p.Args {
		if strings.Contains(arg, "\x00") {
			wrong.add(fmt.Sprintf("%s.args[%d]", at, i), "must not contain a NUL character")
		}
	}
	for i, env := range p.Env {
		if env.Name == "" || strings.ContainsAny(env.Name, "=\x00") {
			wrong.add(fmt.Sprintf("%s.env[%d].name", at, i), "%q must be the name of a variable, without =", env.Name)
		}
		if strings.Contains(env.Value, "\x00") {
			wrong.add(fmt.Sprintf("%s.env[%d].value", at, i), "must not contain a NUL character")
		}
	}
}

var tokenCaches = []kubeletv1.ServiceAccountTokenCacheType{kubeletv1.TokenServiceAccountTokenCacheType,
	kubeletv1.ServiceAccountServiceAccountTokenCacheType}

func checkToken(wrong *problems, at string, t *kubeletv1.ServiceAccountTokenAttributes) {
	if t.ServiceAccountTokenAudience == "" {
		wrong.add(at+".serviceAccountTokenAudience", "must be set: for whom the tokens are")
	}
	if !slices.Contains(tokenCaches, t.CacheType) {
		wrong.add(at+".cacheType", "%q must be Token or ServiceAccount", t.CacheType)
	}
	required := at + ".requiredServiceAccountAnnotationKeys"
	switch {
	case t.RequireServiceAccount == nil:
		wrong.add(at+".requireServiceAccount", "must be true or false")
	case !*t.RequireServiceAccount && len(t.RequiredServiceAccountAnnotationKeys) > 0:
		wrong.add(required, "must be empty unless requireServiceAccount is true")
	}
	checkKeys(wrong, required, t.RequiredServiceAccountAnnotationKeys, nil)
	checkKeys(wrong, at+".optionalServiceAccountAnnotationKeys", t.OptionalServiceAccountAnnotationKeys,
		t.RequiredServiceAccountAnnotationKeys)
}

// checkKeys checks keys of annotations, of which each may stand once, and none among the others.
func checkKeys(wrong *problems, at string, keys, others []string) {
	for i, key := range keys {
		path := fmt.Sprintf("%s[%d]", at, i)
		switch {
		case len(validation.IsQualifiedName(strings.ToLower(key))) > 0:
			wrong.add(path, "%q must be the key of an annotation, like example.com/name", key)
		case slices.Contains(keys[:i], key):
			wrong.add(path, "%q must stand only once", key)
		case slices.Contains(others, key):
			wrong.add(path, "%q must not stand in requiredServiceAccountAnnotationKeys too", key)
		}
	}
}
