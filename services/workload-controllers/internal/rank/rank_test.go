package rank

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var now = time.Unix(1_700_000_000, 0)

// serving is a Pod that nothing speaks against.
func serving(name string) Pod {
	return Pod{
		Name: name, UID: types.UID(name), Node: "a", Phase: corev1.PodRunning, Ready: true,
		ReadySince: now.Add(-time.Hour), Created: now.Add(-time.Hour), Colocated: 1,
	}
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, last func(*Pod)
	}{
		{"DEP-177 without a node before pending with one", func(p *Pod) {
			p.Node, p.Phase, p.Ready = "",
				corev1.PodPending, false
		}, func(p *Pod) { p.Phase, p.Ready = corev1.PodPending, false }},
		{"DEP-177 pending before running", func(p *Pod) { p.Phase, p.Ready = corev1.PodPending, false },
			func(p *Pod) { p.Ready = false }},
		{"unknown before running", func(p *Pod) { p.Phase = corev1.PodUnknown }, func(*Pod) {}},
		{"DEP-181 not ready before ready", func(p *Pod) { p.Ready = false }, func(*Pod) {}},
		{"DEP-181 not ready of high cost before ready of low cost", func(p *Pod) { p.Ready, p.Cost = false, 100 },
			func(p *Pod) { p.Cost = -100 }},
		{"DEP-178 lower cost before higher", func(p *Pod) { p.Cost = 1 }, func(p *Pod) { p.Cost = 2 }},
		{"DEP-182 negative cost before none", func(p *Pod) { p.Cost = -5 }, func(*Pod) {}},
		{"DEP-178 cost before co-location", func(p *Pod) { p.Cost = -1 }, func(p *Pod) { p.Colocated = 9 }},
		{"DEP-179 on a node with more replicas before one with fewer", func(p *Pod) { p.Colocated = 3 }, func(*Pod) {}},
		{"DEP-179 co-location before readiness", func(p *Pod) { p.Colocated = 2 },
			func(p *Pod) { p.ReadySince = now.Add(-time.Second) }},
		{"DEP-181 more recently ready first", func(p *Pod) { p.UID, p.ReadySince = "2", now.Add(-time.Minute) },
			func(p *Pod) { p.UID = "1" }},
		{"DEP-181 more restarts first", func(p *Pod) { p.Restarts = 3 }, func(p *Pod) { p.Restarts = 1 }},
		{"DEP-181 more recently ready before more often restarted",
			func(p *Pod) { p.ReadySince = now.Add(-time.Minute) },
			func(p *Pod) { p.Restarts = 9 }},
		{"DEP-181 of two that are not ready the more often restarted, whenever they were ready",
			func(p *Pod) { p.Ready, p.Restarts = false, 2 },
			func(p *Pod) { p.Ready, p.Restarts, p.ReadySince = false, 1, now.Add(-time.Second) }},
		{"restarts before age", func(p *Pod) { p.Restarts = 1 }, func(p *Pod) { p.Created = now.Add(-time.Second) }},
		{"DEP-177 pending before unknown", func(p *Pod) { p.Phase = corev1.PodPending },
			func(p *Pod) { p.Phase = corev1.PodUnknown }},
		{"DEP-182 the least cost", func(p *Pod) { p.Cost = -2147483648 }, func(p *Pod) { p.Cost = -2147483647 }},
		{"DEP-182 the highest cost", func(p *Pod) { p.Cost = 2147483646 }, func(p *Pod) { p.Cost = 2147483647 }},
		{"DEP-180 10 s old before 20 s old", func(p *Pod) { p.Created = now.Add(-10 * time.Second) },
			func(p *Pod) { p.Created = now.Add(-20 * time.Second) }},
		{"DEP-180 10 s and 15 s are equal: the UID decides", func(p *Pod) {
			p.UID, p.Created = "1",
				now.Add(-15*time.Second)
		}, func(p *Pod) { p.UID, p.Created = "2", now.Add(-10*time.Second) }},
		{"now and ahead of now are equally new: the UID decides", func(p *Pod) { p.UID, p.Created = "1", now },
			func(p *Pod) { p.UID, p.Created = "2", now.Add(time.Minute) }},
		{"ahead of now is newer than the least age", func(p *Pod) { p.UID, p.Created = "2", now.Add(time.Minute) },
			func(p *Pod) { p.UID, p.Created = "1", now.Add(-1) }},
		{"without a time of creation it is the newest", func(p *Pod) { p.Created = time.Time{} },
			func(p *Pod) { p.Created = now.Add(-time.Second) }},
		{"a Pod from the future is the newest", func(p *Pod) { p.Created = now.Add(time.Minute) },
			func(p *Pod) { p.Created = now.Add(-time.Second) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, last := serving("x"), serving("y")
			c.first(&first)
			c.last(&last)
			for _, pods := range [][]Pod{{first, last}, {last, first}} {
				if got := First(pods, 1, now); got[0] != first {
					t.Errorf("%+v goes before %+v", got[0], first)
				}
			}
		})
	}
}

