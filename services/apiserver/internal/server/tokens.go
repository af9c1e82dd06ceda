package server

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/authn/satoken"
)

// tokens issues and verifies service-account tokens.
type tokens struct {
	issuer   *satoken.Issuer
	verifier *satoken.Verifier
	keys     satoken.Keys
	objects  *storedObjects
}

// newTokens returns nil when no key is configured.
func (o *Options) newTokens() (*tokens, error) {
	keys, err := satoken.LoadKeys(o.ServiceAccountKeyFiles...)
	if err != nil {
		return nil, fmt.Errorf("--service-account-key-file: %w", err)
	}
	t := &tokens{keys: keys, objects: &storedObjects{}}
	if o.ServiceAccountSigningKeyFile != "" {
		if t.issuer, err = satoken.LoadIssuer(o.ServiceAccountIssuer, o.ServiceAccountSigningKeyFile); err != nil {
			return nil, fmt.Errorf("--service-account-signing-key-file: %w", err)
		}
		if err := keys.Add(t.issuer.Public()); err != nil {
			return nil, fmt.Errorf("--service-account-signing-key-file: %w", err)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	t.verifier = satoken.NewVerifier([]string{o.ServiceAccountIssuer}, o.audiences(), keys, t.objects)
	return t, nil
}

// storedObjects reads what tokens are bound to from the watch caches of the
// server's own stores. It is filled in when the stores are open, before anything is served.
type storedObjects struct {
	storages map[string]genericrest.Storage
}

var _ satoken.Objects = &storedObjects{}

// fromCache accepts what the watch cache has.
var fromCache = &metav1.GetOptions{ResourceVersion: "0"}

// ServiceAccount implements satoken.Objects.
func (o *storedObjects) ServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return stored[*corev1.ServiceAccount](ctx, o, "serviceaccounts", namespace, name)
}

// Pod implements satoken.Objects.
func (o *storedObjects) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return stored[*corev1.Pod](ctx, o, "pods", namespace, name)
}

// Secret implements satoken.Objects.
func (o *storedObjects) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return stored[*corev1.Secret](ctx, o, "secrets", namespace, name)
}

// Node implements satoken.Objects.
func (o *storedObjects) Node(ctx context.Context, name string) (*corev1.Node, error) {
	return stored[*corev1.Node](ctx, o, "nodes", "", name)
}

func stored[O runtime.Object](ctx context.Context, o *storedObjects, resource, namespace, name string) (O, error) {
	var none O
	getter, ok := o.storages[resource].(genericrest.Getter)
	if !ok {
		return none, errors.New("reading " + resource + ": the store is not open yet")
	}
	obj, err := getter.Get(genericapirequest.WithNamespace(ctx, namespace), name, fromCache)
	if err != nil {
		return none, err
	}
	return obj.(O), nil
}
