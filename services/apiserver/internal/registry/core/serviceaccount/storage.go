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

var resource = rest.Resource[*corev1.ServiceAccount]{
	Name:       "serviceaccounts",
	Singular:   "serviceaccount",
	ShortNames: []string{"sa"},
	New:        func() *corev1.ServiceAccount { return &corev1.ServiceAccount{} },
	NewList:    func() runtime.Object { return &corev1.ServiceAccountList{} },
	Strategy: rest.Strategy[*corev1.ServiceAccount]{
		PrepareForCreate: keepSecretNames,
		PrepareForUpdate: func(sa, _ *corev1.ServiceAccount) { keepSecretNames(sa) },
	},
	Columns:       columns,
	ReturnDeleted: true,
}

// AddToScheme registers the defaults, those of token requests included.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&authenticationv1.TokenRequest{}, func(obj any) {
		DefaultTokenRequest(obj.(*authenticationv1.TokenRequest))
	})
	return resource.AddToScheme(scheme)
}

// NewStorage opens the store and returns the ServiceAccount and, if tokens can be issued, its /token.
func NewStorage(o rest.Options, tokens Tokens) (map[string]genericrest.Storage, error) {
	storage, err := resource.NewStorage(o)
	if err != nil {
		return nil, err
	}
	paths := storage.Map()
	if tokens.Issuer != nil {
		paths["serviceaccounts/token"] = newTokenStorage(storage, tokens)
	}
	return paths, nil
}

// keepSecretNames reduces the references to Secrets to their names: all are in the account's namespace.
func keepSecretNames(sa *corev1.ServiceAccount) {
	for i := range sa.Secrets {
		sa.Secrets[i] = corev1.ObjectReference{Name: sa.Secrets[i].Name}
	}
}
