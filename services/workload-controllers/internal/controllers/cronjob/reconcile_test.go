package cronjob

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/events"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/ownerindex"
	"keelson.dev/services/workload-controllers/internal/write"
)

// world is an API, the controller over it, and a cache of Jobs that shows what the test puts there.
type world struct {
	*testing.T
	api        client.Client
	cached     toolscache.Indexer
	controller *Controller
	clock      time.Time
	told       []events.Event
}

func (w *world) Record(_ runtime.Object, e events.Event) { w.told = append(w.told, e) }

func newWorld(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *world {
	t.Helper()
	w := &world{T: t, cached: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{}),
		clock: at("08:00:00").Time}
	count := 0
	create := funcs.Create
	// The server gives UIDs.
	funcs.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		count++
		o.SetUID(types.UID(strings.Repeat("u", count)))
		if create != nil {
			return create(ctx, c, o, opts...)
		}
		return c.Create(ctx, o, opts...)
	}
	w.api = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithStatusSubresource(&batchv1.CronJob{}).WithObjects(
		objects...).WithInterceptorFuncs(funcs).Build()
	owned, err := ownerindex.Of[*batchv1.Job](w.cached)
	if err != nil {
		t.Fatal(err)
	}
	pending := gate.New()
	// The fake API is its own cache of CronJobs: every write is seen at once.
	w.controller = &Controller{
		client: w.api, live: w.api, owned: owned, gate: pending, recorder: w, now: func() time.Time { return w.clock },
		cronJobs: &write.Writer{Client: w.api, Kind: "cronjob", Gate: pending},
		jobs:     &write.Writer{Client: w.api, Kind: "cronjob.job", Gate: pending, Store: w.cached},
	}
	return w
}

// pass makes one pass and says when the next one comes.
func (w *world) pass() (reconcile.Result, error) {
	return w.controller.steps().Reconcile(w.Context(), reconcile.Request{NamespacedName: types.NamespacedName{
		Namespace: "default", Name: "hello"}})
}

// see makes the cache show all Jobs.
func (w *world) see() {
	w.Helper()
	list := &batchv1.JobList{}
	if err := w.api.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}
	var items []any
	for i := range list.Items {
		items = append(items, &list.Items[i])
	}
	if err := w.cached.Replace(items, list.ResourceVersion); err != nil {
		w.Fatal(err)
	}
}

func (w *world) status() batchv1.CronJobStatus {
	w.Helper()
	c := &batchv1.CronJob{}
	if err := w.api.Get(w.Context(), client.ObjectKey{Namespace: "default", Name: "hello"}, c); err != nil {
		w.Fatal(err)
	}
	return c.Status
}

func (w *world) jobs() []string {
	w.Helper()
	list := &batchv1.JobList{}
	if err := w.api.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}
	found := []string{}
	for i := range list.Items {
		found = append(found, list.Items[i].Name)
	}
	return found
}

func (w *world) reasons() []string {
	plan := Plan{Events: w.told}
	w.told = nil
	return plan.reasons()
}

// JOB-186, JOB-187, JOB-190: a Job is created and reported, and created once, regardless of what the cache shows.
func TestStart(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, hello())
	result, err := w.pass()
	if err != nil || result.RequeueAfter != time.Minute || len(w.jobs()) != 1 {
		t.Fatalf("again in %v, %v; Jobs %v", result.RequeueAfter, err, w.jobs())
	}
	if len(w.told) != 1 || w.told[0].Message != "Created job "+w.jobs()[0] ||
		!slices.Equal(w.reasons(), []string{"SuccessfulCreate"}) {
		t.Errorf("told %v", w.told)
	}
	status := w.status()
	if len(status.Active) != 1 || status.Active[0].Name != w.jobs()[0] || status.Active[0].UID != "u" ||
		status.Active[0].Kind != "Job" || clockOf(status.LastScheduleTime.Time) != "08:00:00" {
		t.Errorf("status %+v", status)
	}
	if result, err := w.pass(); err != nil || result.RequeueAfter != time.Second {
		t.Errorf("before the cache shows the Job: again in %v, %v", result.RequeueAfter, err)
	}
	w.see()
	if result, err := w.pass(); err != nil || result.RequeueAfter != time.Minute || len(w.jobs()) != 1 ||
		len(w.reasons()) != 0 {
		t.Errorf("again: in %v, %v; Jobs %v", result.RequeueAfter, err, w.jobs())
	}
}

// JOB-225: a pass that ends after the Job was made, and before that was written down, is made good for by the next,
// also by one whose cache does not show the Job.
func TestStartIsRecovered(t *testing.T) {
	broken := true
	w := newWorld(t, interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string,
		o client.Object, opts ...client.SubResourceUpdateOption) error {
		if broken {
			return errors.New("broken off")
		}
		return c.SubResource(sub).Update(ctx, o, opts...)
	}}, hello())
	if _, err := w.pass(); err == nil {
		t.Fatal("the status was written")
	}
	broken = false
	w.controller.gate.Forget("hello-uid") // as after a restart
	w.reasons()
	if result, err := w.pass(); err != nil || result.RequeueAfter != time.Second || len(w.reasons()) != 0 {
		t.Errorf("with an old cache: again in %v, %v", result.RequeueAfter, err)
	}
	w.see()
	if _, err := w.pass(); err != nil || len(w.jobs()) != 1 || len(w.status().Active) != 1 ||
		clockOf(w.status().LastScheduleTime.Time) != "08:00:00" {
		t.Errorf("%v; Jobs %v, status %+v", err, w.jobs(), w.status())
	}
}

