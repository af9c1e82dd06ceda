// Package endpoint keeps the Endpoints of Services that select Pods, for clients that do not read EndpointSlices.
//
//	decide.go           the Endpoints of a Service (pure)
//	decide_subsets.go   the addresses of Pods, grouped by their ports (pure)
//	decide_explain.go   the explanation of a decision
//	events.go           the events that users see (pure)
//	reconcile.go        observe, apply
//	controller.go       what it reads and writes, and what wakes a Service up
package endpoint

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/endpointslice/util"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
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
const Name = "endpoint"

// Options are the controller's own flags.
type Options struct {
	// Batch is how long a change of a Pod waits for further changes.
	Batch time.Duration
}

// Registration describes the controller. concurrent is how many Services it works on at once.
func Registration(feed *podfeed.Feed, o Options, concurrent int) controller.Registration {
	return controller.Registration{
		Name:        Name,
		EventSource: eventSource,
		Explains:    []string{"Endpoints"},
		Rules: []rbacv1.PolicyRule{
			wake.QuotaRule,
			{APIGroups: []string{""}, Resources: []string{"services", "pods"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"endpoints"},
				Verbs: []string{"list", "watch", "create", "update", "delete"}},
			rights.Events,
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, feed, o, concurrent) },
	}
}

func setup(s *controller.Setup, feed *podfeed.Feed, o Options, concurrent int) (controller.Runnable, error) {
	own := write.By(s)
	c := &Controller{
		client: own.Client, gate: own.Gate, services: endpointfeed.NewServices(feed.Index),
		writer:  own.Gated("endpoints", &corev1.Endpoints{}),
		changes: util.NewTriggerTimeTracker(), told: s.Recorder, gone: map[types.NamespacedName]bool{},
	}
	return wake.Build(s, concurrent, c).
		Explain(explain.Explainer(c.stepsOf(c.see), account, leaves)).
		Watch(source.Kind(s.Cache, &corev1.Service{}, c.onService()),
			&podfeed.Source{Feed: feed, Cache: s.Cache, Requests: c.services.OnPod,
				Delay: func(podset.Change) time.Duration { return o.Batch }},
			controller.Objects(s.Cache, &corev1.Endpoints{})).
		Last(c.services.Close).
		Runnable()
}

// onService also wakes up a deleted Service: its Endpoints have no owner reference to it.
func (c *Controller) onService() handler.TypedFuncs[*corev1.Service, reconcile.Request] {
	self := wake.Self(c.services.Put, c.forget)
	forget := self.DeleteFunc
	self.DeleteFunc = func(ctx context.Context, e event.TypedDeleteEvent[*corev1.Service], q wake.Queue) {
		forget(ctx, e, q)
		q.Add(wake.Request(e.Object.Namespace, e.Object.Name))
	}
	return self
}
