// Package endpointslicemirroring mirrors the Endpoints of Services without a selector, which users write, into
// EndpointSlices, which the Service proxies read.
//
//	decide.go           the slices of Endpoints (pure)
//	decide_explain.go   the explanation of a decision
//	reconcile.go        observe, apply
//	controller.go       what it reads and writes, and what wakes Endpoints up
package endpointslicemirroring

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/services/workload-controllers/internal/endpointfeed"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "endpointslicemirroring"

// Options are the controller's own flags.
type Options struct {
	// MaxEndpoints is how many addresses of each subset are mirrored.
	MaxEndpoints int32
	// Batch is how long a change of Endpoints waits for others.
	Batch time.Duration
}

// Registration describes the controller. concurrent is how many Endpoints it works on at once.
func Registration(o Options, concurrent int) controller.Registration {
	return controller.Registration{
		Name: Name, Explains: []string{"Endpoints", "EndpointSlice"},
		Rules: []rbacv1.PolicyRule{
			wake.QuotaRule,
			{APIGroups: []string{""}, Resources: []string{"services", "endpoints"}, Verbs: []string{"list", "watch"}},
			// Setting an owner reference that blocks the owner's deletion needs the right to update its finalizers.
			{APIGroups: []string{""}, Resources: []string{"endpoints/finalizers"}, Verbs: []string{"update"}},
			{APIGroups: []string{discoveryv1.GroupName}, Resources: []string{"endpointslices"},
				Verbs: []string{"list", "watch", "create", "update", "delete"}},
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, o, concurrent) },
	}
}

func setup(s *controller.Setup, o Options, concurrent int) (controller.Runnable, error) {
	own, slices := write.By(s), endpointfeed.SlicesBy(s, manager)
	c := &Controller{
		client: own.Client, gate: own.Gate, slices: slices, maxEndpoints: o.MaxEndpoints,
		writer: own.Gated("mirroredslice", &discoveryv1.EndpointSlice{}),
	}
	endpoints := explain.Explainer(c.steps(), account, nil)
	// The controller endpointslice explains the slices that this one does not keep.
	silent := func(*discoveryv1.EndpointSlice) string { return "" }
	return wake.Build(s, concurrent, c.steps()).
		Explain(endpoints).
		ExplainKind("EndpointSlice", slices.Explainer("Endpoints", endpoints, silent)).
		Watch(source.Kind(s.Cache, &corev1.Endpoints{}, c.onEndpoints(o.Batch)),
			source.Kind(s.Cache, &corev1.Service{}, onService()),
			source.Kind(s.Cache, &discoveryv1.EndpointSlice{}, slices.OnSlice())).
		Runnable()
}

// onEndpoints wakes up Endpoints that came or changed. The slices of those that are gone go by their owner reference.
func (c *Controller) onEndpoints(batch time.Duration) handler.TypedFuncs[*corev1.Endpoints, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Endpoints, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Endpoints], q wake.Queue) {
			q.AddAfter(wake.Request(e.Object.Namespace, e.Object.Name), batch)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Endpoints], q wake.Queue) {
			q.AddAfter(wake.Request(e.ObjectNew.Namespace, e.ObjectNew.Name), batch)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Endpoints], _ wake.Queue) {
			c.gate.Forget(e.Object.UID)
		},
	}
}

// onService wakes up the Endpoints of a Service that came, went or now has a selector, or none.
func onService() handler.TypedFuncs[*corev1.Service, reconcile.Request] {
	wakeUp := func(service *corev1.Service, q wake.Queue) { q.Add(wake.Request(service.Namespace, service.Name)) }
	return handler.TypedFuncs[*corev1.Service, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Service], q wake.Queue) {
			wakeUp(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Service], q wake.Queue) {
			if (len(e.ObjectOld.Spec.Selector) == 0) != (len(e.ObjectNew.Spec.Selector) == 0) {
				wakeUp(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Service], q wake.Queue) {
			wakeUp(e.Object, q)
		},
	}
}
