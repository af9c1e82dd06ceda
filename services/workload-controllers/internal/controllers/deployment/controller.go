// Package deployment rolls Deployments out: it makes a ReplicaSet for each Pod template and moves the replicas from the
// old ones to the current one within the strategy's bounds. It is the model for the other controllers.
//
//	decide.go            what one pass does, from what was observed (pure), by concern:
//	  decide_rolling     sizes during a rolling update
//	  decide_recreate    sizes with strategy Recreate
//	  decide_scale       sizes when spec.replicas changes, paused Deployments included
//	  decide_revision    ReplicaSets, revisions, annotations
//	  decide_rollback    the annotation that asks for a rollback
//	  decide_cleanup     the history limit
//	  decide_progress    the condition Progressing and its deadline
//	status.go            the resulting status (pure)
//	events.go            the events that users see (pure)
//	reconcile.go         observe, apply
//	controller.go        what it reads and writes, and what wakes a Deployment up
package deployment

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/rights"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "deployment"

// Registration describes the controller. concurrent is how many Deployments it works on at once.
func Registration(feed *podfeed.Feed, concurrent int) controller.Registration {
	return controller.Registration{
		Name:        Name,
		Explains:    []string{"Deployment"},
		EventSource: eventSource,
		Rules: []rbacv1.PolicyRule{
			wake.QuotaRule,
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch",
				"update", "patch"}},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments/status"}, Verbs: []string{"update"}},
			{APIGroups: []string{"apps"}, Resources: []string{"replicasets"}, Verbs: []string{"get", "list", "watch",
				"create", "update", "patch", "delete"}},
			// Setting an owner reference that blocks the owner's deletion needs the right to update its finalizers.
			{APIGroups: []string{"apps"}, Resources: []string{"deployments/finalizers"}, Verbs: []string{"update"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
			rights.Events,
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, feed, concurrent) },
	}
}

func setup(s *controller.Setup, feed *podfeed.Feed, concurrent int) (controller.Runnable, error) {
	own, _ := write.LeanBy(s)
	c := &Controller{
		client: own.Client, live: s.Live, sets: ownerindex.From(s, &appsv1.ReplicaSet{}), pods: feed.Index,
		gate: own.Gate, owners: wake.NewOwners(kind), recorder: s.Recorder, log: s.Log, now: time.Now,
		deployments: own.Gated("deployment", &appsv1.Deployment{}),
		replicaSets: own.Gated("replicaset", &appsv1.ReplicaSet{}),
	}
	return wake.Build(s, concurrent, c.steps()).
		Explain(explain.Explainer(c.steps(), account, nil)).
		Watch(source.Kind(s.Cache, &appsv1.Deployment{}, wake.Self(c.remember, c.forget)),
			source.Kind(s.Cache, &appsv1.ReplicaSet{}, wake.Owned[*appsv1.ReplicaSet](c.owners)),
			&podfeed.Source{Feed: feed, Cache: s.Cache, Requests: c.onPod}).
		Runnable()
}

func (c *Controller) remember(d *appsv1.Deployment) { c.owners.Selectors.Put(d, d.Spec.Selector) }

// forget drops what is remembered about a Deployment that is gone.
func (c *Controller) forget(d *appsv1.Deployment) {
	c.owners.Selectors.Remove(d)
	c.gate.Forget(d.UID)
}

// onPod wakes up a Deployment that waits for its old Pods to end, with strategy Recreate. All others learn of their
// Pods from the ReplicaSets.
func (c *Controller) onPod(pod *corev1.Pod, change podset.Change) []reconcile.Request {
	if !change.Ended || change.Before == nil || change.Before.Kind != "ReplicaSet" {
		return nil
	}
	set := &appsv1.ReplicaSet{}
	if err := c.client.Get(context.Background(), types.NamespacedName{Namespace: pod.Namespace,
		Name: change.Before.Name}, set); err != nil {
		return nil
	}
	owner := metav1.GetControllerOfNoCopy(set)
	if !wake.Names(owner, kind.GroupKind()) {
		return nil
	}
	request := wake.Request(pod.Namespace, owner.Name)
	deployment := &appsv1.Deployment{}
	if err := c.client.Get(context.Background(), request.NamespacedName, deployment); err != nil ||
		deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		return nil
	}
	return []reconcile.Request{request}
}
