package resourcequota

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

func list(namesAndAmounts ...string) corev1.ResourceList {
	amounts := corev1.ResourceList{}
	for i := 0; i < len(namesAndAmounts); i += 2 {
		amounts[corev1.ResourceName(namesAndAmounts[i])] = resource.MustParse(namesAndAmounts[i+1])
	}
	return amounts
}

func newQuota(hard, used corev1.ResourceList, scopes ...corev1.ResourceQuotaScope) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q", UID: "q"},
		Spec:   corev1.ResourceQuotaSpec{Hard: hard, Scopes: scopes},
		Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}}
}

func TestDecide(t *testing.T) {
	hard := list("pods", "9")
	for _, row := range []struct {
		name                      string
		charged, counted, release corev1.ResourceList
		raised                    time.Duration // before now
		want                      corev1.ResourceList
		wake                      time.Duration
	}{
		{"a new quota", nil, list("pods", "3"), nil, 0, list("pods", "3"), 5 * time.Minute},
		{"all is as charged", list("pods", "3"), list("pods", "3"), nil, 0, list("pods", "3"), 5 * time.Minute},
		{"one is on its way", list("pods", "4"), list("pods", "3"), nil, 0, list("pods", "4"), 2 * time.Minute},
		{"one is gone", list("pods", "4"), list("pods", "3"), list("pods", "1"), 0, list("pods", "3"), 5 * time.Minute},
		{"one is gone and one on its way", list("pods", "4"), list("pods", "2"), list("pods", "1"), 0,
			list("pods", "3"),
			2 * time.Minute},
		{"more is there than was charged", list("pods", "2"), list("pods", "3"), nil, 0, list("pods", "3"),
			5 * time.Minute},
		{"more is gone than was charged", list("pods", "2"), list("pods", "2"), list("pods", "5"), 0, list("pods", "2"),
			5 * time.Minute},
		{"one may still come", list("pods", "4"), list("pods", "3"), nil, 2*time.Minute - 1, list("pods", "4"), 1},
		{"one will never come", list("pods", "4"), list("pods", "3"), nil, 2 * time.Minute, list("pods", "3"),
			5 * time.Minute},
		{"a kind that is not served", list("pods", "4"), nil, nil, 0, corev1.ResourceList{}, 10 * time.Second},
		{"what is not bounded any more", list("pods", "1", "secrets", "4"), list("pods", "1", "secrets", "4"), nil, 0,
			list("pods", "1"), 5 * time.Minute},
	} {
		in := Input{Now: now, Quota: newQuota(hard, row.charged), Counted: row.counted, Released: row.release,
			Raised: now.Add(-row.raised)}
		plan := Decide(in)
		if !equality.Semantic.DeepEqual(plan.Status.Used, row.want) || !equality.Semantic.DeepEqual(plan.Status.Hard,
			hard) {
			t.Errorf("%s: %v, want %v used", row.name, plan.Status, row.want)
		}
		if got := plan.Wake.Sub(now); got != row.wake {
			t.Errorf("%s: again in %v, want %v", row.name, got, row.wake)
		}
	}
	grown := newQuota(hard, list("pods", "3"))
	grown.Spec.Hard = list("pods", "20")
	plan := Decide(Input{Now: now, Quota: grown, Counted: list("pods", "3"), Overdue: now.Add(time.Second)})
	if !equality.Semantic.DeepEqual(plan.Status.Hard, list("pods", "20")) || !plan.Wake.Equal(now.Add(time.Second)) {
		t.Errorf("a quota that grows, and a Pod that is overdue soon: %v", plan)
	}
	plan = Decide(Input{Now: now, Quota: newQuota(list("example.com/unknown", "1"), nil)})
	if len(plan.Status.Used) != 0 || !plan.Wake.Equal(now.Add(5*time.Minute)) {
		t.Errorf("what cannot be counted: %v", plan)
	}
}
