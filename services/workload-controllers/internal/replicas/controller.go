// Package replicas keeps every object of a kind at its number of Pods of one template: ReplicaSets, and what can be
// read as one.
//
//	decide.go     what one pass does, from what was observed (pure)
//	status.go     the status that goes with it (pure)
//	template.go   what the Pods look like (pure)
//	reconcile.go  observe, apply
//	controller.go what it reads and writes, and what wakes an object up
package replicas

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/rights"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/leanclient"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/podops"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Kind is a kind of objects that keep Pods as ReplicaSets do.
type Kind[O client.Object] struct {
	// Controller is the controller's name, EventSource what users see as the origin of its events.
	Controller, EventSource string
	GVK                     schema.GroupVersionKind
	// Resource is the kind's plural.
	Resource string
	New      func() O
	// Set returns the object as a ReplicaSet. It shares the object's memory and is not to be changed.
	Set func(O) *appsv1.ReplicaSet
	// LacksTerminating says that the kind's status has no count of Pods that are being deleted. Set then returns a
	// ReplicaSet of its own, whose status may be completed.
	LacksTerminating bool
	// WriteStatus writes the status of a ReplicaSet into the object where it differs, and says whether it did.
	WriteStatus func(context.Context, *write.Writer, O, appsv1.ReplicaSetStatus) (written bool, err error)
}

// Register describes the controller of a kind. concurrent is how many objects it works on at once.
func Register[O client.Object](kind *Kind[O], feed *podfeed.Feed, concurrent int) controller.Registration {
	group := []string{kind.GVK.Group}
	return controller.Registration{
		Name:        kind.Controller,
		EventSource: kind.EventSource,
		Rules: []rbacv1.PolicyRule{
			wake.QuotaRule,
			{APIGroups: group, Resources: []string{kind.Resource}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: group, Resources: []string{kind.Resource + "/status"}, Verbs: []string{"update"}},
			// An owner reference that blocks its owner's deletion may be set by who may update the owner's finalizers.
			{APIGroups: group, Resources: []string{kind.Resource + "/finalizers"}, Verbs: []string{"update"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "delete", "list", "patch",
				"watch"}},
			rights.Events,
		},
		Explains: []string{kind.GVK.Kind},
		Setup:    func(s *controller.Setup) (controller.Runnable, error) { return setup(s, kind, feed, concurrent) },
	}
}

func setup[O client.Object](
	s *controller.Setup, kind *Kind[O], feed *podfeed.Feed, concurrent int,
) (controller.Runnable, error) {
	lean, err := leanclient.New(s.Config)
	if err != nil {
		return nil, err
	}
	store, err := gate.StoreOf(s.Cache, kind.New())
	if err != nil {
		return nil, err
	}
	sets, err := ownerindex.Of[O](store)
	if err != nil {
		return nil, err
	}
	own, pending := lean.WithStatuses(client.WithFieldOwner(s.Client, kind.Controller), kind.Controller), gate.New()
	c := &Controller[O]{
		kind: kind, client: own, live: s.Live, sets: sets, pods: feed.Index, gate: pending,
		owners: wake.NewOwners(kind.GVK),
		writer: &write.Writer{Client: own, Kind: kind.Controller, Gate: pending, Store: store},
		ops: &podops.Operator{Client: lean, FieldManager: kind.Controller, Gate: pending, Feed: feed,
			Log: s.Log},
		recorder: s.Recorder, now: time.Now, written: map[types.UID]time.Time{},
	}
	built, err := wake.NewReconciler(s, concurrent, c.steps())
	if err != nil {
		return nil, err
	}
	s.Explain(explain.Explainer(c.steps(), func(in observed[O], plan Plan) explain.Account {
		return account(in.Input, plan)
	}, nil))
	if err := built.Watch(source.Kind(s.Cache, kind.New(), wake.Self(c.remember, c.forget))); err != nil {
		return nil, fmt.Errorf("watching %s: %w", kind.Resource, err)
	}
	if err := built.Watch(&podfeed.Source{Feed: feed, Cache: s.Cache, Requests: c.owners.OfPod}); err != nil {
		return nil, fmt.Errorf("watching Pods: %w", err)
	}
	return built, nil
}

func (c *Controller[O]) remember(object O) {
	c.owners.Selectors.Put(object, c.kind.Set(object).Spec.Selector)
}
