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
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/rights"
	"keelson.dev/services/workload-controllers/internal/gate"
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
			// An owner reference that blocks its owner's deletion may be set by who may update the owner's finalizers.
			{APIGroups: []string{"batch"}, Resources: []string{"cronjobs/finalizers"}, Verbs: []string{"update"}},
			{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "watch",
				"create", "delete"}},
			rights.Events,
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, settings, concurrent) },
	}
}

func setup(s *controller.Setup, settings Settings, concurrent int) (controller.Runnable, error) {
	cronJobs, err := gate.StoreOf(s.Cache, &batchv1.CronJob{})
	if err != nil {
		return nil, err
	}
	jobs, err := gate.StoreOf(s.Cache, &batchv1.Job{})
	if err != nil {
		return nil, err
	}
	owned, err := ownerindex.Of[*batchv1.Job](jobs)
	if err != nil {
		return nil, err
	}
	own, pending := client.WithFieldOwner(s.Client, Name), gate.New()
	c := &Controller{
		client: own, live: s.Live, owned: owned, gate: pending, recorder: s.Recorder, now: time.Now, settings: settings,
		cronJobs: &write.Writer{Client: own, Kind: "cronjob", Gate: pending, Store: cronJobs},
		jobs:     &write.Writer{Client: own, Kind: "cronjob.job", Gate: pending, Store: jobs},
	}
	built, err := wake.NewReconciler(s, concurrent, c.steps())
	if err != nil {
		return nil, err
	}
	s.Explain(explain.Explainer(c.steps(), account, nil))
	if err := built.Watch(source.Kind(s.Cache, &batchv1.CronJob{}, c.onCronJob())); err != nil {
		return nil, fmt.Errorf("watching CronJobs: %w", err)
	}
	if err := built.Watch(source.Kind(s.Cache, &batchv1.Job{}, onJob())); err != nil {
		return nil, fmt.Errorf("watching Jobs: %w", err)
	}
	return built, nil
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
	return handler.TypedFuncs[*batchv1.Job, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*batchv1.Job], q wake.Queue) {
			if outcome(e.Object) != "" {
				wakeOwner(e.Object, q)
			}
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*batchv1.Job], q wake.Queue) {
			before, after := metav1.GetControllerOfNoCopy(e.ObjectOld), metav1.GetControllerOfNoCopy(e.ObjectNew)
			changed := outcome(e.ObjectOld) != outcome(e.ObjectNew) ||
				(e.ObjectOld.DeletionTimestamp == nil) != (e.ObjectNew.DeletionTimestamp == nil)
			moved := (before == nil) != (after == nil) || before != nil && before.UID != after.UID
			if moved {
				wakeOwner(e.ObjectOld, q)
			}
			if moved || changed {
				wakeOwner(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*batchv1.Job], q wake.Queue) {
			wakeOwner(e.Object, q)
		},
	}
}

func wakeOwner(job *batchv1.Job, q wake.Queue) {
	if owner := metav1.GetControllerOfNoCopy(job); wake.Names(owner, kind.GroupKind()) {
		q.Add(wake.Request(job.Namespace, owner.Name))
	}
}
