package componentstatus

import (
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

// lease is one of 9 s that was renewed that long ago.
func lease(name, holder string, renewed time.Duration, edits ...func(*coordinationv1.LeaseSpec)) coordinationv1.Lease {
	lasts, at := int32(9), metav1.NewMicroTime(now.Add(-renewed))
	l := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: &lasts, RenewTime: &at}}
	for _, edit := range edits {
		edit(&l.Spec)
	}
	return l
}

func TestDecide(t *testing.T) {
	const none, noScheduler = "workload-controllers holds no Lease: there is none named workload-controllers.*",
		"scheduler holds no Lease: there is none named scheduler.*"
	const stale = "scheduler holds no Lease: the last one, scheduler.a, was renewed at 2026-01-10T11:59:50Z"
	controllers := lease("workload-controllers.job", "host", 0)
	for name, row := range map[string]struct {
		store                        error
		leases                       []coordinationv1.Lease
		manager, storeSays, schedule string // what is the matter
	}{
		"all is well": {nil, []coordinationv1.Lease{controllers, lease("scheduler.default-scheduler", "host", 0)},
			"", "", ""},
		"nobody is there yet": {nil, nil, none, "", noScheduler},
		"the store is down": {errors.New("no answer"), []coordinationv1.Lease{controllers,
			lease("scheduler.a", "host", 0)}, "", "no answer", ""},
		"Leases of others": {nil, []coordinationv1.Lease{lease("scheduler", "host", 0),
			lease("schedulers.a", "host", 0), lease("podgc.workload-controllers.job", "host", 0)}, none, "",
			noScheduler},
		"in the last moment": {nil, []coordinationv1.Lease{controllers, lease("scheduler.a", "host", 9*time.Second)},
			"", "", ""},
		"it has run out": {nil, []coordinationv1.Lease{controllers, lease("scheduler.a", "host", 10*time.Second)},
			"", "", stale},
		"it has been given up": {nil, []coordinationv1.Lease{controllers, lease("scheduler.a", "", 10*time.Second)},
			"", "", stale},
		"one of several": {nil, []coordinationv1.Lease{controllers, lease("scheduler.a", "host", time.Hour),
			lease("scheduler.b", "host", time.Second)}, "", "", ""},
		"the last of several": {nil, []coordinationv1.Lease{controllers, lease("scheduler.b", "host", time.Hour),
			lease("scheduler.a", "host", 10*time.Second), lease("scheduler.c", "host", time.Minute)}, "", "", stale},
		"a Lease that lasts longer": {nil, []coordinationv1.Lease{controllers, lease("scheduler.a", "host",
			10*time.Second, func(l *coordinationv1.LeaseSpec) { *l.LeaseDurationSeconds = 36 })}, "", "", ""},
		"a Lease without an end": {nil, []coordinationv1.Lease{controllers, lease("scheduler.a", "host",
			10*time.Second, func(l *coordinationv1.LeaseSpec) { l.LeaseDurationSeconds = nil })}, "", "", stale},
		"a Lease without a holder": {nil, []coordinationv1.Lease{controllers, lease("scheduler.a", "",
			10*time.Second, func(l *coordinationv1.LeaseSpec) { l.HolderIdentity = nil })}, "", "", stale},
		"a Lease that was never renewed": {nil, []coordinationv1.Lease{controllers, lease("scheduler.a", "host", 0,
			func(l *coordinationv1.LeaseSpec) { l.RenewTime = nil })}, "", "", noScheduler},
	} {
		want := []corev1.ComponentStatus{expected("controller-manager", row.manager),
			expected("etcd-0", row.storeSays), expected("scheduler", row.schedule)}
		got := Decide(Input{Now: now, Store: row.store, Leases: row.leases})
		if !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// expected is a component with what is the matter with it.
func expected(name, matter string) corev1.ComponentStatus {
	condition := corev1.ComponentCondition{Type: "Healthy", Status: "True", Message: "ok"}
	if matter != "" {
		condition = corev1.ComponentCondition{Type: "Healthy", Status: "False", Error: matter}
	}
	return corev1.ComponentStatus{ObjectMeta: metav1.ObjectMeta{Name: name},
		Conditions: []corev1.ComponentCondition{condition}}
}

func TestStatusCell(t *testing.T) {
	for status, want := range map[corev1.ConditionStatus]string{"True": "Healthy", "False": "Unhealthy",
		"Unknown": "Unhealthy", "": "Unknown"} {
		c := &corev1.ComponentStatus{Conditions: []corev1.ComponentCondition{{Type: "Other", Status: "True"}}}
		if status != "" {
			c.Conditions = append(c.Conditions, corev1.ComponentCondition{Type: "Healthy", Status: status})
		}
		if got := statusCell(c); got != want {
			t.Errorf("%q: %v, want %s", status, got, want)
		}
	}
}
