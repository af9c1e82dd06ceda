// Package endpointslice keeps the EndpointSlices of Services that select Pods: where the Pods can be reached, and which
// of them are ready, serving and terminating.
//
//	library.go          the field's own library decides (pure)
//	decide.go           what it decides from and what comes out (pure)
//	decide_explain.go   the decision in words (pure)
//	events.go           the events that users see (pure)
//	reconcile.go        observe, apply
//	controller.go       what it reads and writes, and what wakes a Service up
package endpointslice

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/endpointslice/util"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/rights"
	"keelson.dev/services/workload-controllers/internal/endpointfeed"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "endpointslice"

// Options are the controller's own flags.
type Options struct {
	// MaxEndpoints is how many endpoints a slice may have.
	MaxEndpoints int32
	// Batch is how long a Pod's change waits for others.
	Batch time.Duration
}

// Registration describes the controller. concurrent is how many Services it works on at once.
func Registration(feed *podfeed.Feed, o Options, concurrent int) controller.Registration {
	return controller.Registration{
		Name:        Name,
		EventSource: eventSource,
		Explains:    []string{"Service", "EndpointSlice"},
		Rules: []rbacv1.PolicyRule{
			wake.QuotaRule,
			{APIGroups: []string{""}, Resources: []string{"services", "pods", "nodes"},
				Verbs: []string{"list", "watch"}},
			// Setting an owner reference that blocks the owner's deletion needs the right to update its finalizers.
			{APIGroups: []string{""}, Resources: []string{"services/finalizers"}, Verbs: []string{"update"}},
			{APIGroups: []string{discoveryv1.GroupName}, Resources: []string{"endpointslices"},
				Verbs: []string{"list", "watch", "create", "update", "delete"}},
			rights.Events,
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, feed, o, concurrent) },
	}
}

func setup(s *controller.Setup, feed *podfeed.Feed, o Options, concurrent int) (controller.Runnable, error) {
	own, slices := write.By(s), endpointfeed.SlicesBy(s, manager)
	c := &Controller{
		client: own.Client, gate: own.Gate, services: endpointfeed.NewServices(feed.Index), slices: slices,
		writer:  own.Gated("endpointslice", &discoveryv1.EndpointSlice{}),
		changes: util.NewTriggerTimeTracker(), maxEndpoints: o.MaxEndpoints, told: s.Recorder,
	}
	services := explain.Explainer(c.stepsOf(c.see), account, leaves)
	return wake.Build(s, concurrent, c.steps()).
		Explain(services).
		ExplainKind("EndpointSlice", slices.Explainer("Service", services, leavesSlice)).
		Watch(source.Kind(s.Cache, &corev1.Service{}, wake.Self(c.services.Put, c.forget)),
			&podfeed.Source{Feed: feed, Cache: s.Cache, Requests: c.services.OnPod,
				Delay: func(podset.Change) time.Duration { return o.Batch }},
			source.Kind(s.Cache, &corev1.Node{}, c.services.OnNode()),
			source.Kind(s.Cache, &discoveryv1.EndpointSlice{}, slices.OnSlice())).
		Last(c.services.Close).
		Runnable()
}
