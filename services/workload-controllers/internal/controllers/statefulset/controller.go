// Package statefulset maintains the Pods of StatefulSets, each with its own ordinal, name and claims.
//
//	decide.go            what one pass does, from what was observed (pure), by concern:
//	  decide_ordinals    which Pod has which ordinal
//	  decide_scale       missing, ended and surplus Pods, in order or all at once
//	  decide_update      Pods of an outdated revision
//	  decide_recover     the annotation that asks to replace Pods that were never ready
//	  decide_revision    which revision an ordinal is made from
//	  decide_claims      claims to create, and their owners
//	template.go          the Pods and claims of a set (pure)
//	status.go            the resulting status (pure)
//	events.go            the events that users see (pure)
//	reconcile.go         observe, apply
//	apply_pods.go        creating and deleting Pods
//	apply_claims.go      creating claims and changing their owners
//	controller.go        what it reads and writes, and what wakes a StatefulSet up
package statefulset

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/rights"
	"keelson.dev/services/workload-controllers/internal/controllerrevision"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/podops"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "statefulset"

// Registration describes the controller. concurrent is how many StatefulSets it works on at once.
func Registration(feed *podfeed.Feed, concurrent int) controller.Registration {
	return controller.Registration{
		Name:        Name,
		Explains:    []string{"StatefulSet"},
		EventSource: eventSource,
		Rules: []rbacv1.PolicyRule{
			wake.QuotaRule,
			{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"apps"}, Resources: []string{"statefulsets/status"}, Verbs: []string{"update"}},
			// Setting an owner reference that blocks the owner's deletion needs the right to update its finalizers.
			{APIGroups: []string{"apps"}, Resources: []string{"statefulsets/finalizers"}, Verbs: []string{"update"}},
			controllerrevision.Rule,
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "delete", "get", "list",
				"patch", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"create", "list",
				"update", "watch"}},
			rights.Events,
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, feed, concurrent) },
	}
}

func setup(s *controller.Setup, feed *podfeed.Feed, concurrent int) (controller.Runnable, error) {
	c := build(s, feed)
	return wake.Build(s, concurrent, c.steps()).
		Explain(explain.Explainer(c.steps(), account, nil)).
		Watch(source.Kind(s.Cache, &appsv1.StatefulSet{}, wake.Self(c.remember, c.forget)),
			source.Kind(s.Cache, &appsv1.ControllerRevision{}, wake.Owned[*appsv1.ControllerRevision](c.owners)),
			source.Kind(s.Cache, &corev1.PersistentVolumeClaim{}, c.onClaim()),
			&podfeed.Source{Feed: feed, Cache: s.Cache, Requests: c.owners.OfPod}).
		Runnable()
}

func build(s *controller.Setup, feed *podfeed.Feed) *Controller {
	own, lean := write.LeanBy(s)
	storage := s.Store(&corev1.PersistentVolumeClaim{})
	s.Check(indexClaims(storage))
	return &Controller{
		client: own.Client, live: s.Live, pods: feed.Index, revisions: ownerindex.From(s, &appsv1.ControllerRevision{}),
		claims: ownerindex.From(s, &corev1.PersistentVolumeClaim{}), storage: storage,
		owners: wake.NewOwners(kind), gate: own.Gate, recorder: s.Recorder, log: s.Log, now: time.Now,
		sets:        own.Gated(Name, &appsv1.StatefulSet{}),
		claimWriter: own.Gated("persistentvolumeclaim", &corev1.PersistentVolumeClaim{}),
		history:     controllerrevision.NewWriter(s, own),
		ops:         &podops.Operator{Client: lean, FieldManager: Name, Gate: own.Gate, Feed: feed, Log: s.Log},
	}
}

// onClaim wakes up the StatefulSets that a claim may belong to: a deleted claim is recreated, and changed owners may
// have to be changed back. The volume of a claim does not matter.
func (c *Controller) onClaim() handler.TypedFuncs[*corev1.PersistentVolumeClaim, reconcile.Request] {
	type volumeClaim = *corev1.PersistentVolumeClaim
	return handler.TypedFuncs[volumeClaim, reconcile.Request]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[volumeClaim], q wake.Queue) {
			if !apiequality.Semantic.DeepEqual(e.ObjectOld.OwnerReferences, e.ObjectNew.OwnerReferences) {
				wake.Add(q, c.owners.Matching(e.ObjectNew))
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[volumeClaim], q wake.Queue) {
			wake.Add(q, c.owners.Matching(e.Object))
		},
	}
}

func (c *Controller) remember(set *appsv1.StatefulSet) {
	c.owners.Selectors.Put(set, set.Spec.Selector)
}

// forget drops what is remembered about a deleted StatefulSet.
func (c *Controller) forget(set *appsv1.StatefulSet) {
	c.owners.Selectors.Remove(set)
	c.gate.Forget(set.UID)
	c.texts.Forget(set.UID)
}
