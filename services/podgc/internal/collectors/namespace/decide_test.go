package namespace

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func deleted(ago time.Duration, conditions ...corev1.NamespaceCondition) *corev1.Namespace {
	at := metav1.NewTime(now.Add(-ago))
	return &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "web", DeletionTimestamp: &at},
		Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
		Status:     corev1.NamespaceStatus{Conditions: conditions},
	}
}

func TestNeedsWork(t *testing.T) {
	alive := deleted(0)
	alive.DeletionTimestamp = nil
	done := deleted(0)
	done.Spec.Finalizers = nil
	if NeedsWork(alive) || NeedsWork(done) || !NeedsWork(deleted(0)) {
		t.Error("only a namespace being deleted that waits for us needs work")
	}
}

func TestDecide(t *testing.T) {
	pods := Content{Resource: "pods", Count: 2}
	held := Content{Resource: "widgets.example.com", Count: 1, Finalizers: map[string]int{"example.com/hold": 1}}
	tests := map[string]struct {
		in Input
		// want maps the conditions that are true to their messages.
		want      map[corev1.NamespaceConditionType]string
		finalize  bool
		lookAgain time.Duration
	}{
		"empty": {Input{Namespace: deleted(time.Second)}, nil, true, 0},
		"SAF-155 a Pod is left: it waits, however long": {
			Input{Namespace: deleted(time.Hour), Remaining: []Content{pods}},
			map[corev1.NamespaceConditionType]string{
				corev1.NamespaceContentRemaining: "Some resources are remaining: pods has 2 resource instances",
			}, false, 10 * time.Second,
		},
		"finalizers are named": {
			Input{Namespace: deleted(0), Remaining: []Content{held}},
			map[corev1.NamespaceConditionType]string{
				corev1.NamespaceContentRemaining: "Some resources are remaining: widgets.example.com has 1 " +
					"resource instances",
				corev1.NamespaceFinalizersRemaining: "Some content in the namespace has finalizers remaining: " +
					"example.com/hold in 1 resource instances",
			}, false, 200 * time.Millisecond,
		},
		"a group that cannot be read may hide content": {
			Input{Namespace: deleted(20 * time.Second), Undiscovered: []string{"metrics.k8s.io/v1"}},
			map[corev1.NamespaceConditionType]string{
				corev1.NamespaceDeletionDiscoveryFailure: "Discovery failed for some groups: metrics.k8s.io/v1",
			}, false, 5 * time.Second,
		},
		"what is not known to be gone counts beside what cannot be deleted": {
			Input{Namespace: deleted(0), Undiscovered: []string{"a/v1"}, Failures: []string{"secrets: refused"}},
			map[corev1.NamespaceConditionType]string{
				corev1.NamespaceDeletionDiscoveryFailure: "Discovery failed for some groups: a/v1",
				corev1.NamespaceDeletionContentFailure: "Failed to delete all resource types, 1 remaining: secrets: " +
					"refused",
			}, false, 200 * time.Millisecond,
		},
		"what cannot be deleted counts beside what is left": {
			Input{Namespace: deleted(4 * time.Second), Failures: []string{"pods: refused", "pods: busy"},
				Remaining: []Content{pods, pods}},
			map[corev1.NamespaceConditionType]string{
				corev1.NamespaceDeletionContentFailure: "Failed to delete all resource types, 2 remaining: pods: " +
					"refused; pods: busy",
				corev1.NamespaceContentRemaining: "Some resources are remaining: pods has 2 resource instances, " +
					"pods has 2 resource instances",
			}, false, time.Second,
		},
		"a deletion failed": {
			Input{Namespace: deleted(0), Failures: []string{"secrets: refused"}},
			map[corev1.NamespaceConditionType]string{
				corev1.NamespaceDeletionContentFailure: "Failed to delete all resource types, 1 remaining: secrets: " +
					"refused",
			}, false, 200 * time.Millisecond,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.in.Now = now
			plan := Decide(test.in)
			if plan.Finalize != test.finalize || plan.LookAgain != test.lookAgain {
				t.Errorf("finalize %v, look again %v", plan.Finalize, plan.LookAgain)
			}
			got := map[corev1.NamespaceConditionType]string{}
			for _, c := range plan.Conditions {
				if c.Status == corev1.ConditionTrue {
					got[c.Type] = c.Message
				}
			}
			if len(got)+len(test.want) > 0 && !reflect.DeepEqual(got, test.want) {
				t.Errorf("true conditions %v\nwant %v", got, test.want)
			}
		})
	}
}