func TestFirstGivesAsManyAsAreAskedFor(t *testing.T) {
	pods := []Pod{serving("a"), serving("b"), serving("c")}
	pods[1].Cost = -1
	for n, want := range map[int][]string{-1: nil, 0: nil, 1: {"b"}, 3: {"b", "a", "c"}, 9: {"b", "a", "c"}} {
		var names []string
		for _, pod := range First(pods, n, now) {
			names = append(names, pod.Name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("first %d = %v, want %v", n, names, want)
		}
	}
}

// The choice must be the head of the sorted list, and the input must stay as it was.
func TestFirstAgreesWithSorting(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		pods := make([]Pod, 1+random.IntN(60))
		for i := range pods {
			pods[i] = anyPod(random, i)
		}
		before, sorted := slices.Clone(pods), slices.Clone(pods)
		slices.SortFunc(sorted, func(a, b Pod) int { return compare(&a, &b, now) })
		n := random.IntN(len(pods) + 1)
		if got := First(pods, n, now); !slices.Equal(got, sorted[:n]) {
			t.Fatalf("seed %d: first %d of %d differ from the sorted list", seed, n, len(pods))
		}
		if !slices.Equal(pods, before) {
			t.Fatalf("seed %d: the input changed", seed)
		}
	}
}

func anyPod(random *rand.Rand, i int) Pod {
	pod := serving(string(rune('A' + i)))
	pod.Node = []string{"", "a", "b"}[random.IntN(3)]
	pod.Phase = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodUnknown}[random.IntN(3)]
	pod.Ready = random.IntN(2) == 0
	pod.Cost = random.Int32N(3) - 1
	pod.Colocated = random.IntN(3)
	pod.Restarts = random.Int32N(2)
	pod.ReadySince = now.Add(-time.Duration(random.IntN(100)) * time.Second)
	pod.Created = pod.ReadySince.Add(-time.Duration(random.IntN(100)) * time.Second)
	return pod
}

func TestOf(t *testing.T) {
	since := metav1.NewTime(now.Add(-time.Minute))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", UID: "u", CreationTimestamp: since,
			Annotations: map[string]string{corev1.PodDeletionCost: "-7"}},
		Spec: corev1.PodSpec{NodeName: "a"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
				LastTransitionTime: since}},
			ContainerStatuses: []corev1.ContainerStatus{{RestartCount: 1}, {RestartCount: 4}},
		},
	}
	want := Pod{Name: "p", Namespace: "n", UID: "u", Node: "a", Phase: corev1.PodRunning, Ready: true,
		ReadySince: since.Time, Cost: -7, Restarts: 4, Created: since.Time}
	if got := Of(pod); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	if got := Of(pod); got.Ready || !got.ReadySince.IsZero() {
		t.Errorf("not ready: %+v", got)
	}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{RestartCount: 9}}
	if got := Of(pod).Restarts; got != 4 {
		t.Errorf("%d restarts, want 4: what ran before the app containers says nothing of them", got)
	}
	for text, cost := range map[string]int32{"2147483647": 2147483647, "2147483648": 0, "-2147483648": -2147483648,
		"-2147483649": 0, "1.5": 0, "abc": 0, "": 0} { // DEP-182
		pod.Annotations[corev1.PodDeletionCost] = text
		if got := Of(pod).Cost; got != cost {
			t.Errorf("cost of %q = %d, want %d", text, got, cost)
		}
	}
}

func BenchmarkFirst(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 1))
	pods := make([]Pod, 10_000)
	for i := range pods {
		pods[i] = anyPod(random, i)
	}
	for b.Loop() {
		First(pods, 500, now)
	}
}
