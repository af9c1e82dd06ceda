// Package serviceaccount keeps a ServiceAccount "default" in every namespace.
package serviceaccount

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "serviceaccount"

// Registration describes the controller. concurrent is how many namespaces it works on at once.
func Registration(concurrent int) controller.Registration {
	return controller.Registration{
		Name: Name, Explains: []string{"Namespace", "ServiceAccount"},
		Rules: []rbacv1.PolicyRule{
			wake.QuotaRule,
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"list", "watch",
				"create"}},
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, concurrent) },
	}
}

func setup(s *controller.Setup, concurrent int) (controller.Runnable, error) {
	c := &Controller{client: write.By(s).Client}
	return wake.Build(s, concurrent, c.steps()).
		Explain(explain.Explainer(c.steps(), account, nil)).
		ExplainKind("ServiceAccount", c.explainAccount).
		Watch(controller.Objects(s.Cache, &corev1.Namespace{}),
			source.Kind(s.Cache, &corev1.ServiceAccount{}, wake.NamespaceOf[*corev1.ServiceAccount](name))).
		Runnable()
}
