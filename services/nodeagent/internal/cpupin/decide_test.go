package cpupin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

// box is a machine whose cores have that many threads; thread t of core c has the number c + t*cores, as on most
// machines.
func box(sockets, cores, threads int) Machine {
	var m Machine
	for t := range threads {
		for s := range sockets {
			for c := range cores {
				m = append(m, CPU{ID: t*sockets*cores + s*cores + c, Core: c, Socket: s})
			}
		}
	}
	return m
}

// podOf is a Guaranteed Pod of containers like "main c 2": kind, name, cpu.
func podOf(uid types.UID, containers ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Name: string(uid)}}
	for _, text := range containers {
		parts := strings.Fields(text)
		amounts := corev1.ResourceList{"cpu": resource.MustParse(parts[2]), "memory": resource.MustParse("1Mi")}
		c := corev1.Container{Name: parts[1], Resources: corev1.ResourceRequirements{Requests: amounts,
			Limits: amounts.DeepCopy()}}
		switch parts[0] {
		case "main":
			pod.Spec.Containers = append(pod.Spec.Containers, c)
			continue
		case "sidecar":
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	return pod
}

func set(t interface{ Fatal(...any) }, text string) cpuset.CPUSet {
	out, err := cpuset.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (a Assignment) String() string {
	var parts []string
	for name, cpus := range a {
		parts = append(parts, name+" "+cpus.String())
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func TestTake(t *testing.T) {
	for _, r := range []struct {
		name    string
		machine Machine
		free    string
		n       int
		want    string
	}{
		{"none", box(1, 2, 1), "0-1", 0, ""},
		{"the lowest", box(1, 2, 1), "0-1", 1, "0"},
		{"all", box(1, 2, 1), "0-1", 2, "0-1"},
		{"a thread", box(1, 2, 2), "0-3", 1, "0"},
		{"a whole core", box(1, 2, 2), "0-3", 2, "0,2"},
		{"a whole core and a thread", box(1, 2, 2), "0-3", 3, "0-2"},
		{"no core is whole", box(1, 2, 2), "0-1", 2, "0-1"},
		{"a thread of a core that is in use", box(1, 3, 2), "0-2,3,5", 1, "1"},
		{"the core that is whole", box(1, 3, 2), "1-2,3,5", 2, "2,5"},
		{"a whole socket", box(2, 2, 2), "0-7", 4, "0-1,4-5"},
		{"the whole socket", box(2, 2, 2), "0-3,5-7", 4, "2-3,6-7"},
		{"the socket with the least room that suffices", box(2, 4, 1), "0-2,4-7", 2, "0-1"},
		{"the socket that suffices", box(2, 4, 1), "0-1,4-6", 3, "4-6"},
		{"more than any socket has", box(2, 4, 1), "0-1,4-6", 4, "0,4-6"},
		{"stays in the socket", box(2, 2, 2), "1-3,5-7", 3, "2-3,6"},
		{"cores that count alike in two sockets", Machine{{0, 0, 0}, {1, 0, 1}, {2, 0, 0}, {3, 0, 1}}, "1-3", 2, "1,3"},
	} {
		if got := take(r.machine, set(t, r.free), r.n); got.String() != r.want {
			t.Errorf("%s: %s, want %s", r.name, got, r.want)
		}
	}
}

func TestAssign(t *testing.T) {
	edited := func(pod *corev1.Pod, edit func(*corev1.Pod)) *corev1.Pod {
		edit(pod)
		return pod
	}
	ephemeral := func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon(p.Spec.Containers[0])}}
		p.Spec.EphemeralContainers[0].Name = "e"
	}
	const lacks = "not enough cpus available to satisfy request: requested=%d, available=%d"
	for _, r := range []struct {
		name string
		pod  *corev1.Pod
		free string
		want string
	}{
		{"whole ones", podOf("p", "main a 1", "main b 2"), "1-3", "a 1, b 2-3"},
		{"as thousandths", podOf("p", "main a 2000m"), "1-3", "a 1-2"},
		{"a part", podOf("p", "main a 1500m", "main b 1"), "1-3", "b 1"},
		{"just less", podOf("p", "main a 999m"), "1-3", ""},
		{"not Guaranteed", edited(podOf("p", "main a 1"), func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("2")
		}), "1-3", ""},
		{"limits alone", edited(podOf("p", "main a 1"), func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = nil
		}), "1-3", "a 1"},
		{"a size of the Pod", edited(podOf("p", "main a 1"), func(p *corev1.Pod) {
			p.Spec.Resources = p.Spec.Containers[0].Resources.DeepCopy()
		}), "1-3", ""},
		{"an ephemeral container", edited(podOf("p", "main a 1"), ephemeral), "1-3", "a 1"},
		{"an init container leaves its own", podOf("p", "init i 2", "main a 1", "main b 1"), "1-2",
			"a 1, b 2, i 1-2"},
		{"it leaves less than is needed", podOf("p", "init i 1", "main a 2"), "1-2", "a 1-2, i 1"},
		{"each init container leaves its own", podOf("p", "init i 2", "init j 2", "main a 2"), "1-2",
			"a 1-2, i 1-2, j 1-2"},
		{"a sidecar keeps its own", podOf("p", "sidecar s 1", "main a 1"), "1-2", "a 2, s 1"},
		{"a sidecar takes what was left", podOf("p", "init i 2", "sidecar s 1", "main a 1"), "1-2", "a 2, i 1-2, s 1"},
		{"too many", podOf("p", "main a 4"), "1-3", fmt.Sprintf(lacks, 4, 3)},
		{"too many together", podOf("p", "main a 2", "main b 2"), "1-3", fmt.Sprintf(lacks, 2, 1)},
		{"a sidecar leaves nothing", podOf("p", "sidecar s 2", "main a 2"), "1-3", fmt.Sprintf(lacks, 2, 1)},
		{"none is free", podOf("p", "main a 1"), "", fmt.Sprintf(lacks, 1, 0)},
	} {
		before := r.pod.DeepCopy()
		got, err := assign(request{Pod: r.pod, Machine: box(1, 4, 1), Free: set(t, r.free)})
		said := got.String()
		if err != nil {
			said = err.Error()
		}
		if said != r.want {
			t.Errorf("%s: %s, want %s", r.name, said, r.want)
		}
		if fmt.Sprint(before) != fmt.Sprint(r.pod) {
			t.Errorf("%s: the Pod was changed", r.name)
		}
	}
}

