package pod_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/failpoint"
)

// POD-031 SAF-026 SAF-046 SAF-050 SAF-064 SAF-065 SAF-068, and SAF-159 as far as evictions go
func testEvict(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	p := create(t, pods, nginx(onNode))
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "nginx", Namespace: p.Namespace}}
	dry := eviction.DeepCopy()
	dry.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	must(t, pods.EvictV1(t.Context(), dry))
	if untouched := get(t, pods, "nginx"); untouched.ResourceVersion != p.ResourceVersion {
		t.Errorf("SAF-049: a dry run changed the Pod: %+v", untouched)
	}
	changes, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: p.ResourceVersion})
	must(t, err)
	defer changes.Stop()
	var code int
	result := c.Client.CoreV1().RESTClient().Post().Namespace(p.Namespace).Resource("pods").Name("nginx").SubResource(
		"eviction").Body(eviction).Do(t.Context()).StatusCode(&code)
	must(t, result.Error())
	if code != 201 {
		t.Errorf("answered with %d", code)
	}
	evicted := get(t, pods, "nginx")
	if evicted.DeletionTimestamp == nil || *evicted.DeletionGracePeriodSeconds != 30 ||
		len(evicted.Status.Conditions) != 1 {
		t.Fatalf("evicted %+v", evicted)
	}
	condition := evicted.Status.Conditions[0]
	if condition.Type != corev1.DisruptionTarget || condition.Status != corev1.ConditionTrue ||
		condition.Reason != "EvictionByEvictionAPI" || condition.Message != "Eviction API: evicting" {
		t.Errorf("condition %+v", condition)
	}
	if condition.ObservedGeneration != p.Generation {
		t.Errorf("the condition is of generation %d, want that of before, %d", condition.ObservedGeneration,
			p.Generation)
	}
	// What is said and that the Pod goes is one change.
	if first, ok := (<-changes.ResultChan()).Object.(*corev1.Pod); !ok || first.DeletionTimestamp == nil ||
		first.ResourceVersion != evicted.ResourceVersion {
		t.Errorf("the first change is %+v, want the one that deletes", first)
	}
}

// A Pod that goes at once says why before.
func testEvictUnbound(t *testing.T, _ *cluster, pods typedcorev1.PodInterface) {
	p := create(t, pods, nginx())
	changes, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: p.ResourceVersion})
	must(t, err)
	defer changes.Stop()
	must(t, pods.EvictV1(t.Context(), evictionOf(p)))
	for _, want := range []watch.EventType{watch.Modified, watch.Deleted} {
		change := <-changes.ResultChan()
		if pod, ok := change.Object.(*corev1.Pod); !ok || change.Type != want || len(pod.Status.Conditions) != 1 ||
			pod.Status.Conditions[0].Type != corev1.DisruptionTarget {
			t.Errorf("%s %+v, want %s with a reason", change.Type, change.Object, want)
		}
	}
}

// SAF-046: the form of policy/v1beta1 is accepted as well.
func testEvictBeta(t *testing.T, _ *cluster, pods typedcorev1.PodInterface) {
	p := create(t, pods, nginx(onNode))
	must(t, pods.EvictV1beta1(t.Context(), &policyv1beta1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace},
		DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](7)},
	}))
	if evicted := get(t, pods, p.Name); *evicted.DeletionGracePeriodSeconds != 7 {
		t.Errorf("evicted %+v", evicted)
	}
}

// A server that dies between the condition and the deletion has lost nothing: the next try ends the eviction.
func testEvictInterrupted(t *testing.T, _ *cluster, pods typedcorev1.PodInterface) {
	const place = "apiserver/delete.reason.after"
	create(t, pods, nginx())
	must(t, failpoint.Arm(place, "1*error(killed)"))
	defer failpoint.Disarm(place)
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "nginx"}}
	if err := pods.EvictV1(t.Context(), eviction); err == nil {
		t.Fatal("the eviction was not interrupted")
	}
	if announced := get(t, pods, "nginx"); announced.DeletionTimestamp != nil || len(announced.Status.Conditions) != 1 {
		t.Errorf("after the interruption: %+v", announced)
	}
	must(t, pods.EvictV1(t.Context(), eviction))
	if evicted, err := pods.Get(t.Context(), "nginx", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the second try: %+v, %v", evicted, err)
	}
}

func testEvictRefused(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	p := create(t, pods, nginx(onNode))
	evict := func(urlName string, change func(*policyv1.Eviction)) error {
		e := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "nginx", Namespace: p.Namespace}}
		change(e)
		return c.Client.CoreV1().RESTClient().Post().Namespace(p.Namespace).Resource("pods").Name(urlName).SubResource(
			"eviction").Body(e).Do(t.Context()).Error()
	}
	wantError(t, evict("other", func(*policyv1.Eviction) {}), apierrors.IsBadRequest, "name in URL")
	wantError(t, evict("nobody", func(e *policyv1.Eviction) { e.Name = "nobody" }), apierrors.IsNotFound,
		`"nobody" not found`)
	for name, preconditions := range map[string]*metav1.Preconditions{"UID": {UID: ptr.To(types.UID("x"))},
		"ResourceVersion": {ResourceVersion: ptr.To("1")}} {
		err := evict("nginx", func(e *policyv1.Eviction) {
			e.DeleteOptions = &metav1.DeleteOptions{
				Preconditions: preconditions}
		})
		wantError(t, err, apierrors.IsConflict, name)
	}
	if untouched := get(t, pods, "nginx"); untouched.DeletionTimestamp != nil || len(untouched.Status.Conditions) > 0 {
		t.Errorf("SAF-051: a refused eviction changed the Pod: %+v", untouched)
	}
	must(t, evict("nginx", func(e *policyv1.Eviction) {
		e.DeleteOptions = &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID,
			ResourceVersion: &p.ResourceVersion}, GracePeriodSeconds: ptr.To[int64](7)}
	}))
	if evicted := get(t, pods, "nginx"); *evicted.DeletionGracePeriodSeconds != 7 {
		t.Errorf("evicted %+v", evicted)
	}
}