func TestConditionsAreWrittenOnlyWhenTheyChange(t *testing.T) {
	in := Input{Namespace: deleted(0), Remaining: []Content{{Resource: "pods", Count: 2}}, Now: now}
	first := Decide(in)
	if len(first.Conditions) != 4 {
		t.Fatalf("%d conditions", len(first.Conditions))
	}
	in.Namespace, in.Now = deleted(0, first.Conditions...), now.Add(time.Minute)
	if again := Decide(in); again.Conditions != nil {
		t.Errorf("the same picture is written again: %v", again.Conditions)
	}
	in.Remaining[0].Count = 1
	moved := Decide(in).Conditions
	for i := range moved {
		if !moved[i].LastTransitionTime.Equal(&first.Conditions[i].LastTransitionTime) {
			t.Errorf("%s: the transition time moved without a transition", moved[i].Type)
		}
	}
}

// A namespace is looked at more and more rarely, between 200 ms and 10 s.
func TestLookAgain(t *testing.T) {
	for waiting, want := range map[time.Duration]time.Duration{
		-time.Second:           200 * time.Millisecond, // clocks differ
		0:                      200 * time.Millisecond,
		800 * time.Millisecond: 200 * time.Millisecond,
		804 * time.Millisecond: 201 * time.Millisecond,
		39 * time.Second:       9750 * time.Millisecond,
		40 * time.Second:       10 * time.Second,
		44 * time.Second:       10 * time.Second,
		24 * time.Hour:         10 * time.Second,
	} {
		in := Input{Namespace: deleted(waiting), Remaining: []Content{{Resource: "pods", Count: 1}}, Now: now}
		if got := Decide(in).LookAgain; got != want {
			t.Errorf("after %s again in %s, want %s", waiting, got, want)
		}
	}
}

// All four conditions are told, in a fixed order, those that hold and those that do not; others' are left alone.
func TestAllConditionsAreTold(t *testing.T) {
	foreign := corev1.NamespaceCondition{Type: "example.com/Checked", Status: corev1.ConditionTrue}
	bad := Input{Namespace: deleted(0, foreign), Undiscovered: []string{"a/v1"}, Failures: []string{"x"}, Now: now,
		Remaining: []Content{{Resource: "pods", Count: 1, Finalizers: map[string]int{"b": 2, "a": 1}},
			{Resource: "configmaps", Count: 3, Finalizers: map[string]int{"a": 4}}}}
	worse := Input{Namespace: deleted(0, foreign), Undiscovered: []string{"a/v1"}, Now: now}
	for _, c := range []struct {
		in   Input
		want []string
	}{
		{bad, []string{"example.com/Checked=True :",
			"NamespaceDeletionDiscoveryFailure=True DiscoveryFailed: Discovery failed for some groups: a/v1",
			"NamespaceDeletionContentFailure=True ContentDeletionFailed: Failed to delete all resource types, 1 " +
				"remaining: x",
			"NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: configmaps has 3 " +
				"resource instances, pods has 1 resource instances",
			"NamespaceFinalizersRemaining=True SomeFinalizersRemain: Some content in the namespace has finalizers " +
				"remaining: a in 5 resource instances, b in 2 resource instances"}},
		{worse, []string{"example.com/Checked=True :",
			"NamespaceDeletionDiscoveryFailure=True DiscoveryFailed: Discovery failed for some groups: a/v1",
			"NamespaceDeletionContentFailure=False ContentDeleted: All content successfully deleted, may be waiting " +
				"on finalization",
			"NamespaceContentRemaining=False ContentRemoved: All content successfully removed",
			"NamespaceFinalizersRemaining=False ContentHasNoFinalizers: All content-preserving finalizers finished"}},
	} {
		var got []string
		for _, condition := range Decide(c.in).Conditions {
			got = append(got, fmt.Sprintf("%s=%s %s: %s", condition.Type, condition.Status, condition.Reason,
				condition.Message))
		}
		got[0] = strings.TrimSpace(got[0])
		if !slices.Equal(got, c.want) {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}
