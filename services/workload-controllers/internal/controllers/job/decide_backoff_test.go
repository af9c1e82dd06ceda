package job

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JOB-064: 10 s after the first failure in a row, doubled by each further one up to six minutes.
func TestRetryAt(t *testing.T) {
	ago := func(seconds int, failed bool) Ended {
		return Ended{At: start.Add(-time.Duration(seconds) * time.Second), Failed: failed}
	}
	var failures []Ended
	for n, want := range []int{10, 20, 40, 80, 160, 320, 360, 360} {
		failures = append(failures, ago(100-n, true))
		if got := retryAt(failures); !got.Equal(failures[n].At.Add(time.Duration(want) * time.Second)) {
			t.Errorf("after %d failures the next try is %v after the last, want %d s", n+1, got.Sub(failures[n].At),
				want)
		}
	}
	for name, c := range map[string]struct {
		ended []Ended
		want  time.Duration
	}{
		"a success in between":       {[]Ended{ago(50, true), ago(40, true), ago(30, false), ago(20, true)}, -10},
		"a success at the end":       {[]Ended{ago(50, true), ago(40, false)}, 0},
		"a success at the same time": {[]Ended{ago(40, true), ago(40, false)}, 0},
		"in any order":               {[]Ended{ago(20, true), ago(50, false), ago(40, true)}, 0 - 20 + 20},
		"nothing":                    {nil, 0},
	} {
		var want time.Time
		if c.want != 0 || name == "in any order" {
			want = start.Add(c.want * time.Second)
		}
		if got := retryAt(c.ended); !got.Equal(want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// What ended by itself is told by the containers or, if they say nothing, by what comes next to it.
func TestEndings(t *testing.T) {
	unready := newPod("a Failed")
	unready.Status.ContainerStatuses = nil
	unready.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse,
		LastTransitionTime: metav1.NewTime(start.Add(-3 * time.Second))}}
	silent := newPod("a Failed")
	silent.Status.ContainerStatuses = nil
	late := newPod("a Failed ended=9")
	late.Status.InitContainerStatuses = newPod("b Failed ended=4").Status.ContainerStatuses
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want []Ended
	}{
		"failed":             {newPod("a Failed ended=7"), []Ended{{start.Add(-7 * time.Second), true}}},
		"succeeded":          {newPod("a Succeeded ended=7"), []Ended{{start.Add(-7 * time.Second), false}}},
		"counted":            {newPod("a Failed ended=7 untracked"), []Ended{{start.Add(-7 * time.Second), true}}},
		"the last container": {late, []Ended{{start.Add(-4 * time.Second), true}}},
		"without containers": {unready, []Ended{{start.Add(-3 * time.Second), true}}},
		"with nothing":       {silent, []Ended{{start.Add(-time.Hour), true}}},
		"running":            {newPod("a Running"), nil},
		"deleted":            {newPod("a Failed deleting"), nil},
	} {
		got := endings([]*corev1.Pod{c.pod})
		if len(got) != len(c.want) || len(got) > 0 && (!got[0].At.Equal(c.want[0].At) ||
			got[0].Failed != c.want[0].Failed) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
