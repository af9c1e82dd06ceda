package podfeed

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/services/workload-controllers/internal/podset"
)

// pods is a cache of Pods alone.
type pods struct {
	cache.Cache
	factory informers.SharedInformerFactory
}

func (p pods) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return p.factory.Core().V1().Pods().Informer(), nil
}

func newPod(name, version string) *corev1.Pod {
	yes := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: "uid-" + "x", ResourceVersion: version,
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "web-uid", Controller: &yes}},
	}}
}

func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		clientset := fake.NewClientset(newPod("a", "5"))
		from := pods{factory: informers.NewSharedInformerFactory(clientset, 0)}
		feed := New()
		var changes []podset.Change
		unsubscribe := feed.Subscribe(func(pod *corev1.Pod, change podset.Change) {
			if change.After != nil && feed.Index.Get(pod.UID) == nil {
				t.Error("told of a Pod before the index has it")
			}
			changes = append(changes, change)
		})
		from.factory.Core().V1().Pods().Informer()
		from.factory.Start(ctx.Done())
		for range 2 { // every controller connects
			if err := feed.Connect(ctx, from); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(changes) != 1 || changes[0].After == nil {
			t.Errorf("changes %+v, want one that adds", changes)
		}
		if !feed.Written(newPod("a", "5"))() || feed.Written(newPod("a", "6"))() {
			t.Error("version 5 has been seen, version 6 has not")
		}
		if feed.Deleted("uid-x")() {
			t.Error("the Pod is there")
		}
		unsubscribe()
		if err := clientset.CoreV1().Pods("default").Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(changes) != 1 {
			t.Errorf("told of %d changes, want none after unsubscribing", len(changes))
		}
		if !feed.Deleted("uid-x")() || feed.Index.Get("uid-x") != nil {
			t.Error("the Pod is gone")
		}
		cancel()
		from.factory.Shutdown()
	})
}

// A change is told to those that have subscribed, and telling them allocates nothing.
func TestSubscribersComeAndGo(t *testing.T) {
	feed, told := New(), map[string]int{}
	subscribe := func(name string) func() {
		return feed.Subscribe(func(*corev1.Pod, podset.Change) { told[name]++ })
	}
	pod := newPod("a", "1")
	first, second := subscribe("first"), subscribe("second")
	feed.publish(pod, podset.Change{})
	first()
	third := subscribe("third")
	first() // has gone already
	feed.publish(pod, podset.Change{})
	third()
	second()
	feed.publish(pod, podset.Change{})
	if want := map[string]int{"first": 1, "second": 2, "third": 1}; !maps.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	feed.Subscribe(func(*corev1.Pod, podset.Change) {})
	if allocated := testing.AllocsPerRun(100, func() { feed.publish(pod, podset.Change{}) }); allocated > 0 {
		t.Errorf("it allocates %v times", allocated)
	}
}

// timed is a queue that remembers how long requests were to wait.
type timed struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	waits []time.Duration
}

func (q *timed) AddAfter(_ reconcile.Request, wait time.Duration) { q.waits = append(q.waits, wait) }

// A change waits 10 milliseconds for others, and longer where the source says so.
func TestChangesWaitForOthers(t *testing.T) {
	for _, c := range []struct{ delay, want time.Duration }{
		{0, 10 * time.Millisecond}, {9 * time.Millisecond, 10 * time.Millisecond}, {time.Second, time.Second},
	} {
		feed, queue := New(), &timed{}
		s := &Source{Feed: feed, Requests: func(*corev1.Pod, podset.Change) []reconcile.Request {
			return []reconcile.Request{{}}
		}}
		if c.delay > 0 {
			s.Delay = func(podset.Change) time.Duration { return c.delay }
		}
		if err := s.Start(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
		feed.upsert(newPod("a", "1"))
		if !slices.Equal(queue.waits, []time.Duration{c.want}) {
			t.Errorf("with a delay of %v it waits %v, want %v", c.delay, queue.waits, c.want)
		}
	}
}

// What decisions read must outlive the trimming.
func TestTrimKeepsWhatDecisionsRead(t *testing.T) {
	now := metav1.Now()
	pod := newPod("a", "5")
	pod.Labels = map[string]string{"app": "web"}
	pod.Annotations = map[string]string{corev1.PodDeletionCost: "3", "other": "x"}
	pod.CreationTimestamp, pod.DeletionTimestamp = now, &now
	pod.Finalizers = []string{"batch.kubernetes.io/job-tracking"}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}}
	ephemeral := corev1.Volume{Name: "e", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}}
	pod.Spec = corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i"}},
		Volumes: []corev1.Volume{{Name: "d"}, ephemeral}}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled}, ready},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "c", RestartCount: 2}, {Name: "d"}},
	}
	want := newPod("a", "5")
	want.Labels, want.Annotations = pod.Labels, map[string]string{corev1.PodDeletionCost: "3"}
	want.CreationTimestamp, want.DeletionTimestamp = now, &now
	want.Spec.NodeName, want.Finalizers = "n", pod.Finalizers
	want.Spec.Volumes = []corev1.Volume{ephemeral}
	want.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{ready},
		ContainerStatuses: []corev1.ContainerStatus{{RestartCount: 2}}}
	got, err := Trim(pod)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ManagedFields: pod.ManagedFields},
		Data: map[string]string{"a": "b"}}
	if _, err := Trim(other); err != nil || other.ManagedFields != nil || other.Data["a"] != "b" {
		t.Errorf("got %+v, %v", other, err)
	}
}
