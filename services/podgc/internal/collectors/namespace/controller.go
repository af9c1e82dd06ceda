package namespace

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/client"
	"keelson.dev/kit/controller"
)

// Name is the collector's.
const Name = "namespace"

// workers is how many namespaces are emptied at once.
const workers = 5

// Registration describes the collector.
func Registration() controller.Registration {
	return controller.Registration{
		Name: Name, Explains: []string{"Namespace"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"namespaces/finalize", "namespaces/status"},
				Verbs: []string{"update"}},
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list", "delete", "deletecollection"}},
		},
		Setup: setup,
	}
}

func setup(s *controller.Setup) (controller.Runnable, error) {
	c := &collector{live: s.Live, log: s.Log, last: decisions{of: map[types.UID]decision{}}}
	var err error
	if c.metadata, err = client.Metadata(s.Config); err != nil {
		return nil, err
	}
	if c.clientset, err = kubernetes.NewForConfig(s.Config); err != nil {
		return nil, fmt.Errorf("building the client: %w", err)
	}
	if c.server, err = discovery.NewDiscoveryClientForConfig(s.Config); err != nil {
		return nil, fmt.Errorf("building the discovery client: %w", err)
	}
	gone := handler.TypedFuncs[*corev1.Namespace, reconcile.Request]{
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Namespace], _ queue) {
			c.last.forget(e.Object.UID)
		}}
	return controller.Build(s, workers, c.steps()).
		Explain(c.explain).
		Watch(controller.Objects(s.Cache, &corev1.Namespace{}, predicate.NewTypedPredicateFuncs(NeedsWork)),
			source.Kind(s.Cache, &corev1.Namespace{}, gone)).
		Runnable()
}

type queue = controller.Queue[reconcile.Request]
