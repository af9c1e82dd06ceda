package serviceproxy

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStand(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	before := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, row := range []struct {
		name string
		in   progress
		want standing
	}{
		{"nothing in the kernel yet", progress{waiting: before(time.Second)}, standing{false, true, time.Time{}}},
		{"rules of an agent before", progress{carries: true, waiting: before(60 * time.Second)},
			standing{true, true, time.Time{}}},
		{"rules of an agent before, too long", progress{carries: true, waiting: before(60*time.Second + 1)},
			standing{false, true, time.Time{}}},
		{"nothing to change for hours", progress{carries: true, updated: before(5 * time.Hour)},
			standing{true, true, now}},
		{"a change is on its way", progress{carries: true, updated: before(time.Hour),
			waiting: before(60 * time.Second)}, standing{true, true, now}},
		{"a change does not get there", progress{carries: true, updated: before(time.Hour),
			waiting: before(60*time.Second + 1)}, standing{false, true, before(time.Hour)}},
		{"the node goes", progress{carries: true, updated: before(time.Hour), leaving: true},
			standing{true, false, now}},
	} {
		if got := stand(row.in, now); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}

func TestLeaving(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"a node": {func(*corev1.Node) {}, false},
		"one that is deleted": {func(n *corev1.Node) {
			n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}, true},
		"one that the autoscaler takes away": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "other"}, {Key: "ToBeDeletedByClusterAutoscaler", Value: "1767323045",
				Effect: corev1.TaintEffectNoSchedule}}
		}, true},
		"one that it considers": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "DeletionCandidateOfClusterAutoscaler"}}
		}, false},
		"one that is cordoned": {func(n *corev1.Node) {
			n.Spec.Unschedulable = true
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable}}
		}, false},
	} {
		n := &corev1.Node{}
		row.change(n)
		if got := Leaving(n); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
