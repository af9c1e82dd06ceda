package resize

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory)}
}

func pod(uid, cpu, memory string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: amounts(cpu, memory)}}}},
		Status: corev1.PodStatus{QOSClass: corev1.PodQOSBurstable}}
}

func candidate(uid, allocated, desired string, edit ...func(*Candidate)) Candidate {
	c := Candidate{Allocated: pod(uid, allocated, "1Gi"), Desired: pod(uid, desired, "1Gi"),
		PendingSince: time.Unix(100, 0)}
	for _, e := range edit {
		e(&c)
	}
	return c
}

func priorityOf(p int32) func(*Candidate) {
	return func(c *Candidate) { c.Allocated.Spec.Priority = &p }
}

func classOf(class corev1.PodQOSClass) func(*Candidate) {
	return func(c *Candidate) { c.Allocated.Status.QOSClass = class }
}

func since(seconds int64) func(*Candidate) {
	return func(c *Candidate) { c.PendingSince = time.Unix(seconds, 0) }
}

func memory(allocated, desired string) func(*Candidate) {
	return func(c *Candidate) {
		c.Allocated.Spec.Containers[0].Resources.Requests["memory"] = resource.MustParse(allocated)
		c.Desired.Spec.Containers[0].Resources.Requests["memory"] = resource.MustParse(desired)
	}
}

// DEP-214: on a node of 4 CPUs and 8 GiB, of which other Pods request 1 CPU and 1 GiB.
func TestDecide(t *testing.T) {
	const deferred, infeasible = "Deferred: Node didn't have enough resource: ",
		"Infeasible: Node didn't have enough capacity: "
	rows := []struct {
		name       string
		candidates []Candidate
		want       map[types.UID]string // of those that are not granted
	}{
		{"all that is left", []Candidate{candidate("a", "1", "3")}, nil},
		{"a thousandth more", []Candidate{candidate("a", "1", "3001m")}, map[types.UID]string{
			"a": deferred + "cpu, requested: 3001, used: 1000, capacity: 4000"}},
		{"all that the node has", []Candidate{candidate("a", "1", "4")}, map[types.UID]string{
			"a": deferred + "cpu, requested: 4000, used: 1000, capacity: 4000"}},
		{"a thousandth more than the node has", []Candidate{candidate("a", "1", "4001m")}, map[types.UID]string{
			"a": infeasible + "cpu, requested: 4001, capacity: 4000"}},
		{"all memory that is left", []Candidate{candidate("a", "1", "1", memory("1Gi", "7Gi"))}, nil},
		{"a byte more", []Candidate{candidate("a", "1", "1", memory("1Gi", "7516192769"))}, map[types.UID]string{
			"a": deferred + "memory, requested: 7516192769, used: 1073741824, capacity: 8589934592"}},
		{"less, of a Pod that takes more than there is", []Candidate{candidate("a", "9", "8")}, nil},
		{"less of one and more of the other", []Candidate{candidate("a", "9", "8", memory("1Gi", "2Gi"))}, nil},
		{"room that another one gives", []Candidate{candidate("a", "1", "2"), candidate("b", "2", "1")}, nil},
		{"the higher priority first", []Candidate{candidate("a", "1", "2", priorityOf(1)),
			candidate("b", "1", "2", priorityOf(2))}, map[types.UID]string{
			"a": deferred + "cpu, requested: 2000, used: 3000, capacity: 4000"}},
		{"then the better class", []Candidate{candidate("a", "1", "2"),
			candidate("b", "1", "2", classOf(corev1.PodQOSGuaranteed))}, map[types.UID]string{
			"a": deferred + "cpu, requested: 2000, used: 3000, capacity: 4000"}},
		{"priority before class", []Candidate{candidate("a", "1", "2", priorityOf(1)),
			candidate("b", "1", "2", classOf(corev1.PodQOSGuaranteed))}, map[types.UID]string{
			"b": deferred + "cpu, requested: 2000, used: 3000, capacity: 4000"}},
		{"then who waits longest", []Candidate{candidate("a", "1", "2", since(101)),
			candidate("b", "1", "2", since(100))}, map[types.UID]string{
			"a": deferred + "cpu, requested: 2000, used: 3000, capacity: 4000"}},
		{"who has just asked comes last",
			[]Candidate{candidate("a", "1", "2", func(c *Candidate) { c.PendingSince = time.Time{} }),
				candidate("b", "1", "2")}, map[types.UID]string{
				"a": deferred + "cpu, requested: 2000, used: 3000, capacity: 4000"}},
		{"who cannot be served keeps nobody", []Candidate{candidate("a", "1", "9", priorityOf(9)),
			candidate("b", "1", "2")}, map[types.UID]string{"a": infeasible + "cpu, requested: 9000, capacity: 4000"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got := Decide(Input{Candidates: row.candidates, Others: []*corev1.Pod{pod("o", "1", "1Gi")},
				Allocatable: amounts("4", "8Gi")})
			for _, c := range row.candidates {
				text := ""
				if v := got[c.Allocated.UID]; !v.Granted() {
					text = v.Reason + ": " + v.Message
				}
				if want := row.want[c.Allocated.UID]; text != want {
					t.Errorf("%s: %q, want %q", c.Allocated.UID, text, want)
				}
			}
		})
	}
}

