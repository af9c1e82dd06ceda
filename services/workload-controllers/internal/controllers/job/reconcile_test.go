package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientsetfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/events/eventstest"
	"keelson.dev/kit/failpoint"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/podfeed/podfeedtest"
	"keelson.dev/services/workload-controllers/internal/podops"
	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/wake"
	"keelson.dev/services/workload-controllers/internal/write"
)

// server is the API in memory as the live reader and the cached client see it: Jobs and Pods are kept apart.
type server struct {
	client.WithWatch
	pods *clientsetfake.Clientset
	// lists counts how often the Pods were asked for.
	lists int
}

func (s *server) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	pod, ok := into.(*corev1.Pod)
	if !ok {
		return s.WithWatch.Get(ctx, key, into, o...)
	}
	found, err := s.pods.CoreV1().Pods(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err == nil {
		*pod = *found
	}
	return err
}

func (s *server) List(ctx context.Context, into client.ObjectList, _ ...client.ListOption) error {
	s.lists++
	found, err := s.pods.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	list := into.(*metav1.PartialObjectMetadataList)
	list.ResourceVersion = "1"
	for _, pod := range found.Items {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta})
	}
	return nil
}

// bench is a Controller over an API in memory. Pods come through an informer; the Jobs' cache catches up before each
// pass.
type bench struct {
	t          *testing.T
	server     *server
	jobs       toolscache.Indexer
	feed       *podfeed.Feed
	events     eventstest.Recorded
	controller *Controller
	serial     int
	refusal    error
}

func newBench(t *testing.T, job *batchv1.Job, pods ...runtime.Object) *bench {
	job.ResourceVersion = ""
	b := &bench{t: t, server: &server{pods: clientsetfake.NewClientset(pods...)},
		jobs: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{}), feed: podfeed.New()}
	b.server.WithWatch = fake.NewClientBuilder().WithObjects(job).WithStatusSubresource(job).Build()
	b.server.pods.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		b.serial++
		pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		pod.Name, pod.UID = fmt.Sprint(pod.GenerateName, b.serial), types.UID(fmt.Sprint("pod-", b.serial))
		pod.ResourceVersion, pod.CreationTimestamp = fmt.Sprint(1000+b.serial), metav1.NewTime(time.Now())
		return b.refusal != nil, nil, b.refusal
	})
	podfeedtest.Connect(t, b.feed, b.server.pods)
	b.restart()
	return b
}

// restart puts a new process in the place of the controller. It has the same caches and knows nothing.
func (b *bench) restart() {
	pending := gate.New()
	b.controller = &Controller{
		client: b.server, live: b.server, jobs: b.jobs, pods: b.feed.Index, gate: pending, owners: wake.NewOwners(kind),
		open: b.feed.Index.Register(openPods), done: b.feed.Index.Register(podset.WithFinalizer(tracking)),
		writer: &write.Writer{Client: b.server, Kind: Name, Gate: pending, Store: b.jobs},
		ops: &podops.Operator{Client: b.server.pods.CoreV1(), FieldManager: Name, Gate: pending, Feed: b.feed,
			Log: zap.NewNop()},
		recorder: &b.events, now: time.Now, written: map[types.UID]time.Time{},
	}
}

// pass makes one pass with caches that show everything.
func (b *bench) pass() (reconcile.Result, error) {
	b.t.Helper()
	synctest.Wait()
	var jobs []any
	if job := b.job(); job != nil {
		jobs = append(jobs, job)
	}
	if err := b.jobs.Replace(jobs, "1000000"); err != nil {
		b.t.Fatal(err)
	}
	result, err := b.controller.steps().Reconcile(b.t.Context(), wake.Request("default", "pi"))
	synctest.Wait()
	return result, err
}

// settle makes as many passes as it takes, and waits where they ask for it.
func (b *bench) settle() {
	b.t.Helper()
	for range 12 {
		result, err := b.pass()
		if err != nil {
			b.t.Fatal(err)
		}
		<-time.After(min(result.RequeueAfter, time.Second))
	}
}

func (b *bench) job() *batchv1.Job {
	b.t.Helper()
	job := &batchv1.Job{}
	if err := b.server.WithWatch.Get(b.t.Context(), client.ObjectKey{Namespace: "default", Name: "pi"},
		job); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		b.t.Fatal(err)
	}
	return job
}

