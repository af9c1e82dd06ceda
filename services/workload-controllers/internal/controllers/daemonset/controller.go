// Package daemonset runs one Pod of every DaemonSet on each of its nodes, and updates the Pods within the strategy's
// bounds.
//
//	decide.go               what one pass does, from what was observed (pure), by concern:
//	  decide_eligibility    which nodes a DaemonSet runs on
//	  decide_update         rolling updates, with and without surge
//	  decide_failed         the back-off of Pods that fail
//	placement.go            which nodes each DaemonSet runs on, updated incrementally
//	template.go             the Pods of a DaemonSet (pure)
//	status.go               the resulting status (pure)
//	events.go               the events that users see (pure)
//	reconcile.go            observe, apply
//	controller.go           what it reads and writes, and what wakes a DaemonSet up
package daemonset

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/podview"
	"keelson.dev/kit/rights"
	"keelson.dev/services/workload-controllers/internal/controllerrevision"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/podops"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "daemonset"

// nodeDelay is how long a change of a node waits for others, so that many nodes that join at once cost one pass.
const nodeDelay = 10 * time.Millisecond

// A change of a Pod waits for others delayPerNode for each node of its DaemonSet, at most delayAtMost.
const (
	delayPerNode = 20 * time.Microsecond
	delayAtMost  = 200 * time.Millisecond
)

// present selects the Pods that a decision looks at. A Pod that has ended and is being deleted counts as gone.
var present = podset.Fold{Name: "present", Holds: func(pod *corev1.Pod) bool {
	return !podview.IsTerminal(pod) || !podview.IsTerminating(pod)
}}

// Registration describes the controller. concurrent is how many DaemonSets it works on at once.
func Registration(feed *podfeed.Feed, concurrent int) controller.Registration {
	return controller.Registration{
		Name:        Name,
		Explains:    []string{"DaemonSet"},
		EventSource: eventSource,
		Rules: []rbacv1.PolicyRule{
			wake.QuotaRule,
			{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"apps"}, Resources: []string{"daemonsets/status"}, Verbs: []string{"update"}},
			// Setting an owner reference that blocks the owner's deletion needs the right to update its finalizers.
			{APIGroups: []string{"apps"}, Resources: []string{"daemonsets/finalizers"}, Verbs: []string{"update"}},
			controllerrevision.Rule,
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "delete", "list", "patch",
				"watch"}},
			rights.Events,
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, feed, concurrent) },
	}
}

func setup(s *controller.Setup, feed *podfeed.Feed, concurrent int) (controller.Runnable, error) {
	own, lean := write.LeanBy(s)
	c := &Controller{
		client: own.Client, live: s.Live, revisions: ownerindex.From(s, &appsv1.ControllerRevision{}),
		placement: NewPlacement(), pods: feed.Index, present: feed.Index.Register(present), gate: own.Gate,
		owners: wake.NewOwners(kind), writer: own.Gated(Name, &appsv1.DaemonSet{}),
		history:  controllerrevision.NewWriter(s, own),
		ops:      &podops.Operator{Client: lean, FieldManager: Name, Gate: own.Gate, Feed: feed, Log: s.Log},
		recorder: s.Recorder, now: time.Now, memory: map[types.UID]memory{},
	}
	// A DaemonSet keeps a Pod on each of its nodes.
	c.owners.Place = true
	return wake.Build(s, concurrent, c.steps()).
		Explain(explain.Explainer(c.steps(), account, nil)).
		Watch(source.Kind(s.Cache, &appsv1.DaemonSet{}, wake.Self(c.put, c.forget)),
			source.Kind(s.Cache, &appsv1.ControllerRevision{}, wake.Owned[*appsv1.ControllerRevision](c.owners)),
			source.Kind(s.Cache, &corev1.Node{}, c.onNode()),
			&podfeed.Source{Feed: feed, Cache: s.Cache, Requests: c.owners.OfPod, Delay: c.delay}).
		Runnable()
}

// onNode wakes up the DaemonSets that a node's change affects.
func (c *Controller) onNode() handler.TypedFuncs[*corev1.Node, reconcile.Request] {
	wakeAll := func(requests []reconcile.Request, q wake.Queue) {
		for _, request := range requests {
			q.AddAfter(request, nodeDelay)
		}
	}
	return handler.TypedFuncs[*corev1.Node, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Node], q wake.Queue) {
			wakeAll(c.placement.Put(e.Object), q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Node], q wake.Queue) {
			wakeAll(c.placement.Put(e.ObjectNew), q)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Node], q wake.Queue) {
			wakeAll(c.placement.Remove(e.Object), q)
		},
	}
}

// delay bounds the share of time that the passes of a DaemonSet on many nodes take, since each pass looks at every
// node.
func (c *Controller) delay(change podset.Change) time.Duration {
	nodes := 0
	for _, owner := range []*metav1.OwnerReference{change.Before, change.After} {
		if owner != nil {
			nodes = max(nodes, c.recall(owner.UID).nodes)
		}
	}
	return min(time.Duration(nodes)*delayPerNode, delayAtMost)
}

func (c *Controller) put(set *appsv1.DaemonSet) { c.owners.Selectors.Put(set, set.Spec.Selector) }

// forget drops what is remembered about a deleted DaemonSet.
func (c *Controller) forget(set *appsv1.DaemonSet) {
	c.owners.Selectors.Remove(set)
	c.placement.Forget(set)
	c.gate.Forget(set.UID)
	c.texts.Forget(set.UID)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.memory, set.UID)
}