// budget makes a budget of the Pods labelled app=web, with a status as its controller would write it.
func budget(t *testing.T, c *cluster, namespace string, status policyv1.PodDisruptionBudgetStatus) {
	t.Helper()
	budgets := c.Client.PolicyV1().PodDisruptionBudgets(namespace)
	created, err := budgets.Create(t.Context(),
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			}}, metav1.CreateOptions{})
	must(t, err)
	created.Status = status
	created.Status.ObservedGeneration = created.Generation
	_, err = budgets.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
	must(t, err)
}

// web makes a Pod of the application that runs, ready or not.
func web(t *testing.T, pods typedcorev1.PodInterface, name string, ready corev1.ConditionStatus) *corev1.Pod {
	t.Helper()
	p := create(t, pods, nginx(onNode, func(p *corev1.Pod) {
		p.Name, p.Labels = name, map[string]string{"app": "web"}
	}))
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	p, err := pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	must(t, err)
	return p
}

func evictionOf(p *corev1.Pod) *policyv1.Eviction {
	return &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}}
}

// SAF-033 SAF-040 SAF-046 SAF-049 SAF-051, and SAF-027: what is deleted asks no budget.
func testEvictBudget(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	a, b := web(t, pods, "a", corev1.ConditionTrue), web(t, pods, "b", corev1.ConditionTrue)
	unready := web(t, pods, "unready", corev1.ConditionFalse)
	budget(t, c, a.Namespace, policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, CurrentHealthy: 2,
		DesiredHealthy: 3, ExpectedPods: 3})
	left := func(what string, want int32) {
		t.Helper()
		stored, err := c.Client.PolicyV1().PodDisruptionBudgets(a.Namespace).Get(t.Context(), "web",
			metav1.GetOptions{})
		must(t, err)
		if stored.Status.DisruptionsAllowed != want {
			t.Errorf("%s: %d disruptions are allowed, want %d", what, stored.Status.DisruptionsAllowed, want)
		}
	}
	dry := evictionOf(a)
	dry.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	must(t, pods.EvictV1(t.Context(), dry))
	left("SAF-049 after a dry run", 1)
	must(t, pods.EvictV1(t.Context(), evictionOf(a)))
	left("after one eviction", 0)
	wantError(t, pods.EvictV1(t.Context(), evictionOf(b)), apierrors.IsTooManyRequests, "Cannot evict pod")
	dry.Name = b.Name
	wantError(t, pods.EvictV1(t.Context(), dry), apierrors.IsTooManyRequests, "Cannot evict pod")
	wantError(t, pods.EvictV1(t.Context(), evictionOf(unready)), apierrors.IsTooManyRequests, "Cannot evict pod")
	if untouched := get(t, pods, "b"); untouched.ResourceVersion != b.ResourceVersion {
		t.Errorf("SAF-051: a refused eviction changed the Pod: %+v", untouched)
	}
	must(t, pods.Delete(t.Context(), "b", metav1.DeleteOptions{}))
	left("SAF-027 after a deletion", 0)
}

// SAF-041: a Pod that is not ready goes, and costs nothing.
func testEvictUnready(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	p := web(t, pods, "a", corev1.ConditionFalse)
	budget(t, c, p.Namespace, policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 2, DesiredHealthy: 2})
	must(t, pods.EvictV1(t.Context(), evictionOf(p)))
	if evicted := get(t, pods, "a"); evicted.DeletionTimestamp == nil {
		t.Errorf("SAF-043: it stays: %+v", evicted)
	}
}

// SAF-047 SAF-054: of a hundred evictions at once no more succeed than the budget allows.
func testEvictAtOnce(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	const all, allowed = 100, 7
	evictions := make([]*policyv1.Eviction, all)
	for i := range all {
		evictions[i] = evictionOf(web(t, pods, fmt.Sprintf("web-%d", i), corev1.ConditionTrue))
	}
	budget(t, c, evictions[0].Namespace, policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed,
		CurrentHealthy: all, DesiredHealthy: all - allowed})
	var granted atomic.Int64
	t.Run("all", func(t *testing.T) {
		for _, eviction := range evictions {
			t.Run(eviction.Name, func(t *testing.T) {
				t.Parallel()
				switch err := pods.EvictV1(context.WithoutCancel(t.Context()), eviction); {
				case err == nil:
					granted.Add(1)
				case !apierrors.IsTooManyRequests(err):
					t.Errorf("refused by %v", err)
				}
			})
		}
	})
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	leaving := 0
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp != nil {
			leaving++
		}
	}
	if granted.Load() != allowed || leaving != allowed {
		t.Errorf("%d evictions were granted and %d Pods go, want %d", granted.Load(), leaving, allowed)
	}
}
