// Package servicecidr marks the ServiceCIDRs that cluster IPs may come from, and keeps a ServiceCIDR that is being
// deleted until none of its addresses is in use.
//
//	decide.go           what a ServiceCIDR needs (pure)
//	decide_explain.go   the explanation of a decision (pure)
//	reconcile.go        observe and apply
//	controller.go       what it reads and writes, and what wakes a ServiceCIDR up
package servicecidr

import (
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "servicecidr"

// Registration describes the controller. concurrent is how many ServiceCIDRs it works on at once.
func Registration(concurrent int) controller.Registration {
	return controller.Registration{
		Name:     Name,
		Explains: []string{"ServiceCIDR"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{networkingv1.GroupName}, Resources: []string{"servicecidrs"},
				Verbs: []string{"list", "update", "watch"}},
			{APIGroups: []string{networkingv1.GroupName}, Resources: []string{"servicecidrs/status"},
				Verbs: []string{"update"}},
			{APIGroups: []string{networkingv1.GroupName}, Resources: []string{"ipaddresses"}, Verbs: []string{"list"}},
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, concurrent) },
	}
}

func setup(s *controller.Setup, concurrent int) (controller.Runnable, error) {
	own := write.By(s)
	c := &Controller{reader: own.Client, live: s.Live, writer: own.Ungated("servicecidr")}
	return controller.Build(s, concurrent, c.steps()).
		Explain(explain.Explainer(c.steps(), account, nil)).
		Watch(controller.Objects(s.Cache, &networkingv1.ServiceCIDR{})).
		Runnable()
}
