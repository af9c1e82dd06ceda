// Package endpoint keeps the Endpoints of Services that select Pods, for those who do not read EndpointSlices.
//
//	decide.go           the Endpoints of a Service (pure)
//	decide_subsets.go   the addresses of Pods, grouped by their ports (pure)
//	decide_explain.go   what a decision came to, in words
//	events.go           the events that users see (pure)
//	reconcile.go        observe, apply
//	controller.go       what it reads and writes, and what wakes a Service up
package endpoint

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/endpointslice/util"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/rights"
	"keelson.dev/services/workload-controllers/internal/endpointfeed"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "endpoint"

// Options are the controller's own flags.
type Options struct {
	// Batch is how long a Pod's change waits for others.
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
	store, err := gate.StoreOf(s.Cache, &corev1.Endpoints{})
	if err != nil {
		return nil, err
	}
	own, pending := client.WithFieldOwner(s.Client, Name), gate.New()
	c := &Controller{
		client: own, gate: pending, services: endpointfeed.NewServices(feed.Index),
		writer:  &write.Writer{Client: own, Kind: "endpoints", Gate: pending, Store: store},
		changes: util.NewTriggerTimeTracker(), told: s.Recorder, gone: map[types.NamespacedName]bool{},
	}
	built, err := wake.NewReconciler(s, concurrent, c)
	if err != nil {
		return nil, err
	}
	s.Explain(explain.Explainer(c.stepsOf(c.see), account, leaves))
	for kind, watch := range map[string]source.SyncingSource{
		"Services": source.Kind(s.Cache, &corev1.Service{}, c.onService()),
		"Pods": &podfeed.Source{Feed: feed, Cache: s.Cache, Requests: c.services.OnPod,
			Delay: func(podset.Change) time.Duration { return o.Batch }},
		"Endpoints": source.Kind(s.Cache, &corev1.Endpoints{},
			&handler.TypedEnqueueRequestForObject[*corev1.Endpoints]{}),
	} {
		if err := built.Watch(watch); err != nil {
			return nil, fmt.Errorf("watching %s: %w", kind, err)
		}
	}
	return c.services.Term(built), nil
}

// onService wakes up a Service also when it is gone: its Endpoints know nothing of it.
func (c *Controller) onService() handler.TypedFuncs[*corev1.Service, reconcile.Request] {
	self := wake.Self(c.services.Put, c.forget)
	forget := self.DeleteFunc
	self.DeleteFunc = func(ctx context.Context, e event.TypedDeleteEvent[*corev1.Service], q wake.Queue) {
		forget(ctx, e, q)
		q.Add(wake.Request(e.Object.Namespace, e.Object.Name))
	}
	return self
}