// The chosen CPUs are free, as many as requested, and the same each time; and if all cores are alike, no core is
// broken up unnecessarily.
func TestTakeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threads := rapid.IntRange(1, 4).Draw(t, "threads")
		machine := box(rapid.IntRange(1, 3).Draw(t, "sockets"), rapid.IntRange(1, 4).Draw(t, "cores"), threads)
		free := cpuset.New(rapid.SliceOfDistinct(rapid.IntRange(0, len(machine)-1), rapid.ID).Draw(t, "free")...)
		n := rapid.IntRange(0, free.Size()).Draw(t, "n")
		got := take(machine, free, n)
		if got.Size() != n || !got.IsSubsetOf(free) || !got.Equals(take(machine, free, n)) {
			t.Fatalf("of %s %d are taken: %s", free, n, got)
		}
		whole, taken := 0, 0
		for _, core := range machine.groups(groupings[1]) {
			if core.IsSubsetOf(free) {
				whole++
			}
			if core.IsSubsetOf(got) {
				taken++
			}
		}
		if want := min(whole, n/threads); taken != want {
			t.Fatalf("of %s %d are taken: %s, which is %d whole cores, not %d", free, n, got, taken, want)
		}
	})
}

func TestUntold(t *testing.T) {
	running := []Instance{{"new", "0"}, {"moved", "0"}, {"as it was", "0-1"}}
	got := untold(running, map[string]string{"moved": "0-1", "as it was": "0-1", "gone": "0"})
	if want := []Instance{{"moved", "0"}, {"new", "0"}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
