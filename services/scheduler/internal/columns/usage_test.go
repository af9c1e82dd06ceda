package columns

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func container(cpu, memory string) corev1.Container {
	requests := corev1.ResourceList{}
	if cpu != "" {
		requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		requests[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests}}
}

func sidecar(c corev1.Container) corev1.Container {
	always := corev1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	return c
}

func TestUsageSums(t *testing.T) {
	for name, test := range map[string]struct {
		spec        corev1.PodSpec
		cpu, memory int64
	}{
		"SAF-091: containers add up": {corev1.PodSpec{
			Containers: []corev1.Container{container("100m", ""), container("250m", "")}}, 350, 0},
		"POD-229: a large init container counts alone": {corev1.PodSpec{
			Containers:     []corev1.Container{container("200m", ""), container("300m", "")},
			InitContainers: []corev1.Container{container("100m", ""), container("700m", "")}}, 700, 0},
		"POD-229: a small one not": {corev1.PodSpec{
			Containers:     []corev1.Container{container("200m", ""), container("300m", "")},
			InitContainers: []corev1.Container{container("100m", ""), container("400m", "")}}, 500, 0},
		"POD-227: per resource the greatest init container": {corev1.PodSpec{
			Containers:     []corev1.Container{container("100m", "100")},
			InitContainers: []corev1.Container{container("300m", "10"), container("20m", "500")}}, 300, 500},
		"POD-234: a sidecar runs beside the containers": {corev1.PodSpec{
			Containers:     []corev1.Container{container("200m", "")},
			InitContainers: []corev1.Container{sidecar(container("100m", ""))}}, 300, 0},
		"POD-234: and beside later init containers": {corev1.PodSpec{
			Containers:     []corev1.Container{container("200m", "")},
			InitContainers: []corev1.Container{sidecar(container("100m", "")), container("400m", "")}}, 500, 0},
		"POD-230: overhead is added": {corev1.PodSpec{
			Overhead:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")},
			Containers: []corev1.Container{container("100m", "")}}, 150, 0},
		"SAF-016: ephemeral containers add nothing": {corev1.PodSpec{
			Containers: []corev1.Container{container("100m", "")},
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon(
				container("1", "1Gi"))}}}, 100, 0},
		"Pod-level requests win": {corev1.PodSpec{
			Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("2")}},
			Containers: []corev1.Container{container("100m", "")}}, 2000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			u := New(0).Usage(&corev1.Pod{Spec: test.spec})
			if u.Basic[CPU] != test.cpu || u.Basic[Memory] != test.memory || u.Basic[Pods] != 1 {
				t.Errorf("takes %v, want cpu %d, memory %d and one Pod", u.Basic, test.cpu, test.memory)
			}
		})
	}
}

func TestUsageOfContainersWithoutRequests(t *testing.T) {
	u := New(0).Usage(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container("", ""),
		container("300m", "")}}})
	if u.Basic[CPU] != 300 || u.Basic[Memory] != 0 {
		t.Errorf("takes %v, want what is asked for", u.Basic)
	}
	if want := [2]int64{400, 400 << 20}; u.Scored != want {
		t.Errorf("is scored as %v, want %v", u.Scored, want)
	}
}

// The default counts for the resource that a container does not ask for, also an init container; not beside what it
// asks.
func TestScoredDefaults(t *testing.T) {
	const mi = 1 << 20
	for name, test := range map[string]struct {
		spec corev1.PodSpec
		want [2]int64
	}{
		"asks for both": {corev1.PodSpec{Containers: []corev1.Container{container("300m", "50Mi")}},
			[2]int64{300, 50 * mi}},
		"only cpu": {corev1.PodSpec{Containers: []corev1.Container{container("300m", "")}},
			[2]int64{300, 200 * mi}},
		"only memory": {corev1.PodSpec{Containers: []corev1.Container{container("", "50Mi")}},
			[2]int64{100, 50 * mi}},
		"one of two asks": {corev1.PodSpec{Containers: []corev1.Container{container("300m", "50Mi"),
			container("", "")}}, [2]int64{400, 250 * mi}},
		"the other of two asks": {corev1.PodSpec{Containers: []corev1.Container{container("", ""),
			container("300m", "50Mi")}}, [2]int64{400, 250 * mi}},
		"an init container does not": {corev1.PodSpec{
			Containers:     []corev1.Container{container("50m", "50Mi")},
			InitContainers: []corev1.Container{container("", "")}}, [2]int64{100, 200 * mi}},
		"the first of two init containers does not": {corev1.PodSpec{
			Containers:     []corev1.Container{container("50m", "50Mi")},
			InitContainers: []corev1.Container{container("", ""), container("10m", "10Mi")}}, [2]int64{100, 200 * mi}},
	} {
		if u := New(0).Usage(&corev1.Pod{Spec: test.spec}); u.Scored != test.want {
			t.Errorf("%s: is scored as %v, want %v", name, u.Scored, test.want)
		}
	}
}