func (b *bench) podList() []corev1.Pod {
	b.t.Helper()
	list, err := b.server.pods.CoreV1().Pods("default").List(b.t.Context(), metav1.ListOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return list.Items
}

// end lets a Pod end in the phase.
func (b *bench) end(name string, phase corev1.PodPhase) {
	b.t.Helper()
	pod, err := b.server.pods.CoreV1().Pods("default").Get(b.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	pod.Status.Phase = phase
	if _, err := b.server.pods.CoreV1().Pods("default").Update(b.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

func fresh(edits ...edit) *batchv1.Job {
	job := newJob(edits...)
	job.Status = batchv1.JobStatus{}
	return job
}

// JOB-001, JOB-010, JOB-014, JOB-158, JOB-129, JOB-111: a Job from its creation to its end.
func TestLifeOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, fresh())
		b.settle()
		pods := b.podList()
		if len(pods) != 1 || !isTracked(&pods[0]) || pods[0].Name != "pi-1" {
			t.Fatalf("Pods %+v", pods)
		}
		if s := b.job().Status; s.Active != 1 || s.Ready == nil || *s.Ready != 0 || s.StartTime == nil ||
			s.UncountedTerminatedPods == nil || s.Succeeded != 0 {
			t.Errorf("status of a Job that runs %+v", s)
		}
		b.end("pi-1", corev1.PodSucceeded)
		b.settle()
		s := b.job().Status
		if s.Active != 0 || s.Succeeded != 1 || s.CompletionTime == nil || !isTrue(&s, batchv1.JobComplete) ||
			len(s.UncountedTerminatedPods.Succeeded) > 0 {
			t.Errorf("status of a Job that is complete %+v", s)
		}
		if pods := b.podList(); len(pods) != 1 || isTracked(&pods[0]) {
			t.Errorf("Pods at the end %+v", pods)
		}
		if !slices.Equal(b.events, eventstest.Recorded{"Normal SuccessfulCreate Created pod: pi-1",
			"Normal Completed Job completed"}) {
			t.Errorf("events %q", b.events)
		}
	})
}

// JOB-003, JOB-146, JOB-148, JOB-143: suspended and resumed, in this order for those who look.
func TestSuspendAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, fresh(parallel(1, 5), backoffLimit(0)))
		b.settle()
		suspend := func(yes bool) {
			job := b.job()
			job.Spec.Suspend = &yes
			if err := b.server.Update(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			b.settle()
		}
		suspend(true)
		if pods, s := b.podList(), b.job().Status; len(pods) != 0 || s.Failed != 0 ||
			!isTrue(&s, batchv1.JobSuspended) {
			t.Errorf("suspended: Pods %v, status %+v", pods, s)
		}
		for _, action := range b.server.pods.Actions() {
			patch, ok := action.(clienttesting.PatchAction)
			if ok && !strings.Contains(string(patch.GetPatch()), `"resourceVersion":"1001"`) {
				t.Errorf("JOB-142 a Pod that may have ended meanwhile is let go by %s", patch.GetPatch())
			}
		}
		suspend(false)
		if s := b.job().Status; len(b.podList()) != 1 || isTrue(&s, batchv1.JobSuspended) || isFinished(b.job()) {
			t.Errorf("resumed: Pods %v, status %+v", b.podList(), s)
		}
		if !slices.Equal(b.events, eventstest.Recorded{"Normal SuccessfulCreate Created pod: pi-1",
			"Normal SuccessfulDelete Deleted pod: pi-1", "Normal Suspended Job suspended",
			"Normal SuccessfulCreate Created pod: pi-2", "Normal Resumed Job resumed"}) {
			t.Errorf("events %q", b.events)
		}
	})
}

// JOB-041, JOB-040: a refusal is told, and tried again.
func TestRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, fresh(parallel(4, 4)))
		b.refusal = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "pi-", errors.New("exceeded quota"))
		if _, err := b.pass(); !apierrors.IsForbidden(err) {
			t.Errorf("error %v", err)
		}
		if !slices.Equal(b.events, eventstest.Recorded{
			`Warning FailedCreate Error creating: pods "pi-" is forbidden: exceeded quota`}) || b.serial != 1 {
			t.Errorf("events %q, %d requests", b.events, b.serial)
		}
		b.refusal = nil
		b.settle()
		if n := len(b.podList()); n != 4 {
			t.Errorf("%d Pods", n)
		}
		b.refusal = &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}}}
		b.events = nil
		b.end("pi-2", corev1.PodSucceeded)
		if _, err := b.pass(); err != nil || len(b.events) != 0 {
			t.Errorf("in a namespace that ends: %v, events %q", err, b.events)
		}
	})
}

