package statefulset

import (
	"math"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Each row is a set with its Pods, and what one pass does about them.
func TestScale(t *testing.T) {
	for _, row := range []struct {
		name  string
		edits []edit
		pods  string
		want  string
	}{
		{"SET-030 SET-057 SET-061 the first", nil, "", "create web-0 of 1"},
		{"SET-059 SET-061 the first is pending", nil, "0p1", ""},
		{"SET-059 SET-061 the first runs and is not ready", nil, "0n1", ""},
		{"SET-057 SET-061 the first is ready", nil, "0r1", "create web-1 of 1"},
		{"SET-061 the second is not ready", nil, "0r1 1n1", ""},
		{"SET-061 the second is ready", nil, "0r1 1r1", "create web-2 of 1"},
		{"SET-062 the first relapses", nil, "0u1 1r1", ""},
		{"SET-062 the first is back", nil, "0r1 1r1", "create web-2 of 1"},
		{"SET-067 all are there", nil, "0r1 1r1 2r1", ""},
		{"SET-003 SET-066 the first is being deleted", nil, "0t1 1r1 2r1", ""},
		{"SET-002 SET-003 the first is gone", nil, "1r1 2r1", "create web-0 of 1"},
		{"SET-059 a gap above one that is not ready", nil, "0u1 2r1", ""},

		{"SET-033 from five", []edit{start(5)}, "", "create web-5 of 1"},
		{"SET-033 to seven", []edit{start(5)}, "5r1 6r1", "create web-7 of 1"},
		{"SET-033 not to eight", []edit{start(5)}, "5r1 6r1 7r1", ""},
		{"SET-035 the range moves, the missing first", []edit{start(2)}, "0r1 1r1 2r1", "create web-3 of 1"},
		{"SET-035 SET-103 then the surplus", []edit{start(2)}, "0r1 1r1 2r1 3r1 4r1", "delete web-1 ScaledDown"},
		{"SET-035 SET-058 until none is left", []edit{start(2)}, "0r1 2r1 3r1 4r1", "delete web-0 ScaledDown"},

		{"SET-058 SET-063 SET-103 down to one", []edit{replicas(1)}, "0r1 1r1 2r1", "delete web-2 ScaledDown"},
		{"SET-060 SET-063 the last is going", []edit{replicas(1)}, "0r1 1r1 2t1", ""},
		{"SET-060 SET-063 the last has gone", []edit{replicas(1)}, "0r1 1r1", "delete web-1 ScaledDown"},
		{"SET-059 SET-064 the first relapses", []edit{replicas(1)}, "0u1 1r1", ""},
		{"SET-059 one between is not ready", []edit{replicas(1)}, "0r1 1u1 2r1", ""},
		{"SET-059 one between has failed", []edit{replicas(1)}, "0r1 1f1 2r1", "delete web-2 ScaledDown"},
		{"SET-059 only the last is not ready", []edit{replicas(1)}, "0r1 1r1 2u1", "delete web-2 ScaledDown"},
		{"SET-022 SET-058 down to none", []edit{replicas(0)}, "0r1 1r1", "delete web-1 ScaledDown"},
		{"SET-022 down to none, the first", []edit{replicas(0)}, "0r1", "delete web-0 ScaledDown"},
		{"SET-058 by number, not by text", []edit{replicas(1)}, "0r1 9r1 10r1", "delete web-10 ScaledDown"},

		{"SET-065 failed", nil, "0r1 1f1 2r1", "delete web-1 Ended"},
		{"SET-065 succeeded", nil, "0r1 1s1 2r1", "delete web-1 Ended"},
		{"SET-065 failed and going", nil, "0r1 1d1 2r1", ""},
		{"SET-065 failed, above one that is not ready", nil, "0u1 1f1", ""},
		{"SET-065 failed and surplus", []edit{replicas(1)}, "0r1 1f1", "delete web-1 ScaledDown"},

		{"SET-033 the last ordinal that the API can ask for", []edit{start(math.MaxInt32), replicas(2)},
			"2147483647r1 2147483648r1", ""},
		{"SET-059 the first of the most", []edit{replicas(math.MaxInt32)}, "1r1", "create web-0 of 1"},
		{"SET-058 down from the most", []edit{replicas(0)}, "0r1 2147483646r1", "delete web-2147483646 ScaledDown"},

		{"SET-068 SET-070 all at once", []edit{parallel}, "",
			"create web-0 of 1, create web-1 of 1, create web-2 of 1"},
		{"SET-068 none of them ready", []edit{parallel}, "0p1 1n1", "create web-2 of 1"},
		{"SET-070 beside one that is going", []edit{parallel}, "0t1 2r1", "create web-1 of 1"},
		{"SET-068 SET-103 down at once", []edit{parallel, replicas(1)}, "0u1 1p1 2r1",
			"delete web-2 ScaledDown, delete web-1 ScaledDown"},
		{"SET-068 down while one is going", []edit{parallel, replicas(0)}, "0r1 1r1 2t1",
			"delete web-1 ScaledDown, delete web-0 ScaledDown"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := effects(Decide(input(newSet(row.edits...), row.pods, ""))); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// SET-028: the second Pod comes when the first has been ready for minReadySeconds. SET-025, SET-026: until then it is
// ready and not available; without the field it is available at once.
func TestMinReady(t *testing.T) {
	for _, row := range []struct {
		name      string
		seconds   int32
		ready     time.Duration
		want      string
		available int32
		wake      time.Time
	}{
		{"none asked for", 0, 0, "create web-1 of 1", 1, time.Time{}},
		{"not yet", 10, 9 * time.Second, "", 0, now.Add(time.Second)},
		{"just", 10, 10 * time.Second, "create web-1 of 1", 1, time.Time{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := input(newSet(minReady(row.seconds)), "0r1", "")
			in.Pods[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-row.ready))
			plan := Decide(in)
			if got := effects(plan); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
			if s := plan.Status; s.ReadyReplicas != 1 || s.AvailableReplicas != row.available ||
				!plan.Wake.Equal(row.wake) {
				t.Errorf("%d ready, %d available, wake %v", s.ReadyReplicas, s.AvailableReplicas, plan.Wake)
			}
		})
	}
}

// SET-065: a Pod that fails as soon as it is made is not replaced at once, but after two seconds.
func TestFailingPodsArePaced(t *testing.T) {
	for _, row := range []struct {
		age  time.Duration
		want string
		wake time.Time
	}{
		{time.Second, "", now.Add(time.Second)},
		{2 * time.Second, "delete web-0 Ended", time.Time{}},
	} {
		in := input(newSet(), "0f1", "")
		in.Pods[0].CreationTimestamp = metav1.NewTime(now.Add(-row.age))
		if plan := Decide(in); effects(plan) != row.want || !plan.Wake.Equal(row.wake) {
			t.Errorf("after %v: %q, wake %v", row.age, effects(plan), plan.Wake)
		}
	}
}

// One pass makes or ends at most 500 Pods.
func TestBurst(t *testing.T) {
	if made := len(Decide(input(newSet(parallel, replicas(501)), "", "")).Create); made != 500 {
		t.Errorf("%d Pods are made at once", made)
	}
	in := input(newSet(parallel, replicas(0)), "", "")
	for ordinal := range 501 {
		pod := podOf("0r1")
		pod.Name = podName(in.Set, ordinal)
		in.Pods = append(in.Pods, pod)
	}
	if ended := len(Decide(in).Delete); ended != 500 {
		t.Errorf("%d Pods are ended at once", ended)
	}
}

// A Pod counts by its name and its labels: what has no controller is adopted, what no longer fits is released, and
// nothing else happens meanwhile.
func TestOwnership(t *testing.T) {
	orphan := func(name string) *corev1.Pod {
		pod := podOf("1r1")
		pod.Name, pod.OwnerReferences = name, nil
		return pod
	}
	relabelled := podOf("0r1")
	relabelled.Labels["app"] = "debug"
	named := podOf("0r1")
	named.Name = "web-00"
	ended := podOf("0t1")
	ended.Labels["app"] = "debug"
	deleting := func(s *appsv1.StatefulSet) { s.DeletionTimestamp = &metav1.Time{Time: now} }
	for _, row := range []struct {
		name    string
		edits   []edit
		pods    []*corev1.Pod
		orphans []*corev1.Pod
		want    string
	}{
		{"an orphan of a name of the set", nil, nil, []*corev1.Pod{orphan("web-1")}, "adopt web-1"},
		{"an orphan of an ordinal beyond", nil, nil, []*corev1.Pod{orphan("web-7")}, "adopt web-7"},
		{"orphans of other names", nil, nil, []*corev1.Pod{orphan("web-01"), orphan("web-"), orphan("web-x"),
			orphan("web"),
			orphan("webb-1"), orphan("web--1"), orphan("web-99999999999")}, "create web-0 of 1"},
		{"other labels", nil, []*corev1.Pod{relabelled}, nil, "release web-0"},
		{"another name", nil, []*corev1.Pod{named}, nil, "release web-00"},
		{"other labels and going", nil, []*corev1.Pod{ended}, nil, "create web-0 of 1"},
		{"of a set that goes", []edit{deleting}, []*corev1.Pod{relabelled}, []*corev1.Pod{orphan("web-1")}, ""},
		{"a set that goes makes none", []edit{deleting}, nil, nil, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := input(newSet(row.edits...), "", "")
			in.Pods, in.Orphans = row.pods, row.orphans
			if got := effects(Decide(in)); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}