// Where Guaranteed Pods have CPUs of their own, the number of these stays the same; all else may be resized.
func TestDecideBesidePinnedCPUs(t *testing.T) {
	const infeasible = `Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"`
	guaranteed := classOf(corev1.PodQOSGuaranteed)
	sidecar := func(given, wanted string) func(*Candidate) {
		return func(c *Candidate) {
			for cpu, pod := range map[string]*corev1.Pod{given: c.Allocated, wanted: c.Desired} {
				pod.Spec.InitContainers = []corev1.Container{{Name: "s", Resources: corev1.ResourceRequirements{
					Requests: amounts(cpu, "1Mi")}}}
			}
		}
	}
	for _, r := range []struct {
		name      string
		candidate Candidate
		pins      bool
		want      string
	}{
		{"more", candidate("a", "1", "2", guaranteed), true, infeasible},
		{"less", candidate("a", "2", "1", guaranteed), true, infeasible},
		{"a part", candidate("a", "500m", "501m", guaranteed), true, infeasible},
		{"a sidecar's", candidate("a", "1", "1", guaranteed, sidecar("1", "2")), true, infeasible},
		{"memory", candidate("a", "1", "1", guaranteed, memory("1Gi", "2Gi")), true, ""},
		{"of another class", candidate("a", "1", "2"), true, ""},
		{"under policy none", candidate("a", "1", "2", guaranteed), false, ""},
	} {
		got := Decide(Input{Candidates: []Candidate{r.candidate}, Allocatable: amounts("4", "8Gi"),
			PinsCPUs: r.pins})["a"]
		if got.Message != r.want || got.Granted() != (r.want == "") ||
			!got.Granted() && got.Reason != corev1.PodReasonInfeasible {
			t.Errorf("%s: %+v, want %q", r.name, got, r.want)
		}
	}
}

