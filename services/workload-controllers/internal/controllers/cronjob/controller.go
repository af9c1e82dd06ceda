// Package cronjob makes Jobs by a schedule.
//
//	decide.go           what one pass does, from what was observed (pure), by concern:
//	  decide_times      which scheduled time is due, and when the next one is
//	  decide_history    which finished Jobs are more than may stay
//	  decide_status     which Jobs run, and when one succeeded last
//	settings.go         what an operator may choose
//	events.go           the events that users see (pure)
//	reconcile.go        observe, apply
//	controller.go       what it reads and writes, and what wakes a CronJob up
package cronjob

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/rights"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "cronjob"

// Registration describes the controller. concurrent is how many CronJobs it works on at once.
func Registration(settings Settings, concurrent int) controller.Registration {
	return controller.Registration{
		Name:        Name,
		Explains:    []string{"CronJob"},
		EventSource: eventSource,
		Rules: []rbacv1.PolicyRule{
			wake.QuotaRule,
			{APIGroups: []string{"batch"}, Resources: []string{"cronjobs"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"batch"}, Resources: []string{"cronjobs/status"}, Verbs: []string{"update"}},
			// Setting an owner reference that blocks the owner's deletion needs the right to update its finalizers.
			{APIGroups: []string{"batch"}, Resources: []string{"cronjobs/finalizers"}, Verbs: []string{"update"}},
			{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "watch",
				"create", "delete"}},
			rights.Events,
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, settings, concurrent) },
	}
}

func setup(s *controller.Setup, settings Settings, concurrent int) (controller.Runnable, error) {
	own := write.By(s)
	c := &Controller{
		client: own.Client, live: s.Live, owned: ownerindex.From(s, &batchv1.Job{}), gate: own.Gate,
		recorder: s.Recorder, now: time.Now, settings: settings,
		cronJobs: own.Gated("cronjob", &batchv1.CronJob{}), jobs: own.Gated("cronjob.job", &batchv1.Job{}),
	}
	return wake.Build(s, concurrent, c.steps()).
		Explain(explain.Explainer(c.steps(), account, nil)).
		Watch(source.Kind(s.Cache, &batchv1.CronJob{}, c.onCronJob()), source.Kind(s.Cache, &batchv1.Job{}, onJob())).
		Runnable()
}

// onCronJob wakes up a CronJob that is new or asks for something else. Its status is this controller's own word.
func (c *Controller) onCronJob() handler.TypedFuncs[*batchv1.CronJob, reconcile.Request] {
	return handler.TypedFuncs[*batchv1.CronJob, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*batchv1.CronJob], q wake.Queue) {
			q.Add(wake.Request(e.Object.Namespace, e.Object.Name))
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*batchv1.CronJob], q wake.Queue) {
			if e.ObjectOld.UID != e.ObjectNew.UID || e.ObjectOld.Generation != e.ObjectNew.Generation {
				q.Add(wake.Request(e.ObjectNew.Namespace, e.ObjectNew.Name))
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*batchv1.CronJob], _ wake.Queue) {
			c.gate.Forget(e.Object.UID)
		},
	}
}

// onJob wakes up the CronJob whose Job has ended, is on its way out or has come to it. That a Job of its own is there
// it knows, and how a Job fares does not concern it.
func onJob() handler.TypedFuncs[*batchv1.Job, reconcile.Request] {
	owners := wake.NewOwners(kind) // without selectors: a CronJob adopts none
	return handler.TypedFuncs[*batchv1.Job, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*batchv1.Job], q wake.Queue) {
			if outcome(e.Object) != "" {
				wake.Add(q, owners.Of(e.Object))
			}
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*batchv1.Job], q wake.Queue) {
			before, after := metav1.GetControllerOfNoCopy(e.ObjectOld), metav1.GetControllerOfNoCopy(e.ObjectNew)
			changed := outcome(e.ObjectOld) != outcome(e.ObjectNew) ||
				(e.ObjectOld.DeletionTimestamp == nil) != (e.ObjectNew.DeletionTimestamp == nil)
			moved := (before == nil) != (after == nil) || before != nil && before.UID != after.UID
			if moved {
				wake.Add(q, owners.Of(e.ObjectOld))
			}
			if moved || changed {
				wake.Add(q, owners.Of(e.ObjectNew))
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*batchv1.Job], q wake.Queue) {
			wake.Add(q, owners.Of(e.Object))
		},
	}
}