// JOB-171, JOB-172: a Job of another controller is left alone; so is one of a mode that is not known.
func TestJobsOfOthers(t *testing.T) {
	managed := func(by string) edit { return func(job *batchv1.Job) { job.Spec.ManagedBy = &by } }
	for name, c := range map[string]struct {
		edit edit
		pods int
	}{
		"another's":    {managed("example.com/queue"), 0},
		"its own name": {managed("kubernetes.io/job-controller"), 1},
		"no mode":      {func(job *batchv1.Job) { job.Spec.CompletionMode = nil }, 1},
		"another mode": {func(job *batchv1.Job) { job.Spec.CompletionMode = ptrTo[batchv1.CompletionMode]("Other") },
			0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, fresh(c.edit))
				b.settle()
				if n := len(b.podList()); n != c.pods || (b.job().Status.StartTime != nil) != (c.pods > 0) {
					t.Errorf("%d Pods, status %+v", n, b.job().Status)
				}
			})
		})
	}
}

// JOB-157, JOB-158: Pods without a controller are adopted, with the finalizer; those that match no more are released
// without it.
func TestAdoption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orphan := newPod("orphan Running untracked")
		orphan.OwnerReferences = nil
		b := newBench(t, fresh(parallel(2, 2)), orphan, newPod("stranger Running relabelled"))
		b.settle()
		got := map[string]string{}
		for _, pod := range b.podList() {
			owner := ""
			if reference := metav1.GetControllerOf(&pod); reference != nil {
				owner = string(reference.UID)
			}
			got[pod.Name] = fmt.Sprint(owner, " ", isTracked(&pod))
		}
		if len(got) != 3 || got["orphan"] != "job-uid true" || got["stranger"] != " false" || got["pi-1"] !=
			"job-uid true" {
			t.Errorf("Pods %v", got)
		}
	})
}

// places are where the controller may end between two writes.
var places = []string{"job.status", "pod.finalizers", "pod.create", "pod.delete"}

// JOB-159: a process that ends before or after any of its writes leaves counters that the next one makes true.
func TestCrashAtEveryWrite(t *testing.T) {
	for _, place := range places {
		for _, when := range []string{"before", "after"} {
			for nth := range 5 {
				name := fmt.Sprintf("workload-controllers/%s.%s", place, when)
				t.Run(fmt.Sprint(name, nth), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						crashAt(t, name, fmt.Sprintf("%d*off->1*error(crash)",
							nth))
					})
				})
			}
		}
	}
}

// crashAt runs a Job of three successes with a failure in between, and a Pod too many at the end.
func crashAt(t *testing.T, place, program string) {
	b := newBench(t, fresh(parallel(2, 3)))
	program = strings.TrimPrefix(program, "0*off->")
	if err := failpoint.Arm(place, program); err != nil {
		t.Fatal(err)
	}
	defer failpoint.Disarm(place)
	ended := map[string]corev1.PodPhase{}
	for range 60 {
		if _, err := b.pass(); err != nil {
			if !errors.Is(err, failpoint.ErrInjected) {
				t.Fatal(err)
			}
			b.restart()
		}
		for _, pod := range b.podList() {
			if pod.Status.Phase == "" {
				phase := corev1.PodSucceeded
				if len(ended) == 1 {
					phase = corev1.PodFailed
				}
				b.end(pod.Name, phase)
				ended[pod.Name] = phase
				break
			}
		}
		<-time.After(time.Minute)
	}
	var succeeded, failed int32
	for _, pod := range b.podList() {
		if isTracked(&pod) {
			t.Errorf("Pod %s keeps the finalizer", pod.Name)
		}
		if pod.Status.Phase == corev1.PodSucceeded {
			succeeded++
		} else {
			failed++
		}
	}
	if s := b.job().Status; !isTrue(&s, batchv1.JobComplete) || s.Succeeded != succeeded || s.Failed != failed ||
		failed != 1 || succeeded != 3 {
		t.Errorf("%d succeeded, %d failed; status %+v", succeeded, failed, s)
	}
}

// JOB-159: a process that takes over asks the server about Pods that its cache knows from before, and counts none
// that was counted.
func TestACacheThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, job := newPod("old Succeeded"), newJob(parallel(1, 5))
		old.ResourceVersion = "0"
		b := newBench(t, job, old)
		// The process before has counted the Pod since.
		b.server.pods.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			counted := newPod("old Succeeded untracked")
			return true, &corev1.PodList{Items: []corev1.Pod{*counted}}, nil
		})
		result, err := b.pass()
		if err != nil || result.RequeueAfter != time.Second ||
			len(b.job().Status.UncountedTerminatedPods.Succeeded) > 0 {
			t.Errorf("%+v, %v, status %+v", result, err, b.job().Status)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newJob(parallel(1, 5)), newPod("new Succeeded"))
		b.settle()
		if s := b.job().Status; s.Succeeded != 1 || b.server.lists != 1 {
			t.Errorf("of this process's time: %d lists, status %+v", b.server.lists, s)
		}
	})
}
