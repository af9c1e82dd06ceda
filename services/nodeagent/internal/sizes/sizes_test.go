package sizes

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func asks(requests, limits corev1.ResourceList) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: requests, Limits: limits}
}

func pod(whole *corev1.ResourceRequirements, containers ...corev1.ResourceRequirements) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{Resources: whole}}
	for i, r := range containers {
		c := corev1.Container{Name: string(rune('a' + i)), Resources: r}
		if i == 0 {
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		} else {
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	}
	return p
}

// DEP-214: a size holds all that a resize may change, and nothing else.
func TestSame(t *testing.T) {
	cpu := asks(list("cpu", "1"), list("cpu", "1"))
	for _, row := range []struct {
		name string
		a, b *corev1.Pod
		want bool
	}{
		{"the same", pod(nil, cpu, cpu), pod(nil, cpu, cpu), true},
		{"the same in other words", pod(nil, cpu, cpu), pod(nil, cpu, asks(list("cpu", "1000m"), list("cpu", "1"))),
			true},
		{"another request", pod(nil, cpu, cpu), pod(nil, cpu, asks(list("cpu", "999m"), list("cpu", "1"))), false},
		{"another limit", pod(nil, cpu, cpu), pod(nil, cpu, asks(list("cpu", "1"), list("cpu", "1001m"))), false},
		{"no limit", pod(nil, cpu, cpu), pod(nil, cpu, asks(list("cpu", "1"), nil)), false},
		{"an init container", pod(nil, cpu, cpu), pod(nil, asks(list("cpu", "1"), nil), cpu), false},
		{"other storage", pod(nil, cpu), pod(nil, asks(list("cpu", "1", "ephemeral-storage", "1"), list("cpu", "1"))),
			true},
		{"the whole", pod(&cpu, cpu), pod(&cpu, cpu), true},
		{"another whole", pod(&cpu, cpu), pod(&corev1.ResourceRequirements{Limits: list("memory", "1")}, cpu), false},
		{"no whole", pod(&cpu, cpu), pod(nil, cpu), false},
	} {
		if got := Same(row.a, row.b); got != row.want {
			t.Errorf("%s: %t", row.name, got)
		}
		if got := Same(Of(row.a).Apply(row.b), row.b); got != row.want {
			t.Errorf("%s: applied it is %t", row.name, got)
		}
	}
}

func TestApply(t *testing.T) {
	cpu, memory := asks(list("cpu", "1"), nil), asks(list("memory", "1"), nil)
	before := pod(&cpu, cpu, cpu)
	after := Of(pod(&memory, memory, memory)).Apply(before)
	if !Same(after, pod(&memory, memory, memory)) || !Same(before, pod(&cpu, cpu, cpu)) {
		t.Errorf("%+v became %+v", before.Spec, after.Spec)
	}
}

// DEP-214: the maximum of two sizes has the greater of each amount, and no limit if either has none.
func TestMax(t *testing.T) {
	narrow := asks(list("cpu", "1", "memory", "3"), list("cpu", "2", "memory", "5"))
	other := asks(list("cpu", "2"), list("cpu", "3"))
	want := asks(list("cpu", "2", "memory", "3"), list("cpu", "3"))
	for _, pods := range [][2]*corev1.Pod{{pod(&narrow, narrow, narrow), pod(&other, other, other)},
		{pod(&other, other, other), pod(&narrow, narrow, narrow)}} {
		if got := Max(Of(pods[0]), Of(pods[1])).Apply(pods[1]); !Same(got, pod(&want, want, want)) {
			t.Errorf("%+v and %+v are bounded by %+v", pods[0].Spec, pods[1].Spec, got.Spec)
		}
	}
	if got := Max(Of(pod(nil, narrow)), Of(pod(&other, other))); got.Pod != nil {
		t.Errorf("as a whole it is bounded by %+v", got.Pod)
	}
}

// DEP-214: a Pod has the size that its node reported, the requests as allocated and the limits as actuated.
func TestReported(t *testing.T) {
	wanted := asks(list("cpu", "3", "ephemeral-storage", "1"), list("cpu", "4"))
	p := pod(&wanted, wanted, wanted, wanted)
	had := asks(list("cpu", "1"), list("cpu", "2"))
	p.Status.Resources = &had
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "a", AllocatedResources: list("cpu", "1"),
		Resources: &corev1.ResourceRequirements{Requests: list("cpu", "9"), Limits: list("cpu", "2")}}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "b", AllocatedResources: list("cpu", "1"),
		Resources: &had}, {Name: "c"}}
	got := Reported(p).Apply(p)
	if !Same(got, pod(&had, had, had, wanted)) {
		t.Errorf("it had %+v", got.Spec)
	}
	if storage := got.Spec.Containers[0].Resources.Requests["ephemeral-storage"]; storage.String() != "1" {
		t.Errorf("of storage it had %s", &storage)
	}
}

func TestInstance(t *testing.T) {
	limit := func(memory string) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Limits: list("memory", memory)}
	}
	none, own := asks(list("cpu", "1"), nil), asks(list("cpu", "1"), list("memory", "7"))
	for _, row := range []struct {
		name      string
		has, gets Instance
		want      []corev1.ResourceName
		limit     int64
	}{
		{"the same", Instance{Resources: own}, Instance{Resources: own}, nil, 7},
		{"another request", Instance{Resources: none}, Instance{Resources: asks(list("cpu", "2"), nil)},
			[]corev1.ResourceName{"cpu"}, 0},
		{"a limit of its own", Instance{Resources: none}, Instance{Resources: own}, []corev1.ResourceName{"memory"}, 7},
		{"another limit of its Pod", Instance{none, limit("8")}, Instance{none, limit("9")},
			[]corev1.ResourceName{"memory"}, 9},
		{"another limit of its Pod, below which it has its own", Instance{own, limit("8")}, Instance{own, limit("9")},
			nil, 7},
		{"a limit of its Pod", Instance{none, nil}, Instance{none, limit("9")}, []corev1.ResourceName{"memory"}, 9},
	} {
		if got := row.has.Changed(row.gets); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
		if got := row.gets.MemoryLimit(); got != row.limit {
			t.Errorf("%s: limited to %d, want %d", row.name, got, row.limit)
		}
		text, err := row.has.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if again, ok := Decode(text); !ok || !apiequality.Semantic.DeepEqual(again, row.has) {
			t.Errorf("%s: read back as %+v", row.name, again)
		}
	}
	for _, text := range []string{"", "x"} {
		if got, ok := Decode(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