// At most 50,000 unlike usages are kept; those in use stay right.
func TestUsagesAreBounded(t *testing.T) {
	s := New(0)
	pod := func(i int) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(i), resource.DecimalSI),
				corev1.ResourceMemory: resource.MustParse("1")}}}}}}
	}
	first := s.Usage(pod(0))
	for i := range 49_999 {
		s.Usage(pod(i + 1))
	}
	if len(s.usages) != 50_000 || s.Usage(pod(0)) != first {
		t.Errorf("%d usages are kept, want 50000", len(s.usages))
	}
	s.Usage(pod(50_000))
	if len(s.usages) != 1 || first.Basic[Memory] != 1 || s.Usage(pod(0)) == first {
		t.Errorf("%d usages are kept, want a fresh start", len(s.usages))
	}
}

func TestUsageIsOnePointer(t *testing.T) {
	s := New(0)
	pod := func(cpu string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container(cpu, "1Gi")}}}
	}
	if s.Usage(pod("1")) != s.Usage(pod("1000m")) {
		t.Error("equal usages are two")
	}
	if s.Usage(pod("1")) == s.Usage(pod("2")) {
		t.Error("two usages are one")
	}
}

func TestPorts(t *testing.T) {
	hold := func(ip string, number int32, protocol corev1.Protocol) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{HostIP: ip,
			HostPort: number, Protocol: protocol}}}}}
	}
	for name, test := range map[string]struct {
		first, second corev1.PodSpec
		conflict      bool
	}{
		"same":               {hold("", 80, "TCP"), hold("", 80, "TCP"), true},
		"protocol defaults":  {hold("", 80, ""), hold("", 80, "TCP"), true},
		"other port":         {hold("", 80, "TCP"), hold("", 81, "TCP"), false},
		"other protocol":     {hold("", 80, "TCP"), hold("", 80, "UDP"), false},
		"two addresses":      {hold("10.0.0.1", 80, "TCP"), hold("10.0.0.2", 80, "TCP"), false},
		"an address and all": {hold("10.0.0.1", 80, "TCP"), hold("0.0.0.0", 80, "TCP"), true},
		"all and an address": {hold("", 80, "TCP"), hold("10.0.0.1", 80, "TCP"), true},
		"the lowest port":    {hold("", 1, "TCP"), hold("", 1, "TCP"), true},
		"port 0 is none":     {hold("", 0, "TCP"), hold("", 0, "TCP"), false},
		"a second port": {corev1.PodSpec{Containers: []corev1.Container{
			{Ports: []corev1.ContainerPort{{ContainerPort: 1}, {HostPort: 79}, {HostPort: 80}}}}},
			hold("", 80, "TCP"), true},
		"no host port, no hold": {corev1.PodSpec{Containers: []corev1.Container{
			{Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}}, hold("", 80, "TCP"), false},
		"a sidecar holds": {corev1.PodSpec{InitContainers: []corev1.Container{sidecar(hold("", 80,
			"TCP").Containers[0])}}, hold("", 80, "TCP"), true},
		"an init container not": {corev1.PodSpec{InitContainers: hold("", 80, "TCP").Containers}, hold("", 80, "TCP"),
			false},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(0)
			s.SetPod(identified("a"), "n", s.Usage(&corev1.Pod{Spec: test.first}))
			slot, second := s.Slot("n"), s.Usage(&corev1.Pod{Spec: test.second})
			if free := s.Node(slot).PortsFree(second.Ports); free == test.conflict {
				t.Errorf("free is %v", free)
			}
			s.SetPod(identified("b"), "n", s.Usage(&corev1.Pod{Spec: test.first})) // bound by hand
			s.RemovePod("b")
			if free := s.Node(slot).PortsFree(second.Ports); free == test.conflict {
				t.Errorf("free is %v after one of two holders is gone", free)
			}
			s.RemovePod("a")
			if !s.Node(s.ensure("n")).PortsFree(second.Ports) {
				t.Error("not free after the last holder is gone")
			}
		})
	}
}