// What keeps a Job from being made.
func TestStartIsRefused(t *testing.T) {
	foreign := run("08:00:00", "")
	foreign.OwnerReferences = nil
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "hello", errors.New("going"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, row := range []struct {
		name    string
		refusal error
		objects []client.Object
		failed  bool
		reasons []string
	}{
		{"JOB-190 refused", errors.New("no room"), nil, true, []string{"FailedCreate"}},
		{"the namespace goes", terminating, nil, false, nil},
		{"the name is taken", nil, []client.Object{foreign}, false, []string{"FailedCreate"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var funcs interceptor.Funcs
			if row.refusal != nil {
				funcs.Create = func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					return row.refusal
				}
			}
			w := newWorld(t, funcs, append(row.objects, hello())...)
			result, err := w.pass()
			if (err != nil) != row.failed || !row.failed && result.RequeueAfter != time.Minute {
				t.Errorf("again in %v, %v", result.RequeueAfter, err)
			}
			if got := w.reasons(); !slices.Equal(got, row.reasons) || w.status().LastScheduleTime != nil {
				t.Errorf("told %v, status %+v", got, w.status())
			}
		})
	}
}

// JOB-210, JOB-216: Jobs go before the new one comes.
func TestReplaceAndHistory(t *testing.T) {
	running, ended := run("08:00:00", ""), run("07:00:00", "Failed")
	w := newWorld(t, interceptor.Funcs{}, hello(policy("Replace"), last("08:00:00"), active(running),
		schedule("* * * * *"),
		func(c *batchv1.CronJob) { *c.Spec.FailedJobsHistoryLimit = 0 }), running, ended)
	w.clock = at("08:01:00").Time
	w.see()
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	if got := w.reasons(); !slices.Equal(got, []string{"SuccessfulDelete", "SuccessfulDelete", "SuccessfulCreate"}) {
		t.Errorf("told %v", got)
	}
	want := run("08:01:00", "").Name
	if got := w.jobs(); !slices.Equal(got, []string{want}) {
		t.Errorf("Jobs %v, want %s", got, want)
	}
	if status := w.status(); len(status.Active) != 1 || status.Active[0].Name != want {
		t.Errorf("status %+v", status)
	}
}

// JOB-218, JOB-217: the zone that is asked for, or that of the process.
func TestZones(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{})
	for zone, known := range map[string]bool{"Europe/Kyiv": true, "Europe/Gone": false} {
		in := w.controller.observe(hello(func(c *batchv1.CronJob) { c.Spec.TimeZone = &zone }))
		if (in.LocationError == nil) != known || known && in.Location.String() != zone {
			t.Errorf("%s: %v, %v", zone, in.Location, in.LocationError)
		}
	}
	if in := w.controller.observe(hello()); in.Location != time.Local {
		t.Errorf("JOB-217: without a zone it is %v", in.Location)
	}
}

// JOB-219: the program has the zones' data in it. The name and what follows it are put together only here, so that
// this test has no such text itself.
func TestZonesAreEmbedded(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if entry := strings.Join([]string{"Europe/", "Kyiv", "TZif"}, ""); !bytes.Contains(program, []byte(entry)) {
		t.Error("the time zones are not part of the program")
	}
}

// What wakes a CronJob up: not the news that it made itself.
func TestWakes(t *testing.T) {
	running, ended := run("08:00:00", ""), run("08:00:00", "Complete")
	progress, going, alone := running.DeepCopy(), running.DeepCopy(), running.DeepCopy()
	progress.Status.Active = 1
	going.DeletionTimestamp = &metav1.Time{}
	alone.OwnerReferences = nil
	quiet, changed := hello(last("08:00:00")), hello()
	changed.Generation++
	jobs, cronJobs := onJob(), (&Controller{gate: gate.New()}).onCronJob()
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	job := func(old, now *batchv1.Job) func(queue) {
		return func(q queue) {
			jobs.UpdateFunc(t.Context(), event.TypedUpdateEvent[*batchv1.Job]{ObjectOld: old, ObjectNew: now}, q)
		}
	}
	cronJob := func(old, now *batchv1.CronJob) func(queue) {
		return func(q queue) {
			cronJobs.UpdateFunc(t.Context(), event.TypedUpdateEvent[*batchv1.CronJob]{ObjectOld: old, ObjectNew: now},
				q)
		}
	}
	for _, row := range []struct {
		name  string
		event func(queue)
		want  int
	}{
		{"it is made", func(q queue) {
			cronJobs.CreateFunc(t.Context(), event.TypedCreateEvent[*batchv1.CronJob]{Object: hello()}, q)
		}, 1},
		{"its status is written", cronJob(hello(), quiet), 0},
		{"its spec is written", cronJob(hello(), changed), 1},
		{"a Job is made", func(q queue) {
			jobs.CreateFunc(t.Context(), event.TypedCreateEvent[*batchv1.Job]{Object: running}, q)
		}, 0},
		{"a Job is there that has ended", func(q queue) {
			jobs.CreateFunc(t.Context(), event.TypedCreateEvent[*batchv1.Job]{Object: ended}, q)
		}, 1},
		{"a Job goes on", job(running, progress), 0},
		{"a Job ends", job(running, ended), 1},
		{"a Job is on its way out", job(running, going), 1},
		{"a Job leaves it", job(running, alone), 1},
		{"a Job comes to it", job(alone, running), 1},
		{"a Job of nobody ends", job(alone, alone), 0},
		{"a Job is gone", func(q queue) {
			jobs.DeleteFunc(t.Context(), event.TypedDeleteEvent[*batchv1.Job]{Object: running}, q)
		}, 1},
	} {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		row.event(q)
		if q.Len() != row.want {
			t.Errorf("%s: %d requests, want %d", row.name, q.Len(), row.want)
		}
		q.ShutDown()
	}
}
