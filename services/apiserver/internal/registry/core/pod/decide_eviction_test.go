package pod

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// running is a Pod of the application web.
func running(ready bool, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"app": "web"}}}
	p.Status.Phase = corev1.PodRunning
	if ready {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func budgetOf(name string, edits ...func(*policyv1.PodDisruptionBudget)) policyv1.PodDisruptionBudget {
	b := policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{
			"app": "web"}}},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1}}
	for _, edit := range edits {
		edit(&b)
	}
	return b
}

func health(current, desired int32) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) {
		b.Status.CurrentHealthy, b.Status.DesiredHealthy = current, desired
	}
}

func allowing(disruptions int32) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = disruptions }
}

func always(b *policyv1.PodDisruptionBudget) {
	b.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
}

func ifHealthy(b *policyv1.PodDisruptionBudget) {
	b.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.IfHealthyBudget)
}

func selecting(selector *metav1.LabelSelector) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = selector }
}

func TestJudgeEviction(t *testing.T) {
	free, watched, spends := evictionWay{}, evictionWay{asSeen: true}, evictionWay{budget: "one"}
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
	other := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	malformed := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app",
		Operator: "Near"}}}
	for _, row := range []struct {
		name    string
		pod     *corev1.Pod
		budgets []policyv1.PodDisruptionBudget
		want    evictionWay
	}{
		{"SAF-048 no budget", running(true), nil, free},
		{"SAF-048 another's budget", running(true), []policyv1.PodDisruptionBudget{budgetOf("one", selecting(other))},
			free},
		{"a selector that cannot be read", running(true),
			[]policyv1.PodDisruptionBudget{budgetOf("one", selecting(malformed))}, free},
		{"SAF-031 a null selector selects none", running(true),
			[]policyv1.PodDisruptionBudget{budgetOf("one", selecting(nil))}, free},
		{"SAF-031 an empty one selects all", running(true),
			[]policyv1.PodDisruptionBudget{budgetOf("one", selecting(&metav1.LabelSelector{}))}, spends},
		{"its own budget", running(true), []policyv1.PodDisruptionBudget{budgetOf("two", selecting(other)),
			budgetOf("one")},
			spends},
		{"SAF-048 it succeeded", running(true, inPhase(corev1.PodSucceeded)),
			[]policyv1.PodDisruptionBudget{budgetOf("one")}, free},
		{"SAF-048 it failed", running(true, inPhase(corev1.PodFailed)), []policyv1.PodDisruptionBudget{budgetOf("one")},
			free},
		{"SAF-048 it goes already", running(true, leaving), []policyv1.PodDisruptionBudget{budgetOf("one")}, free},
		{"SAF-048 it is pending, and may run the moment after", running(false, inPhase(corev1.PodPending)),
			[]policyv1.PodDisruptionBudget{budgetOf("one")}, watched},
		{"SAF-040 SAF-042 not ready, too few healthy", running(false),
			[]policyv1.PodDisruptionBudget{budgetOf("one", health(1, 2))}, spends},
		{"SAF-040 by its name", running(false), []policyv1.PodDisruptionBudget{budgetOf("one", health(1, 2),
			ifHealthy)},
			spends},
		{"SAF-043 not ready, enough healthy", running(false),
			[]policyv1.PodDisruptionBudget{budgetOf("one", health(2, 2))}, watched},
		{"SAF-043 none desired says nothing of health", running(false),
			[]policyv1.PodDisruptionBudget{budgetOf("one", health(0, 0))}, spends},
		{"SAF-041 SAF-042 always", running(false), []policyv1.PodDisruptionBudget{budgetOf("one", health(1, 2),
			always)},
			watched},
		{"SAF-042 always is for those that are not ready", running(true),
			[]policyv1.PodDisruptionBudget{budgetOf("one", health(1, 2), always)}, spends},
		{"SAF-042 ready with enough healthy spends", running(true),
			[]policyv1.PodDisruptionBudget{budgetOf("one", health(3, 2))}, spends},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got, err := judgeEviction(row.pod, row.budgets); err != nil || got != row.want {
				t.Errorf("%+v, %v; want %+v", got, err, row.want)
			}
		})
	}
	// SAF-046.
	_, err := judgeEviction(running(true), []policyv1.PodDisruptionBudget{budgetOf("one"), budgetOf("two")})
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "more than one PodDisruptionBudget") {
		t.Errorf("of two budgets: %v", err)
	}
}

func TestSpend(t *testing.T) {
	now := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	b := budgetOf("one", allowing(2), health(4, 2))
	if err := spend(&b, "a", now); err != nil || b.Status.DisruptionsAllowed != 1 || len(b.Status.Conditions) > 0 {
		t.Fatalf("SAF-033: of two: %v, %+v", err, b.Status)
	}
	if err := spend(&b, "b", now.Add(time.Second)); err != nil || b.Status.DisruptionsAllowed != 0 ||
		!meta.IsStatusConditionFalse(b.Status.Conditions, "DisruptionAllowed") ||
		b.Status.Conditions[0].Reason != "InsufficientPods" {
		t.Fatalf("SAF-033: of one: %v, %+v", err, b.Status)
	}
	if a, b := b.Status.DisruptedPods["a"], b.Status.DisruptedPods["b"]; !a.Time.Equal(now) ||
		!b.Time.Equal(now.Add(time.Second)) {
		t.Errorf("SAF-036: evicted at %s and %s", a, b)
	}
	before := b.DeepCopy()
	refused(t, spend(&b, "c", now), 0, "The disruption budget one needs 2 healthy pods and has 4 currently")
	if !slices.Equal(before.Status.Conditions, b.Status.Conditions) || len(b.Status.DisruptedPods) != 2 {
		t.Errorf("SAF-051: a refusal changed the budget to %+v", b.Status)
	}

	changed := budgetOf("one", allowing(5), func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 })
	refused(t, spend(&changed, "a", now), 10, "The disruption budget one is still being processed by the server.")
	negative := budgetOf("one", allowing(-1))
	if err := spend(&negative, "a", now); !apierrors.IsForbidden(err) {
		t.Errorf("below zero: %v", err)
	}
	unconfirmed := budgetOf("one", allowing(5), func(b *policyv1.PodDisruptionBudget) {
		b.Status.DisruptedPods = map[string]metav1.Time{}
		for i := range 2000 {
			b.Status.DisruptedPods[fmt.Sprint(i)] = metav1.Time{}
		}
	})
	if err := spend(&unconfirmed, "a", now); err != nil {
		t.Errorf("after 2000 that are not confirmed: %v", err)
	}
	if err := spend(&unconfirmed, "b", now); !apierrors.IsForbidden(err) {
		t.Errorf("after 2001 that are not confirmed: %v", err)
	}
}

// refused wants SAF-046's answer to an eviction that may succeed later.
func refused(t *testing.T, err error, after int32, cause string) {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatalf("got %v", err)
	}
	got := status.Status()
	if got.Code != 429 || got.Message != "Cannot evict pod as it would violate the pod's disruption budget." ||
		got.Details.RetryAfterSeconds != after || len(got.Details.Causes) != 1 ||
		got.Details.Causes[0].Type != "DisruptionBudget" || got.Details.Causes[0].Message != cause {
		t.Errorf("SAF-046 SAF-047: %+v, details %+v", got, got.Details)
	}
}
