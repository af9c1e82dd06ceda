package health

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestJudge(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	before := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, row := range []struct {
		name string
		in   Progress
		want verdict
	}{
		{"nothing in the kernel yet", Progress{PendingSince: before(time.Second)}, verdict{false, true, time.Time{}}},
		{"rules of an agent before", Progress{Programmed: true, PendingSince: before(60 * time.Second)},
			verdict{true, true, time.Time{}}},
		{"rules of an agent before, too long", Progress{Programmed: true, PendingSince: before(60*time.Second + 1)},
			verdict{false, true, time.Time{}}},
		{"nothing to change for hours", Progress{Programmed: true, Updated: before(5 * time.Hour)},
			verdict{true, true, now}},
		{"a change is on its way", Progress{Programmed: true, Updated: before(time.Hour),
			PendingSince: before(60 * time.Second)}, verdict{true, true, now}},
		{"a change does not get there", Progress{Programmed: true, Updated: before(time.Hour),
			PendingSince: before(60*time.Second + 1)}, verdict{false, true, before(time.Hour)}},
		{"the node goes", Progress{Programmed: true, Updated: before(time.Hour), Leaving: true},
			verdict{true, false, now}},
	} {
		if got := judge(row.in, now); got != row.want {
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
