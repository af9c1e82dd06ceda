// Package job runs Jobs: it creates Pods until enough have succeeded, and counts each Pod exactly once.
//
//	decide.go           what one pass does, from what was observed (pure), by concern:
//	  decide_count      which Pods have ended, how the status records them, which lose their finalizer
//	  decide_verdict    whether the Job succeeds or fails, and when it has ended
//	  decide_scale      how many Pods are at work, and for which indexes
//	  decide_indexes    sets of completion indexes
//	  decide_policy     the Pod failure policy
//	  decide_success    the success policy
//	  decide_backoff    the time between a failure and the next Pod
//	  decide_confirm    whether the apiserver agrees with the cache
//	status.go           the resulting status (pure)
//	template.go         the Pods of a Job (pure)
//	events.go           the events that users see (pure)
//	reconcile.go        observe, apply
//	confirm.go          the check with the apiserver before a Pod is counted
//	orphans.go          Pods whose Job is gone
//	controller.go       what it reads and writes, and what wakes a Job up
package job

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
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
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/podops"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "job"

// Registration describes the controller. concurrent is how many Jobs it works on at once.
func Registration(feed *podfeed.Feed, concurrent int) controller.Registration {
	group := []string{batchv1.GroupName}
	return controller.Registration{
		Name:        Name,
		Explains:    []string{"Job"},
		EventSource: eventSource,
		Rules: []rbacv1.PolicyRule{
			wake.QuotaRule,
			{APIGroups: group, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: group, Resources: []string{"jobs/status"}, Verbs: []string{"update"}},
			// Setting an owner reference that blocks the owner's deletion needs the right to update its finalizers.
			{APIGroups: group, Resources: []string{"jobs/finalizers"}, Verbs: []string{"update"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "delete", "list", "patch",
				"watch"}},
			rights.Events,
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, feed, concurrent) },
	}
}

// openPods selects the Pods of Jobs that have not ended.
var openPods = podset.Fold{Name: "not ended, of a Job", Listed: true, Holds: func(pod *corev1.Pod) bool {
	reference := metav1.GetControllerOfNoCopy(pod)
	return wake.Names(reference, kind.GroupKind()) && !podview.IsTerminal(pod)
}}

func setup(s *controller.Setup, feed *podfeed.Feed, concurrent int) (controller.Runnable, error) {
	own, lean := write.LeanBy(s)
	c := &Controller{
		client: own.Client, live: s.Live, jobs: s.Store(&batchv1.Job{}), pods: feed.Index, gate: own.Gate,
		owners: wake.NewOwners(kind), open: feed.Index.Register(openPods),
		done: feed.Index.Register(podset.WithFinalizer(tracking)), writer: own.Gated(Name, &batchv1.Job{}),
		ops:      &podops.Operator{Client: lean, FieldManager: Name, Gate: own.Gate, Feed: feed, Log: s.Log},
		recorder: s.Recorder, now: time.Now, written: map[types.UID]time.Time{},
	}
	return wake.Build(s, concurrent, reconciler{c.steps(), c.letGo}).
		Explain(explain.Explainer(c.steps(), account, leaves)).
		Watch(source.Kind(s.Cache, &batchv1.Job{}, c.onJob()),
			&podfeed.Source{Feed: feed, Cache: s.Cache, Requests: c.onPod},
			&sweep{controller: c, feed: feed, cache: s.Cache, pods: s.Store(&corev1.Pod{})}).
		Runnable()
}

// onJob wakes up a changed Job, and the Pods of a deleted one.
func (c *Controller) onJob() handler.TypedFuncs[*batchv1.Job, reconcile.Request] {
	on := wake.Self(c.remember, c.forget)
	on.DeleteFunc = func(_ context.Context, e event.TypedDeleteEvent[*batchv1.Job], q wake.Queue) {
		wake.Add(q, c.bereaved(e.Object))
		c.forget(e.Object)
	}
	return on
}

// onPod wakes up the Jobs that own, owned or could adopt the Pod; if there is none, it requests a pass over the Pod.
func (c *Controller) onPod(pod *corev1.Pod, change podset.Change) []reconcile.Request {
	requests := c.owners.OfPod(pod, change)
	if c.isOrphan(pod) {
		requests = append(requests, wake.Request(pod.Namespace, podPrefix+pod.Name))
	}
	return requests
}

func (c *Controller) remember(job *batchv1.Job) { c.owners.Selectors.Put(job, job.Spec.Selector) }

// forget drops what is remembered about a deleted Job.
func (c *Controller) forget(job *batchv1.Job) {
	c.owners.Selectors.Remove(job)
	c.gate.Forget(job.UID)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.written, job.UID)
}
