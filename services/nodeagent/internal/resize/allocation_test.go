package resize

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/services/nodeagent/internal/sizes"
)

// DEP-214: a Pod keeps its allocated size until another one is granted, whichever sizes it asks for meanwhile, and
// a resize is pending since it was first deferred.
func TestAllocation(t *testing.T) {
	a := Restore(pod("a", "1", "1Gi"), nil)
	expect := func(when string, allocated, desired int64, pending string, since int64) {
		t.Helper()
		got, at := "", int64(0)
		if a.Pending != nil {
			got, at = a.Pending.Reason+" "+a.Pending.Message, a.Pending.Since.Unix()
		}
		if milli(a.Allocated) != allocated || milli(a.Desired) != desired || got != pending || at != since {
			t.Errorf("%s: allocated %d, desired %d, pending %q since %d", when, milli(a.Allocated), milli(a.Desired),
				got, at)
		}
	}
	answer := func(reason, message string, now int64) bool {
		return a.Answer(Verdict{reason, message}, time.Unix(now, 0))
	}
	if a.Accept(pod("a", "1", "1Gi")) {
		t.Error("the same size is to be decided upon")
	}
	expect("at first", 1000, 1000, "", 0)
	larger := pod("a", "2", "1Gi")
	larger.Labels = map[string]string{"new": ""}
	if !a.Accept(larger) || a.Allocated.Labels == nil || !a.Candidate().PendingSince.IsZero() {
		t.Error("another size is not to be decided upon, or the rest of the version is lost")
	}
	expect("asked for more", 1000, 2000, "", 0)
	if !answer("Deferred", "m", 10) || answer("Deferred", "m", 20) || !answer("Infeasible", "n", 30) {
		t.Error("what is no news is told, or news are not")
	}
	expect("deferred", 1000, 2000, "Infeasible n", 10)
	if a.Accept(pod("a", "3", "1Gi")); a.Candidate().PendingSince.Unix() != 10 {
		t.Error("who asks for something else waits anew")
	}
	expect("asked for even more", 1000, 3000, "Infeasible n", 10)
	if !answer("", "", 40) {
		t.Error("a grant is no news")
	}
	expect("granted", 3000, 3000, "", 0)
	a.Accept(pod("a", "4", "1Gi"))
	answer("Deferred", "m", 50)
	a.Accept(pod("a", "3", "1Gi"))
	expect("withdrawn", 3000, 3000, "", 0)
}

// DEP-214: an earlier agent's record takes precedence over the API's status, and that over the Pod's desired size.
func TestRestore(t *testing.T) {
	noted := sizes.Of(pod("a", "1", "1Gi"))
	started := pod("a", "3", "1Gi")
	started.Generation, started.Status.StartTime = 2, &metav1.Time{Time: time.Unix(1, 0)}
	started.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: amounts("2", "1Gi"),
		Resources: &corev1.ResourceRequirements{Requests: amounts("2", "1Gi")}}}
	unchanged := started.DeepCopy()
	unchanged.Generation = 1
	pending := started.DeepCopy()
	pending.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: "Deferred", Message: "m",
		LastTransitionTime: metav1.NewTime(time.Unix(7, 0))}}
	for name, r := range map[string]struct {
		pod     *corev1.Pod
		noted   *sizes.Size
		want    int64
		pending bool
	}{
		"noted":         {started, &noted, 1000, false},
		"reported":      {started, nil, 2000, false},
		"never resized": {unchanged, nil, 3000, false},
		"pending":       {pending, &noted, 1000, true},
	} {
		a := Restore(r.pod, r.noted)
		if milli(a.Allocated) != r.want || milli(a.Desired) != 3000 {
			t.Errorf("%s: allocated %d, want %d; desired %d", name, milli(a.Allocated), r.want, milli(a.Desired))
		}
		if want := (Pending{Verdict{"Deferred", "m"}, time.Unix(7, 0)}); (a.Pending != nil) != r.pending ||
			r.pending && *a.Pending != want {
			t.Errorf("%s: pending %+v", name, a.Pending)
		}
	}
}