// A container with swap keeps its size of memory until its next instance; one without is resized.
func TestDecideOfContainersWithSwap(t *testing.T) {
	const infeasible = "In-place resize of containers with swap is not supported."
	restarts := func(policy corev1.ResourceResizeRestartPolicy) func(*Candidate) {
		return func(c *Candidate) {
			for _, pod := range []*corev1.Pod{c.Allocated, c.Desired} {
				pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
					{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer},
					{ResourceName: corev1.ResourceMemory, RestartPolicy: policy}}
			}
		}
	}
	sidecar := func(c *Candidate) {
		for bytes, pod := range map[string]*corev1.Pod{"1Gi": c.Allocated, "2Gi": c.Desired} {
			pod.Spec.InitContainers = []corev1.Container{{Name: "s", Resources: corev1.ResourceRequirements{
				Requests: amounts("1", bytes)}}}
		}
	}
	from := func(least string) func(*corev1.Pod, *corev1.Container) int64 {
		return func(_ *corev1.Pod, c *corev1.Container) int64 {
			if c.Resources.Requests.Memory().Cmp(resource.MustParse(least)) < 0 {
				return 0
			}
			return 1
		}
	}
	for _, r := range []struct {
		name      string
		candidate Candidate
		swapOf    func(*corev1.Pod, *corev1.Container) int64
		want      string
	}{
		{"more memory", candidate("a", "1", "1", memory("1Gi", "2Gi")), from("0"), infeasible},
		{"less memory", candidate("a", "1", "1", memory("2Gi", "1Gi")), from("0"), infeasible},
		{"swap only afterwards", candidate("a", "1", "1", memory("1Gi", "2Gi")), from("2Gi"), infeasible},
		{"swap only before", candidate("a", "1", "1", memory("2Gi", "1Gi")), from("2Gi"), infeasible},
		{"no swap", candidate("a", "1", "1", memory("1Gi", "2Gi")), from("3Gi"), ""},
		{"on a node without", candidate("a", "1", "1", memory("1Gi", "2Gi")), nil, ""},
		{"cpu", candidate("a", "1", "2"), from("0"), ""},
		{"a sidecar's", candidate("a", "1", "1", sidecar), from("0"), infeasible},
		{"with a restart", candidate("a", "1", "1", memory("1Gi", "2Gi"), restarts(corev1.RestartContainer)),
			from("0"), ""},
		{"with a restart for others", candidate("a", "1", "1", memory("1Gi", "2Gi"), restarts(corev1.NotRequired)),
			from("0"), infeasible},
	} {
		got := Decide(Input{Candidates: []Candidate{r.candidate}, Allocatable: amounts("4", "8Gi"),
			SwapOf: r.swapOf})["a"]
		if got.Message != r.want || !got.Granted() && got.Reason != corev1.PodReasonInfeasible {
			t.Errorf("%s: %+v, want %q", r.name, got, r.want)
		}
	}
}

func milli(p *corev1.Pod) int64 {
	list := requests(p)
	return list.Cpu().MilliValue()
}

// DEP-214: for any request, what is granted fits, or takes no more than before.
func TestDecideStaysWithinTheNode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cpu := func(name string) string {
			return resource.NewMilliQuantity(rapid.Int64Range(1, 3000).Draw(t, name), resource.DecimalSI).String()
		}
		in := Input{Allocatable: amounts("4", "8Gi")}
		for i := range rapid.IntRange(1, 5).Draw(t, "candidates") {
			c := candidate(string(rune('a'+i)), cpu("allocated"), cpu("desired"),
				priorityOf(rapid.Int32Range(0, 2).Draw(t, "p")))
			in.Candidates = append(in.Candidates, c)
		}
		got := Decide(in)
		before, after := int64(0), int64(0)
		for _, c := range in.Candidates {
			allocated, desired := milli(c.Allocated), milli(c.Desired)
			before += allocated
			if !got[c.Allocated.UID].Granted() {
				desired = allocated
			}
			after += desired
		}
		if after > max(before, 4000) {
			t.Fatalf("%d thousandths are allocated of 4000, after %d", after, before)
		}
	})
}

// DEP-214: the new limit may equal what is in use, but not be a byte less.
func TestMayLower(t *testing.T) {
	for _, row := range []struct {
		name   string
		limits []LoweredLimit
		want   string
	}{
		{"none", nil, ""},
		{"all is in use", []LoweredLimit{{"", 10, 10}, {"c", 5, 5}}, ""},
		{"a byte more of the Pod", []LoweredLimit{{"", 10, 11}, {"c", 5, 5}},
			"cannot decrease memory limits: [attempting to set pod memory limit (10) below current usage (11)]"},
		{"a byte more of a container", []LoweredLimit{{"c", 5, 6}},
			"cannot decrease memory limits: [attempting to set " + `container "c" memory limit (5) below current usage (6)]`},
	} {
		got := ""
		if err := MayLower(row.limits); err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
