// Package statefulset keeps every StatefulSet at its Pods, each of which has an ordinal, a name and claims of its own.
//
//	decide.go            what one pass does, from what was observed (pure), by concern:
//	  decide_ordinals    which Pod stands for which ordinal
//	  decide_scale       Pods that are missing, have ended or are surplus, in order or all at once
//	  decide_update      Pods of an outdated revision
//	  decide_recover     the annotation that asks for the replacement of Pods that never were ready
//	  decide_revision    which revision an ordinal is made from
//	  decide_claims      claims to make, and who owns them
//	template.go          what Pods and claims look like (pure)
//	status.go            the status that goes with it (pure)
//	events.go            the events that users see (pure)
//	reconcile.go         observe, apply
//	apply_pods.go        making and deleting Pods
//	apply_claims.go      making claims and changing their owners
//	controller.go        what it reads and writes, and what wakes a StatefulSet up
package statefulset

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/rights"
	"keelson.dev/services/workload-controllers/internal/controllerrevision"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/leanclient"
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
			// An owner reference that blocks its owner's deletion may be set by who may update the owner's finalizers.
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
	c, err := build(s, feed)
	if err != nil {
		return nil, err
	}
	built, err := wake.NewReconciler(s, concurrent, c.steps())
	if err != nil {
		return nil, err
	}
	s.Explain(explain.Explainer(c.steps(), account, nil))
	if err := built.Watch(source.Kind(s.Cache, &appsv1.StatefulSet{}, wake.Self(c.remember, c.forget))); err != nil {
		return nil, fmt.Errorf("watching StatefulSets: %w", err)
	}
	if err := built.Watch(source.Kind(s.Cache, &appsv1.ControllerRevision{},
		wake.Owned[*appsv1.ControllerRevision](c.owners))); err != nil {
		return nil, fmt.Errorf("watching ControllerRevisions: %w", err)
	}
	if err := built.Watch(source.Kind(s.Cache, &corev1.PersistentVolumeClaim{}, c.onClaim())); err != nil {
		return nil, fmt.Errorf("watching PersistentVolumeClaims: %w", err)
	}
	if err := built.Watch(&podfeed.Source{Feed: feed, Cache: s.Cache, Requests: c.owners.OfPod}); err != nil {
		return nil, fmt.Errorf("watching Pods: %w", err)
	}
	return built, nil
}

func build(s *controller.Setup, feed *podfeed.Feed) (*Controller, error) {
	lean, err := leanclient.New(s.Config)
	if err != nil {
		return nil, err
	}
	sets, err := gate.StoreOf(s.Cache, &appsv1.StatefulSet{})
	if err != nil {
		return nil, err
	}
	history, err := gate.StoreOf(s.Cache, &appsv1.ControllerRevision{})
	if err != nil {
		return nil, err
	}
	revisions, err := ownerindex.Of[*appsv1.ControllerRevision](history)
	if err != nil {
		return nil, err
	}
	storage, err := gate.StoreOf(s.Cache, &corev1.PersistentVolumeClaim{})
	if err != nil {
		return nil, err
	}
	claims, err := ownerindex.Of[*corev1.PersistentVolumeClaim](storage)
	if err != nil {
		return nil, err
	}
	if err := indexClaims(storage); err != nil {
		return nil, err
	}
	own, pending := lean.WithStatuses(client.WithFieldOwner(s.Client, Name), Name), gate.New()
	return &Controller{
		client: own, live: s.Live, pods: feed.Index, revisions: revisions, claims: claims, storage: storage,
		owners: wake.NewOwners(kind), gate: pending, recorder: s.Recorder, log: s.Log, now: time.Now,
		sets:        &write.Writer{Client: own, Kind: Name, Gate: pending, Store: sets},
		claimWriter: &write.Writer{Client: own, Kind: "persistentvolumeclaim", Gate: pending, Store: storage},
		history: &controllerrevision.Writer{Live: s.Live,
			Write: &write.Writer{Client: own, Kind: "controllerrevision", Gate: pending, Store: history}},
		ops: &podops.Operator{Client: lean, FieldManager: Name, Gate: pending, Feed: feed, Log: s.Log},
	}, nil
}

// onClaim wakes up the StatefulSets whose claim it may be: one that is gone is made anew, and one that changed its
// owners may have to change them back. What a claim is bound to is nothing to them.
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

// forget drops what is remembered about a StatefulSet that is gone.
func (c *Controller) forget(set *appsv1.StatefulSet) {
	c.owners.Selectors.Remove(set)
	c.gate.Forget(set.UID)
	c.texts.Forget(set.UID)
}
