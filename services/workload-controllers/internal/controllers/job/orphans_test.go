package job

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/services/workload-controllers/internal/podset"
	"keelson.dev/services/workload-controllers/internal/wake"
)

func (b *bench) orphanPass(name string) (reconcile.Result, error) {
	b.t.Helper()
	synctest.Wait()
	return reconciler{orphans: b.controller.letGo}.Reconcile(b.t.Context(), wake.Request("default", "pods/"+name))
}

func (b *bench) isTracked(name string) bool {
	b.t.Helper()
	pod, err := b.server.pods.CoreV1().Pods("default").Get(b.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return isTracked(pod)
}

// JOB-160: a Pod keeps the finalizer as long as a Job would count it, and no longer.
func TestPodsWithoutAJob(t *testing.T) {
	for name, c := range map[string]struct {
		pod    func(*corev1.Pod)
		cached bool // the cache shows the Job
		lives  bool // the server has it
		kept   bool
		again  bool
	}{
		"JOB-160 the Job is gone": {},
		"the Job is there":        {cached: true, lives: true, kept: true},
		"the cache is behind":     {lives: true, kept: true, again: true},
		"JOB-160 another Job has the name": {cached: true, lives: true,
			pod: func(p *corev1.Pod) { p.OwnerReferences[0].UID = "gone" }},
		"JOB-160 orphaned": {cached: true, lives: true, pod: func(p *corev1.Pod) { p.OwnerReferences = nil }},
		"of another controller": {cached: true, lives: true,
			pod: func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "Set" }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod, job := newPod("a Succeeded"), newJob()
				if c.pod != nil {
					c.pod(pod)
				}
				b := newBench(t, job, pod)
				if !c.lives {
					if err := b.server.Delete(t.Context(), b.job()); err != nil {
						t.Fatal(err)
					}
				}
				if c.cached {
					if err := b.jobs.Add(b.job()); err != nil {
						t.Fatal(err)
					}
				}
				result, err := b.orphanPass("a")
				if err != nil || (result.RequeueAfter > 0) != c.again {
					t.Errorf("%+v, %v", result, err)
				}
				if got := b.isTracked("a"); got != c.kept {
					t.Errorf("kept: %t, want %t", got, c.kept)
				}
			})
		})
	}
}

// A Pod that is gone needs nothing.
func TestAPodThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newJob())
		if result, err := b.orphanPass("none"); err != nil || result.RequeueAfter > 0 {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

// Whatever may make a Pod lose its Job asks for a look at it.
func TestWhatWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod, other := newPod("a Running"), newPod("b Running")
		other.OwnerReferences[0].UID, other.OwnerReferences[0].Name = "other", "other"
		b := newBench(t, newJob(), pod, other, newPod("c Succeeded untracked"))
		job := b.job()
		if err := b.jobs.Add(job); err != nil {
			t.Fatal(err)
		}
		b.controller.remember(job)
		expect := func(what string, got []reconcile.Request, want ...string) {
			t.Helper()
			var names []string
			for _, request := range got {
				names = append(names, request.Name)
			}
			if len(names) != len(want) {
				t.Errorf("%s wakes %v, want %v", what, names, want)
				return
			}
			for i := range want {
				if names[i] != want[i] {
					t.Errorf("%s wakes %v, want %v", what, names, want)
				}
			}
		}
		ofJob := &pod.OwnerReferences[0]
		expect("a Pod of the Job", b.controller.onPod(pod, podset.Change{After: ofJob}), "pi")
		expect("a Pod of a Job that is not known",
			b.controller.onPod(other, podset.Change{After: &other.OwnerReferences[0]}),
			"other", "pods/b")
		orphan := pod.DeepCopy()
		orphan.OwnerReferences = nil
		expect("a Pod that the Job has lost", b.controller.onPod(orphan, podset.Change{Before: ofJob}), "pi", "pi",
			"pods/a")
		elsewhere := &metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Job", Name: "x"}
		foreign := newPod("d Running untracked")
		foreign.OwnerReferences = []metav1.OwnerReference{*elsewhere}
		expect("a Pod of another API's Job", b.controller.onPod(foreign, podset.Change{After: elsewhere}))
		expect("the end of the Job", b.controller.bereaved(job), "pods/a")

		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer queue.ShutDown()
		s := &sweep{controller: b.controller, feed: b.feed, pods: podStore(t, pod, other)}
		if err := s.Start(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
		s.look()
		request, _ := queue.Get()
		expect("the first look", []reconcile.Request{request}, "pods/b")
		if queue.Len() > 0 {
			t.Errorf("%d more are looked at", queue.Len())
		}
		queue.Done(request)
	})
}

// A Job that is gone is forgotten.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newJob())
		job := b.job()
		b.controller.remember(job)
		b.controller.written["job-uid"] = start
		b.controller.gate.Await("job-uid", "x", func() bool { return false })
		b.controller.forget(job)
		if len(b.controller.written) > 0 || !b.controller.gate.IsOpen("job-uid") ||
			len(b.controller.owners.Selectors.Matching("default", map[string]string{"job": "pi"})) > 0 {
			t.Error("something is remembered")
		}
	})
}

func podStore(t *testing.T, pods ...*corev1.Pod) toolscache.Indexer {
	t.Helper()
	store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	for _, pod := range pods {
		if err := store.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	return store
}
