package disruption

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"keelson.dev/kit/podview"
	"keelson.dev/services/workload-controllers/internal/podfeed"
)

// target is a Pod that has said for some time that it is about to be disrupted.
func target(ago time.Duration, changes ...func(*corev1.Pod, *corev1.PodCondition)) *corev1.Pod {
	condition := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		Reason:  "EvictionByEvictionAPI",
		Message: "Eviction API: evicting", LastTransitionTime: metav1.NewTime(now.Add(-ago))}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web-uid"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	for _, change := range changes {
		change(pod, &condition)
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, condition}
	return pod
}

// What is said of a Pod is what would be done about it.
func TestExplainPod(t *testing.T) {
	for want, pod := range map[string]*corev1.Pod{
		"waits for the deletion that its DisruptionTarget announces":              target(2*time.Minute - time.Second),
		"in its next pass takes back its DisruptionTarget, which nothing came of": target(2 * time.Minute),
		"": target(time.Minute, func(p *corev1.Pod, _ *corev1.PodCondition) { p.Status.Phase = "Failed" }),
	} {
		c := &Controller{client: fake.NewClientBuilder().WithObjects(pod).Build(),
			now: func() time.Time { return now }}
		said, known := c.explainPod(t.Context(), "default", "web")
		if said.Summary != want || known != (want != "") {
			t.Errorf("%q, %t, want %q", said.Summary, known, want)
		}
		if known && len(said.Facts) != 1 {
			t.Errorf("facts %+v", said.Facts)
		}
	}
	c := &Controller{client: fake.NewClientBuilder().Build(), now: time.Now}
	if said, known := c.explainPod(t.Context(), "default", "web"); known {
		t.Errorf("of a Pod that is not there: %+v", said)
	}
}

// SAF-074
func TestTakeBack(t *testing.T) {
	type change = func(*corev1.Pod, *corev1.PodCondition)
	for _, row := range []struct {
		name   string
		ago    time.Duration
		change change
		again  time.Duration
		want   corev1.ConditionStatus
	}{
		{"just now", 0, nil, 2 * time.Minute, "True"},
		{"for almost two minutes", 2*time.Minute - time.Second, nil, time.Second, "True"},
		{"for two minutes", 2 * time.Minute, nil, 0, "False"},
		{"by its own node", time.Hour, func(_ *corev1.Pod,
			c *corev1.PodCondition) {
			c.Reason = "TerminationByKubelet"
		}, 0,
			"True"},
		{"of a Pod that has failed", time.Hour,
			func(p *corev1.Pod, _ *corev1.PodCondition) { p.Status.Phase = "Failed" }, 0,
			"True"},
		{"of a Pod that has succeeded", time.Hour, func(p *corev1.Pod, _ *corev1.PodCondition) {
			p.Status.Phase = "Succeeded"
		}, 0, "True"},
		{"of a Pod that is being deleted", time.Hour, func(p *corev1.Pod, _ *corev1.PodCondition) {
			p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: now}, []string{"example.com/wait"}
		}, 0, "True"},
		{"unknown", time.Hour, func(_ *corev1.Pod, c *corev1.PodCondition) { c.Status = "Unknown" }, 0, "Unknown"},
	} {
		t.Run(row.name, func(t *testing.T) {
			pod := target(row.ago)
			if row.change != nil {
				pod = target(row.ago, row.change)
			}
			api := fake.NewClientBuilder().WithObjects(pod).WithStatusSubresource(pod).Build()
			c := &Controller{client: api, now: func() time.Time { return now }}
			result, err := budgetsAndPods{pods: c.takeBack}.Reconcile(t.Context(), podRequest(pod))
			if err != nil || result.RequeueAfter != row.again {
				t.Errorf("again in %v, %v, want %v", result.RequeueAfter, err, row.again)
			}
			got := &corev1.Pod{}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(pod), got); err != nil {
				t.Fatal(err)
			}
			condition := podview.Condition(got, corev1.DisruptionTarget)
			if condition.Status != row.want || (condition.Reason == "") != (row.want == "False") {
				t.Errorf("it is %+v, want %s", condition, row.want)
			}
			if ready := podview.Condition(got, corev1.PodReady); ready == nil || ready.Status != corev1.ConditionTrue {
				t.Errorf("the other conditions became %+v", got.Status.Conditions)
			}
		})
	}
}

// The cache keeps what says that a Pod is about to be disrupted.
func TestTheCacheKeepsTargets(t *testing.T) {
	kept, err := podfeed.Trim(target(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if at, stale := staleAt(kept.(*corev1.Pod)); !stale || !at.Equal(now.Add(time.Minute)) {
		t.Errorf("of the Pod in the cache: %v %t", at, stale)
	}
}

// A Pod that has changed since it was seen is left alone, as is one that is gone.
func TestTakeBackOfAnotherState(t *testing.T) {
	pod := target(time.Hour)
	api := fake.NewClientBuilder().WithObjects(pod).WithStatusSubresource(pod).Build()
	behind := pod.DeepCopy()
	behind.ResourceVersion = "1"
	cache := fake.NewClientBuilder().WithObjects().Build()
	c := &Controller{client: cache, now: func() time.Time { return now }}
	if _, err := c.takeBack(t.Context(), client.ObjectKeyFromObject(pod)); err != nil {
		t.Errorf("of a Pod that is gone: %v", err)
	}
	c.client = behindClient{api, behind}
	if _, err := c.takeBack(t.Context(), client.ObjectKeyFromObject(pod)); err != nil {
		t.Errorf("of a Pod that has changed: %v", err)
	}
	got := &corev1.Pod{}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(pod), got); err != nil ||
		podview.Condition(got, corev1.DisruptionTarget).Status != corev1.ConditionTrue {
		t.Errorf("a Pod in another state was changed: %v", err)
	}
}

// behindClient reads an older state.
type behindClient struct {
	client.Client
	pod *corev1.Pod
}

// Get implements client.Reader.
func (b behindClient) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	b.pod.DeepCopyInto(into.(*corev1.Pod))
	return nil
}
