// Package disruption counts how many Pods each PodDisruptionBudget allows to be evicted. The apiserver limits evictions
// by the status; controllers that delete Pods do not consult it (SAF-039).
//
//	decide.go           what a budget's status must be, from what was observed (pure)
//	events.go           the events that users see (pure)
//	decide_intent.go    how many Pods their controllers intend (pure)
//	decide_stale.go     when a Pod's DisruptionTarget is outdated (pure)
//	reconcile.go        observe, apply
//	reconcile_stale.go  reset outdated DisruptionTargets
//	controller.go       what it reads and writes, and what wakes a budget up
package disruption

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/rights"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/scales"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "disruption"

// Registration describes the controller. concurrent is how many budgets it works on at once.
func Registration(feed *podfeed.Feed, concurrent int) controller.Registration {
	return controller.Registration{
		Name:        Name,
		Explains:    []string{"PodDisruptionBudget", "Pod"},
		EventSource: eventSource,
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"},
				Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets/status"},
				Verbs: []string{"update"}},
			{APIGroups: []string{""}, Resources: []string{"pods", "replicationcontrollers"},
				Verbs: []string{"list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments", "replicasets", "statefulsets"},
				Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"*"}, Resources: []string{"*/scale"}, Verbs: []string{"get"}},
			rights.Events,
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, feed, concurrent) },
	}
}

func setup(s *controller.Setup, feed *podfeed.Feed, concurrent int) (controller.Runnable, error) {
	found, err := scales.Connect(s.Config, s.Client.RESTMapper())
	if err != nil {
		return nil, err
	}
	own := write.By(s)
	c := &Controller{
		client: own.Client, writer: own.Ungated("poddisruptionbudget"), pods: feed.Index,
		selected: podset.NewSelections(feed.Index), scales: found, recorder: s.Recorder, now: time.Now,
	}
	return controller.Build(s, concurrent, reconcile.Reconciler(budgetsAndPods{c.steps(), c.takeBack})).
		Explain(explain.Explainer(c.steps(), account, nil)).
		ExplainKind("Pod", c.explainPod).
		Watch(source.Kind(s.Cache, &policyv1.PodDisruptionBudget{}, wake.Self(c.remember, c.forget)),
			&podfeed.Source{Feed: feed, Cache: s.Cache, Requests: c.onPod},
			source.Kind(s.Cache, &appsv1.Deployment{}, onScale(c, ofDeployment)),
			source.Kind(s.Cache, &appsv1.ReplicaSet{}, onScale(c, ofReplicaSet)),
			source.Kind(s.Cache, &appsv1.StatefulSet{}, onScale(c, ofStatefulSet)),
			source.Kind(s.Cache, &corev1.ReplicationController{}, onScale(c, ofReplicationController))).
		// The selections are not needed after the term.
		Last(c.selected.Close).
		Runnable()
}

func (c *Controller) remember(b *policyv1.PodDisruptionBudget) { c.selected.Put(b, b.Spec.Selector) }

func (c *Controller) forget(b *policyv1.PodDisruptionBudget) { c.selected.Remove(b) }

// onPod wakes up the budgets that a Pod's change concerns, and the Pod itself if it has a DisruptionTarget.
func (c *Controller) onPod(pod *corev1.Pod, change podset.Change) []reconcile.Request {
	requests := c.budgetsOf(pod, change)
	if _, stale := staleAt(pod); stale {
		requests = append(requests, podRequest(pod))
	}
	return requests
}

// budgetsOf requests passes over the budgets that select the Pod, or did before it changed.
func (c *Controller) budgetsOf(pod *corev1.Pod, change podset.Change) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range c.selected.Concerned(pod, change) {
		requests = append(requests, wake.Request(pod.Namespace, name))
	}
	return requests
}

// onScale wakes up the budgets of a workload whose number of replicas changed.
func onScale[O client.Object](c *Controller, of func(O) (*int32, *corev1.PodTemplateSpec),
) handler.TypedFuncs[O, reconcile.Request] {
	return handler.TypedFuncs[O, reconcile.Request]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[O], q wake.Queue) {
			before, _ := of(e.ObjectOld)
			after, template := of(e.ObjectNew)
			if template == nil || before != nil && after != nil && *before == *after {
				return
			}
			made := &corev1.Pod{ObjectMeta: template.ObjectMeta}
			made.Namespace = e.ObjectNew.GetNamespace()
			for _, request := range c.budgetsOf(made, podset.Change{}) {
				q.Add(request)
			}
		},
	}
}

// The replicas and the Pod template of each kind of workload.

func ofDeployment(d *appsv1.Deployment) (*int32, *corev1.PodTemplateSpec) {
	return d.Spec.Replicas, &d.Spec.Template
}

func ofReplicaSet(r *appsv1.ReplicaSet) (*int32, *corev1.PodTemplateSpec) {
	return r.Spec.Replicas, &r.Spec.Template
}

func ofStatefulSet(s *appsv1.StatefulSet) (*int32, *corev1.PodTemplateSpec) {
	return s.Spec.Replicas, &s.Spec.Template
}

func ofReplicationController(r *corev1.ReplicationController) (*int32, *corev1.PodTemplateSpec) {
	return r.Spec.Replicas, r.Spec.Template
}
