// Package replicas keeps every object of a kind at its number of Pods of one template: ReplicaSets, and what can be
// read as one.
//
//	decide.go     what one pass does, from what was observed (pure)
//	status.go     the resulting status (pure)
//	template.go   what the Pods look like (pure)
//	reconcile.go  observe, apply
//	controller.go what it reads and writes, and what wakes an object up
package replicas

import (
	"context"
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

// Registration describes the controller of a kind. concurrent is how many objects it works on at once.
func Registration[O client.Object](kind *Kind[O], feed *podfeed.Feed, concurrent int) controller.Registration {
	group := []string{kind.GVK.Group}
	return controller.Registration{
		Name:        kind.Controller,
		EventSource: kind.EventSource,
		Rules: []rbacv1.PolicyRule{
			wake.QuotaRule,
			{APIGroups: group, Resources: []string{kind.Resource}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: group, Resources: []string{kind.Resource + "/status"}, Verbs: []string{"update"}},
			// Setting an owner reference that blocks the owner's deletion needs the right to update its finalizers.
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
	own, lean := write.LeanBy(s)
	c := &Controller[O]{
		kind: kind, client: own.Client, live: s.Live, sets: ownerindex.From(s, kind.New()), pods: feed.Index,
		gate: own.Gate, owners: wake.NewOwners(kind.GVK), writer: own.Gated(kind.Controller, kind.New()),
		ops:      &podops.Operator{Client: lean, FieldManager: s.Name, Gate: own.Gate, Feed: feed, Log: s.Log},
		recorder: s.Recorder, now: time.Now, written: map[types.UID]time.Time{},
	}
	say := func(in observed[O], plan Plan) explain.Account { return account(in.Input, plan) }
	return wake.Build(s, concurrent, c.steps()).
		Explain(explain.Explainer(c.steps(), say, nil)).
		Watch(source.Kind(s.Cache, kind.New(), wake.Self(c.remember, c.forget)),
			&podfeed.Source{Feed: feed, Cache: s.Cache, Requests: c.owners.OfPod}).
		Runnable()
}

func (c *Controller[O]) remember(object O) {
	c.owners.Selectors.Put(object, c.kind.Set(object).Spec.Selector)
}
