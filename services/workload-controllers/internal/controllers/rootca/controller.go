// Package rootca publishes the CA of the apiserver in every namespace, as ConfigMap "kube-root-ca.crt".
package rootca

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/services/workload-controllers/internal/owncache"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
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
	// The shared cache would hold every ConfigMap.
	published, err := owncache.New(s, "metadata.name", name)
	if err != nil {
		return nil, err
	}
	c := &Controller{client: write.By(s).Client, published: published, rootCA: rootCA}
	return wake.Build(s, concurrent, c.steps()).
		Explain(explain.Explainer(c.steps(), account, nil)).
		Watch(controller.Objects(s.Cache, &corev1.Namespace{}),
			source.Kind(published, &corev1.ConfigMap{}, wake.NamespaceOf[*corev1.ConfigMap](name))).
		Beside(published.Start).
		Runnable()
}
