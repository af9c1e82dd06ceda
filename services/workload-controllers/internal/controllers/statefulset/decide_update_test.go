package statefulset

import (
	"math"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Each row is a set that came from revision 1, with its Pods, and what one pass does about them.
func TestUpdate(t *testing.T) {
	two := unavailable(intstr.FromInt32(2))
	for _, row := range []struct {
		name  string
		edits []edit
		pods  string
		want  string
	}{
		{"SET-073 SET-075 SET-076 the last first", nil, "0r1 1r1 2r1", "delete web-2 Outdated"},
		{"SET-075 it is going", nil, "0r1 1r1 2t1", ""},
		{"SET-075 it is gone", nil, "0r1 1r1", "create web-2 of 2"},
		{"SET-076 SET-088 it is not ready", nil, "0r1 1r1 2n2", ""},
		{"SET-076 then the one before", nil, "0r1 1r1 2r2", "delete web-1 Outdated"},
		{"SET-076 then the first", nil, "0r1 1r2 2r2", "delete web-0 Outdated"},
		{"SET-073 until all are", nil, "0r2 1r2 2r2", ""},
		{"SET-075 one that was lost meanwhile", nil, "1r1 2r2", "create web-0 of 2"},
		{"SET-089 the template is reverted", []edit{updated(3)}, "0r1 1r1 2n2", ""},
		{"SET-090 and the broken Pod deleted", []edit{updated(3)}, "0r1 1r1", "create web-2 of 3"},
		{"SET-058 the surplus first", []edit{replicas(2)}, "0r1 1r1 2r1", "delete web-2 ScaledDown"},

		{"SET-072 OnDelete", []edit{onDelete}, "0r1 1r1 2r1", ""},
		{"SET-072 OnDelete, one deleted", []edit{onDelete}, "0r1 2r1", "create web-1 of 2"},

		{"SET-078 from the partition on", []edit{replicas(5), partition(3)}, "0r1 1r1 2r1 3r1 4r1",
			"delete web-4 Outdated"},
		{"SET-078 to the partition", []edit{replicas(5), partition(3)}, "0r1 1r1 2r1 3r1 4r2", "delete web-3 Outdated"},
		{"SET-078 SET-079 no further", []edit{replicas(5), partition(3)}, "0r1 1r1 2r1 3r2 4r2", ""},
		{"SET-079 below it comes from the old", []edit{replicas(5), partition(3)}, "0r1 2r1 3r2 4r2",
			"create web-1 of 1"},
		{"SET-079 just below it", []edit{replicas(5), partition(3)}, "0r1 1r1 3r2 4r2", "create web-2 of 1"},
		{"SET-079 at it from the new", []edit{replicas(5), partition(3)}, "0r1 1r1 2r1 4r2", "create web-3 of 2"},
		{"SET-080 beyond all", []edit{partition(4)}, "0r1 1r1 2r1", ""},
		{"SET-081 behind the last", []edit{partition(3)}, "0r1 1r1 2r1", ""},
		{"SET-081 at the last", []edit{partition(2)}, "0r1 1r1 2r1", "delete web-2 Outdated"},
		{"SET-082 lowered", []edit{partition(0)}, "0r1 1r1 2r2", "delete web-1 Outdated"},
		{"SET-081 by ordinal, none", []edit{start(5), partition(8)}, "5r1 6r1 7r1", ""},
		{"SET-081 by ordinal, the last", []edit{start(5), partition(7)}, "5r1 6r1 7r1", "delete web-7 Outdated"},
		{"SET-081 by ordinal, all", []edit{start(5), partition(3)}, "5r1 6r2 7r2", "delete web-5 Outdated"},

		{"two at once", []edit{replicas(5), two}, "0r1 1r1 2r1 3r1 4r1",
			"delete web-4 Outdated, delete web-3 Outdated"},
		{"SET-085 SET-086 one of two is down, in order", []edit{replicas(5), two}, "0u1 1r1 2r1 3r1 4r1", ""},
		{"SET-085 SET-086 one of two is down", []edit{parallel, replicas(5), two, start(3)}, "3u2 4r1 5r1 6r1 7r1",
			"delete web-7 Outdated"},
		{"SET-085 two of two are down", []edit{parallel, replicas(5), two}, "0u2 1u2 2r1 3r1 4r1", ""},
		{"one that is going and one that waits", []edit{parallel, replicas(5), two}, "0r1 1r1 2r1 3t1 4n2", ""},
		{"SET-069 one by one", []edit{parallel}, "0r1 1r1 2r1", "delete web-2 Outdated"},
		{"SET-069 waits", []edit{parallel}, "0r1 1r1 2n2", ""},
		{"SET-069 one that is down anyway costs nothing", []edit{parallel}, "0u1 1r1 2r1", "delete web-0 Outdated"},
		{"SET-069 nor one that never was up", []edit{parallel, updated(3)}, "0r1 1r1 2n2", "delete web-2 Outdated"},
		{"SET-069 but one by one", []edit{parallel}, "0u1 1u1 2u1", "delete web-2 Outdated"},
		{"a surplus Pod does not count", []edit{parallel, replicas(2)}, "0r1 1r1 2u1",
			"delete web-2 ScaledDown, delete web-1 Outdated"},
		{"one that has ended is replaced once", []edit{parallel}, "0r1 1r1 2f1", "delete web-2 Ended"},
	} {
		t.Run(row.name, func(t *testing.T) {
			set := newSet(append([]edit{updated(2)}, row.edits...)...)
			if got := effects(Decide(input(set, row.pods, ""))); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// SET-085: ordinals without a Pod count as unavailable, however many there are.
func TestUpdateOfTheLargestSet(t *testing.T) {
	for _, row := range []struct {
		bound      intstr.IntOrString
		pods, want string
	}{
		{intstr.FromInt32(2), "1r1 2147483644r1 2147483646r1", ""},
		{intstr.FromString("50%"), "1r1 2147483644r1 2147483646r1", ""},
		{intstr.FromString("100%"), "1r1 2147483644r1 2147483646r1", "web-2147483646 web-2147483644"},
		{intstr.FromInt32(1<<31 - 4), "1r1 2147483644r1 2147483646r1", ""}, // as many as are missing
		{intstr.FromInt32(1<<31 - 3), "1r1 2147483644r1 2147483646r1", "web-2147483646"},
		{intstr.FromInt32(2), "1r1 2147483644u1", ""}, // two above it are missing
		{intstr.FromInt32(3), "1r1 2147483644u1", "web-2147483644"},
	} {
		set := newSet(updated(2), parallel, replicas(math.MaxInt32), partition(3), unavailable(row.bound))
		var deleted []string
		for _, d := range Decide(input(set, row.pods, "")).Delete {
			deleted = append(deleted, d.Pod.Name)
		}
		if got := strings.Join(deleted, " "); got != row.want {
			t.Errorf("%s may be unavailable of %s: deletes %q, want %q", row.bound.String(), row.pods, got, row.want)
		}
	}
}

// SET-027, SET-077: the next Pod waits until the updated one has been ready for ten seconds.
func TestUpdateWaitsForAvailability(t *testing.T) {
	for age, want := range map[time.Duration]string{9 * time.Second: "", 10 * time.Second: "delete web-1 Outdated"} {
		in := input(newSet(updated(2), minReady(10)), "0r1 1r1 2r2", "")
		in.Pods[2].Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-age))
		if got := effects(Decide(in)); got != want {
			t.Errorf("%v after it became ready: %q, want %q", age, got, want)
		}
	}
}

// SET-084
func TestMaxUnavailableRoundsUp(t *testing.T) {
	for _, row := range []struct {
		bound    intstr.IntOrString
		replicas int32
		want     int
	}{
		{intstr.FromString("10%"), 15, 2}, {intstr.FromString("10%"), 3, 1}, {intstr.FromString("10%"), 10, 1},
		{intstr.FromString("10%"), 11, 2}, {intstr.FromString("100%"), 4, 4}, {intstr.FromString("10%"), 0, 1},
		{intstr.FromInt32(5), 3, 5},
	} {
		w := &work{set: newSet(replicas(row.replicas), unavailable(row.bound))}
		if got := w.maxUnavailable(); got != row.want {
			t.Errorf("%v of %d is %d, want %d", row.bound.String(), row.replicas, got, row.want)
		}
	}
}

// The annotation lets an update replace a Pod of an outdated revision that never was ready, and no other.
func TestRecover(t *testing.T) {
	for _, row := range []struct {
		name  string
		edits []edit
		pods  string
		want  string
	}{
		{"never ready", nil, "0r1 1r1 2n2", "delete web-2 NeverReady"},
		{"never ready and pending", nil, "0r1 1r1 2p2", "delete web-2 NeverReady"},
		{"has been ready", nil, "0r1 1r1 2u2", ""},
		{"is going", nil, "0r1 1r1 2t2", ""},
		{"of the present revision", []edit{updated(2)}, "0r1 1r1 2n2", ""},
		{"below the partition", []edit{partition(3)}, "0r1 1r1 2n2", ""},
		{"at the partition", []edit{partition(2)}, "0r1 1r1 2n2", "delete web-2 NeverReady"},
		{"the first of all", nil, "0n1", "delete web-0 NeverReady"},
		{"one after the other", nil, "0n1 1n1", "delete web-0 NeverReady"},
		{"surplus", []edit{replicas(2)}, "0r1 1r1 2n2", "delete web-2 ScaledDown"},
		{"OnDelete", []edit{onDelete}, "0r1 1r1 2n2", ""},
		{"another value", []edit{func(s *appsv1.StatefulSet) { s.Annotations[RecoverAnnotation] = "yes" }},
			"0r1 1r1 2n2", ""},
		{"not asked for", []edit{func(s *appsv1.StatefulSet) { s.Annotations = nil }}, "0r1 1r1 2n2", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			set := newSet(append([]edit{updated(3), recovering}, row.edits...)...)
			if got := effects(Decide(input(set, row.pods, ""))); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestNeverReady(t *testing.T) {
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	at := func(seconds int) *metav1.Time {
		return &metav1.Time{Time: now.Add(time.Duration(seconds) * time.Second)}
	}
	for _, row := range []struct {
		name               string
		started            *metav1.Time
		ready              corev1.ConditionStatus
		since              *metav1.Time
		initialized        corev1.ConditionStatus
		begun              *metav1.Time
		want, noConditions bool
	}{
		{name: "no node yet", noConditions: true, want: true},
		{"since its start", at(0), no, at(0), yes, at(0), true, false},
		{"its node was slow", at(0), no, at(10), yes, at(10), true, false},
		{"its node was too slow to tell", at(0), no, at(11), yes, at(11), false, false},
		{"before its containers could begin", at(0), no, at(1), yes, at(5), true, false},
		{"after its containers began", at(0), no, at(2), yes, at(1), false, false},
		{"its init containers have not ended", at(0), no, at(1), no, at(1), true, false},
		{"it is", at(0), yes, at(0), yes, at(0), false, false},
		{"since an unknown time", nil, no, at(0), yes, at(0), false, false},
		{"of unknown containers", at(0), no, at(0), "", nil, false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			pod := &corev1.Pod{Status: corev1.PodStatus{StartTime: row.started}}
			add := func(kind corev1.PodConditionType, status corev1.ConditionStatus, since *metav1.Time) {
				if since != nil && !row.noConditions {
					pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind,
						Status:             status,
						LastTransitionTime: *since})
				}
			}
			add(corev1.PodReady, row.ready, row.since)
			add(corev1.PodInitialized, row.initialized, row.begun)
			if got := neverReady(pod); got != row.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
