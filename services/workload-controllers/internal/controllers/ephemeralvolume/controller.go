// Package ephemeralvolume creates the PersistentVolumeClaims of generic ephemeral volumes: each is owned by one Pod and
// deleted with it.
//
//	decide.go            which claims a Pod lacks, and which it cannot have (pure)
//	decide_explain.go    the explanation of a decision
//	events.go            the events that users see (pure)
//	users.go             the Pods that use a claim of a name
//	reconcile.go         observe and apply
//	controller.go        what it reads and writes, and what wakes a Pod up
package ephemeralvolume

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/rights"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "ephemeralvolume"

// Registration describes the controller. concurrent is how many Pods it works on at once.
func Registration(concurrent int) controller.Registration {
	return controller.Registration{
		Name:        Name,
		Explains:    []string{"Pod"},
		EventSource: eventSource,
		Rules: []rbacv1.PolicyRule{
			wake.QuotaRule,
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"pods/finalizers"}, Verbs: []string{"update"}},
			{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"},
				Verbs: []string{"create", "list", "watch"}},
			rights.Events,
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, concurrent) },
	}
}

func setup(s *controller.Setup, concurrent int) (controller.Runnable, error) {
	own := write.By(s)
	c := &Controller{client: own.Client, writer: own.Ungated("persistentvolumeclaim.ephemeral"),
		recorder: s.Recorder, users: newUsers()}
	return wake.Build(s, concurrent, c.steps()).
		Explain(explain.Explainer(c.steps(), account, leaves)).
		Watch(source.Kind(s.Cache, &corev1.Pod{}, c.onPod()),
			source.Kind(s.Cache, &corev1.PersistentVolumeClaim{}, c.onClaim())).
		Runnable()
}

// onPod wakes up a new Pod. The volumes of a Pod never change.
func (c *Controller) onPod() handler.TypedFuncs[*corev1.Pod, reconcile.Request] {
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Pod], q wake.Queue) {
			if names := claimNames(e.Object); len(names) > 0 {
				c.users.add(e.Object, names)
				q.Add(wake.Request(e.Object.Namespace, e.Object.Name))
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Pod], _ wake.Queue) {
			c.users.remove(e.Object, claimNames(e.Object))
		},
	}
}

// onClaim wakes up the Pods that use the name of a deleted claim.
func (c *Controller) onClaim() handler.TypedFuncs[*corev1.PersistentVolumeClaim, reconcile.Request] {
	return handler.TypedFuncs[*corev1.PersistentVolumeClaim, reconcile.Request]{
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.PersistentVolumeClaim], q wake.Queue) {
			claim := types.NamespacedName{Namespace: e.Object.Namespace, Name: e.Object.Name}
			for _, pod := range c.users.of(claim) {
				q.Add(wake.Request(claim.Namespace, pod))
			}
		},
	}
}