// DEP-214: what counts of a running Pod that is being resized is the greater of what it asks for and what it was given.
func TestUsageWhileResizing(t *testing.T) {
	c := container("500m", "")
	c.Name = "c"
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{c}}, Status: corev1.PodStatus{
		ContainerStatuses: []corev1.ContainerStatus{{Name: "c", AllocatedResources: container("2",
			"").Resources.Requests,
			Resources: &corev1.ResourceRequirements{Requests: container("2", "").Resources.Requests}}},
	}}
	if u := New(0).Usage(p); u.Basic[CPU] != 2000 {
		t.Errorf("takes %d, want 2000", u.Basic[CPU])
	}
	whole, given := container("3", "").Resources, container("4", "").Resources
	p.Spec.Resources, p.Status.Resources = &whole, &given
	if u := New(0).Usage(p); u.Basic[CPU] != 4000 || u.Scored[0] != 4000 {
		t.Errorf("as a whole it takes %d, and counts as %d in scores, want 4000", u.Basic[CPU], u.Scored[0])
	}
}

// What a container was given counts in scores with the default for what it names not, and a Pod whose resize cannot be
// has what it was given; one container is added up as several are.
func TestUsageByStatus(t *testing.T) {
	const mi = 1 << 20
	given := func(cpu, memory string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "c",
			AllocatedResources: container(cpu, memory).Resources.Requests}}}
	}
	never := []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible}}
	refused := given("300m", "60Mi")
	refused.Conditions = never
	whole := corev1.PodStatus{AllocatedResources: container("1", "").Resources.Requests,
		Resources: &corev1.ResourceRequirements{Requests: container("2", "").Resources.Requests}}
	for name, test := range map[string]struct {
		status        corev1.PodStatus
		basic, scored [2]int64
	}{
		"both":                {given("700m", "70Mi"), [2]int64{700, 70 * mi}, [2]int64{700, 70 * mi}},
		"no memory":           {given("700m", ""), [2]int64{700, 50 * mi}, [2]int64{700, 200 * mi}},
		"cannot be":           {refused, [2]int64{300, 60 * mi}, [2]int64{300, 60 * mi}},
		"cannot be, no given": {corev1.PodStatus{Conditions: never}, [2]int64{}, [2]int64{100, 200 * mi}},
		"as a whole":          {whole, [2]int64{2000, 50 * mi}, [2]int64{2000, 50 * mi}},
	} {
		c := container("500m", "50Mi")
		c.Name = "c"
		u := New(0).Usage(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{c}}, Status: test.status})
		if got := [2]int64{u.Basic[CPU], u.Basic[Memory]}; got != test.basic || u.Scored != test.scored {
			t.Errorf("%s: takes %v, is scored as %v, want %v and %v", name, got, u.Scored, test.basic, test.scored)
		}
	}
}

func TestExtendedResources(t *testing.T) {
	s := New(0)
	s.SetNode(node("n", corev1.ResourceList{"example.com/gpu": resource.MustParse("2")}))
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			"example.com/gpu": resource.MustParse("1"), "hugepages-2Mi": resource.MustParse("4Mi"),
			"example.com/none": resource.MustParse("0")}}}}}}
	u := s.Usage(p)
	want := []Amount{{s.resources["example.com/gpu"], "example.com/gpu", 1}, {s.resources["hugepages-2Mi"],
		"hugepages-2Mi", 4 << 20}}
	if !reflect.DeepEqual(u.Extended, want) {
		t.Errorf("takes %v, want %v", u.Extended, want)
	}
	s.SetPod(identified("p"), "n", u)
	if gpu, pages := s.Node(s.Slot("n")).Free(want[0].Resource), s.Node(s.Slot("n")).Free(want[1].Resource); gpu != 1 ||
		pages != -4<<20 {
		t.Errorf("%d GPUs and %d bytes are free", gpu, pages)
	}
	s.SetNode(node("n", nil))
	if gpu := s.Node(s.Slot("n")).Free(want[0].Resource); gpu != -1 {
		t.Errorf("%d GPUs are free of a node that has none any more", gpu)
	}
}
