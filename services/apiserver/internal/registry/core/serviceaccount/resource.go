// Package serviceaccount is the resource ServiceAccount of the core group: the identity of Pods. Its /token issues
// tokens for it.
package serviceaccount

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/registry/rest"
)

// Resource is the ServiceAccount without its /token.
var Resource = rest.Resource[*corev1.ServiceAccount]{
	Name:       "serviceaccounts",
	Singular:   "serviceaccount",
	ShortNames: []string{"sa"},
	New:        func() *corev1.ServiceAccount { return &corev1.ServiceAccount{} },
	NewList:    func() runtime.Object { return &corev1.ServiceAccountList{} },
	Strategy: rest.Strategy[*corev1.ServiceAccount]{
		PrepareForCreate: keepSecretNames,
		PrepareForUpdate: func(sa, _ *corev1.ServiceAccount) { keepSecretNames(sa) },
	},
	Columns: rest.NewColumns(
		rest.NameColumn[*corev1.ServiceAccount](),
		rest.Column("Secrets", "string", corev1.ServiceAccount{}.SwaggerDoc()["secrets"],
			func(sa *corev1.ServiceAccount) any { return int64(len(sa.Secrets)) }),
		rest.AgeColumn[*corev1.ServiceAccount](),
	),
	ReturnDeleted: true,
}

// withToken is the ServiceAccount with its /token.
type withToken struct {
	rest.Resource[*corev1.ServiceAccount]
}

// Entry is the ServiceAccount and, if tokens can be issued, its /token.
func Entry(tokens Tokens) rest.Entry {
	r := Resource
	if tokens.Issuer != nil {
		r.Subresources = map[string]func(*rest.Storage) genericrest.Storage{
			"serviceaccounts/token": func(s *rest.Storage) genericrest.Storage { return newTokenStorage(s, tokens) },
		}
	}
	return withToken{r}
}

// AddToScheme registers the defaults of token requests too.
func (r withToken) AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&authenticationv1.TokenRequest{}, func(obj any) {
		DefaultTokenRequest(obj.(*authenticationv1.TokenRequest))
	})
	return r.Resource.AddToScheme(scheme)
}

// keepSecretNames reduces the references to Secrets to their names: all are in the account's namespace.
func keepSecretNames(sa *corev1.ServiceAccount) {
	for i := range sa.Secrets {
		sa.Secrets[i] = corev1.ObjectReference{Name: sa.Secrets[i].Name}
	}
}
