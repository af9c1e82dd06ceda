// Package resourceclaim creates the ResourceClaims that Pods request by templates, records them in the Pods' status,
// and releases claims from Pods that no longer need them.
//
//	decide.go            which claims a Pod lacks, and which claims its status must name (pure)
//	decide_claim.go      which Pods no longer need a claim, and when it ends (pure)
//	decide_explain.go    the explanation of a decision
//	events.go            the events that users see (pure)
//	stores.go            the indexes of the caches
//	reconcile.go         observe and apply, for Pods; reconcile_claim.go for claims
//	controller.go        what it reads and writes; watch.go: what wakes a Pod or a claim up
package resourceclaim

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/rights"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "resourceclaim"

// Registration describes the controller. concurrent is how many Pods and claims it works on at once.
func Registration(concurrent int) controller.Registration {
	devices := func(verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{resourcev1.GroupName}, Resources: resources, Verbs: verbs}
	}
	return controller.Registration{
		Name:        Name,
		Explains:    []string{"Pod"},
		EventSource: eventSource,
		Rules: []rbacv1.PolicyRule{
			wake.QuotaRule,
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"pods/finalizers"}, Verbs: []string{"update"}},
			{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
			devices([]string{"list", "watch"}, "resourceclaimtemplates"),
			devices([]string{"create", "delete", "list", "update", "watch"}, "resourceclaims"),
			devices([]string{"update"}, "resourceclaims/binding", "resourceclaims/status"),
			rights.Events,
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, concurrent) },
	}
}

func setup(s *controller.Setup, concurrent int) (controller.Runnable, error) {
	own := write.By(s)
	c := &Controller{client: own.Client, live: s.Live, stores: storesOf(s), gate: own.Gate, recorder: s.Recorder,
		writer: own.Gated("resourceclaim", &resourcev1.ResourceClaim{})}
	return wake.Build(s, concurrent, reconcile.Reconciler(c)).
		Explain(explain.Explainer(c.podSteps(), account, leaves)).
		Watch(source.Kind(s.Cache, &corev1.Pod{}, c.onPod()),
			source.Kind(s.Cache, &resourcev1.ResourceClaim{}, c.onClaim()),
			source.Kind(s.Cache, &resourcev1.ResourceClaimTemplate{}, c.onTemplate())).
		Runnable()
}
