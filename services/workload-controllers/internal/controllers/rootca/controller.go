// Package rootca publishes the CA of the apiserver in every namespace, as ConfigMap "kube-root-ca.crt".
package rootca

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/services/workload-controllers/internal/wake"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "rootca"

// Registration describes the controller. rootCA is the PEM bundle to publish; concurrent is how many namespaces it
// works on at once.
func Registration(rootCA []byte, concurrent int) controller.Registration {
	return controller.Registration{
		Name: Name, Explains: []string{"Namespace"},
		Rules: []rbacv1.PolicyRule{
			wake.QuotaRule,
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch", "create",
				"update"}},
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, string(rootCA), concurrent) },
	}
}

func setup(s *controller.Setup, rootCA string, concurrent int) (controller.Runnable, error) {
	// The service's cache would hold every ConfigMap there is.
	published, err := cache.New(s.Config, cache.Options{Scheme: s.Scheme,
		DefaultFieldSelector: fields.OneTermEqualSelector("metadata.name", name)})
	if err != nil {
		return nil, fmt.Errorf("building the cache of ConfigMaps: %w", err)
	}
	c := &Controller{client: client.WithFieldOwner(s.Client, Name), published: published, rootCA: rootCA}
	built, err := wake.NewReconciler(s, concurrent, c.steps())
	if err != nil {
		return nil, err
	}
	s.Explain(explain.Explainer(c.steps(), account, nil))
	namespaces := source.Kind(s.Cache, &corev1.Namespace{}, &handler.TypedEnqueueRequestForObject[*corev1.Namespace]{})
	if err := built.Watch(namespaces); err != nil {
		return nil, fmt.Errorf("watching Namespaces: %w", err)
	}
	configMaps := source.Kind(published, &corev1.ConfigMap{}, wake.NamespaceOf[*corev1.ConfigMap](name))
	if err := built.Watch(configMaps); err != nil {
		return nil, fmt.Errorf("watching ConfigMaps: %w", err)
	}
	return &withCache{Runnable: built, cache: published}, nil
}

// withCache runs a controller and the cache that it alone reads.
type withCache struct {
	controller.Runnable
	cache cache.Cache
}

// Start returns when both have stopped.
func (w *withCache) Start(ctx context.Context) error {
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return w.cache.Start(ctx) })
	both.Go(func() error { return w.Runnable.Start(ctx) })
	return both.Wait()
}
