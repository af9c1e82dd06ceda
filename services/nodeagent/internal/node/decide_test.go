package node

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func facts() Facts {
	return Facts{Name: "n1", IPs: []string{"10.0.0.1"}, Port: 10250, MilliCPU: 2000, Memory: 4 << 30, Storage: 1 << 30,
		MaxPods: 110,
		Labels:  map[string]string{"zone": "a", corev1.LabelHostname: "liar"}, PodCIDR: "10.1.0.0/24",
		Info: corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64"}}
}

func TestRegister(t *testing.T) {
	f := facts()
	f.Taints = []corev1.Taint{{Key: "new", Effect: corev1.TaintEffectNoSchedule}}
	node := register(f, nil)
	// POD-035
	want := map[string]string{"zone": "a", corev1.LabelHostname: "n1", corev1.LabelOSStable: "linux",
		corev1.LabelArchStable: "amd64"}
	if !reflect.DeepEqual(node.Labels, want) || node.Spec.PodCIDR != "10.1.0.0/24" || len(node.Spec.Taints) != 1 {
		t.Errorf("new node %+v %+v", node.Labels, node.Spec)
	}
	old := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"theirs": "x"}},
		Spec: corev1.NodeSpec{PodCIDR: "10.9.0.0/24", Unschedulable: true}}
	again := register(f, old)
	if again.Labels["theirs"] != "x" || again.Spec.PodCIDR != "10.9.0.0/24" || !again.Spec.Unschedulable ||
		len(again.Spec.Taints) != 0 {
		t.Errorf("known node %+v %+v: what others have set must stay", again.Labels, again.Spec)
	}
}

// Missing fields of a Node are filled in, and nothing is invented.
func TestRegisterFillsIn(t *testing.T) {
	bare := Facts{Name: "n1", Info: corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "arm64"}}
	labels := map[string]string{corev1.LabelHostname: "n1", corev1.LabelOSStable: "linux",
		corev1.LabelArchStable: "arm64"}
	want := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: labels}}
	if got := register(bare, nil); !reflect.DeepEqual(got, want) {
		t.Errorf("a Node that nothing is configured for is %+v, want %+v", got, want)
	}
	old := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{
		Taints: []corev1.Taint{{Key: "theirs", Effect: corev1.TaintEffectNoExecute}}}}
	before := old.DeepCopy()
	bare.PodCIDR, bare.Taints = "10.1.0.0/24", []corev1.Taint{{Key: "new", Effect: corev1.TaintEffectNoSchedule}}
	got := register(bare, old)
	if got.Spec.PodCIDR != "10.1.0.0/24" || !reflect.DeepEqual(got.Spec.PodCIDRs, []string{"10.1.0.0/24"}) ||
		!reflect.DeepEqual(got.Labels, labels) || !reflect.DeepEqual(got.Spec.Taints, old.Spec.Taints) {
		t.Errorf("a Node without a range becomes %+v %+v", got.Labels, got.Spec)
	}
	if !reflect.DeepEqual(before, old) {
		t.Error("the input was changed")
	}
	if len(bare.Labels) != 0 {
		t.Errorf("the configured labels were changed: %v", bare.Labels)
	}
}

// The node's own conditions, as the kubelet words them.
func TestConditions(t *testing.T) {
	well := map[corev1.NodeConditionType][3]string{
		"MemoryPressure": {"False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"},
		"DiskPressure":   {"False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
		"PIDPressure":    {"False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
		"Ready":          {"True", "KubeletReady", "kubelet is posting ready status"},
	}
	for _, row := range []struct {
		name   string
		health Health
		kind   corev1.NodeConditionType
		want   [3]string
	}{
		{"all is well", Health{}, "Ready", well["Ready"]},
		{"memory", Health{Pressures: []corev1.NodeConditionType{"MemoryPressure"}}, "MemoryPressure",
			[3]string{"True", "KubeletHasInsufficientMemory", "kubelet has insufficient memory available"}},
		{"disk", Health{Pressures: []corev1.NodeConditionType{"DiskPressure"}}, "DiskPressure",
			[3]string{"True", "KubeletHasDiskPressure", "kubelet has disk pressure"}},
		{"processes", Health{Pressures: []corev1.NodeConditionType{"PIDPressure"}}, "PIDPressure",
			[3]string{"True", "KubeletHasInsufficientPID", "kubelet has insufficient PID available"}},
		{"runtime", Health{RuntimeProblem: "no answer"}, "Ready", [3]string{"False", "KubeletNotReady", "no answer"}},
		{"network", Health{NetworkProblem: "no plugin"}, "Ready", [3]string{"False", "KubeletNotReady", "no plugin"}},
		{"both", Health{RuntimeProblem: "no answer", NetworkProblem: "no plugin"}, "Ready",
			[3]string{"False", "KubeletNotReady", "no answer; no plugin"}},
	} {
		s := statusOf(facts(), row.health, &corev1.NodeStatus{}, now.Add(999*time.Millisecond))
		if len(s.Conditions) != 4 {
			t.Errorf("%s: %d conditions, want 4", row.name, len(s.Conditions))
		}
		for _, c := range s.Conditions {
			want := well[c.Type]
			if c.Type == row.kind {
				want = row.want
			}
			if got := [3]string{string(c.Status), c.Reason, c.Message}; got != want {
				t.Errorf("%s: %s is %q, want %q", row.name, c.Type, got, want)
			}
			if !c.LastHeartbeatTime.Time.Equal(now) || !c.LastTransitionTime.Time.Equal(now) {
				t.Errorf("%s: %s was seen at %v, since %v, want whole seconds", row.name, c.Type, c.LastHeartbeatTime,
					c.LastTransitionTime)
			}
		}
	}
}

// NetworkUnavailable is reported if the node provides the network of its Pods, and left to others if it does not.
func TestNetworkUnavailable(t *testing.T) {
	none, there := "the Node has no podCIDR yet", ""
	old := &corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeNetworkUnavailable,
		Status: corev1.ConditionFalse, Reason: "FlannelIsUp"}}}
	for _, row := range []struct {
		problem *string
		want    [3]string
	}{
		{&none, [3]string{"True", "NoRouteCreated", "the Node has no podCIDR yet"}},
		{&there, [3]string{"False", "RouteCreated", "the network of Pods is there"}},
		{nil, [3]string{"False", "FlannelIsUp", ""}},
	} {
		s := statusOf(facts(), Health{PodNetwork: row.problem}, old, now)
		c := s.Conditions[0]
		if got := [3]string{string(c.Status), c.Reason, c.Message}; got != row.want || len(s.Conditions) != 5 {
			t.Errorf("got %q of %d conditions, want %q", got, len(s.Conditions), row.want)
		}
	}
}

func TestStatus(t *testing.T) {
	hour := metav1.NewTime(now.Add(-time.Hour))
	old := &corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: hour},
		{Type: "Theirs", Status: corev1.ConditionTrue, LastTransitionTime: hour},
	}}
	s := statusOf(facts(), Health{}, old, now)
	if c := s.Conditions[0]; c.Status != corev1.ConditionTrue || c.Reason != "KubeletReady" ||
		!c.LastTransitionTime.Equal(&hour) || !c.LastHeartbeatTime.Time.Equal(now) {
		t.Errorf("Ready %+v", c)
	}
	if s.Conditions[1].Type != "Theirs" || len(s.Conditions) != 5 {
		t.Errorf("conditions %+v: those of others must stay", s.Conditions)
	}
	if s.Allocatable.Pods().Value() != 110 || s.Capacity.Cpu().MilliValue() != 2000 ||
		s.DaemonEndpoints.KubeletEndpoint.Port != 10250 {
		t.Errorf("status %+v", s)
	}
	s = statusOf(facts(), Health{NetworkProblem: "no network"}, old, now)
	if c := s.Conditions[0]; c.Status != corev1.ConditionFalse || c.Reason != "KubeletNotReady" ||
		c.Message != "no network" || !c.LastTransitionTime.Time.Equal(now) {
		t.Errorf("Ready without a network %+v", c)
	}
}

// What other clients have written stays: extended resources, addresses and all that the node does not know of
// itself.
func TestStatusOfOthersStays(t *testing.T) {
	const dongle = "example.com/dongle"
	amounts := func(cpu, dongles string) corev1.ResourceList {
		out := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		if dongles != "" {
			out[dongle] = resource.MustParse(dongles)
		}
		return out
	}
	for _, r := range []struct {
		name                            string
		oldCapacity, oldAllocatable     corev1.ResourceList
		wantCapacity, wantAllocatable   string
		wantCPUCapacity, wantCPUToSpare string
	}{
		{"added to the capacity", amounts("2", "4"), amounts("2", ""), "4", "4", "2", "2"},
		{"raised in the capacity", amounts("2", "8"), amounts("2", "4"), "8", "8", "2", "2"},
		{"taken out of the capacity", amounts("2", ""), amounts("2", "4"), "", "", "2", "2"},
		{"the node's own resource", amounts("64", "4"), amounts("63", "4"), "4", "4", "2", "2"},
	} {
		old := &corev1.NodeStatus{Capacity: r.oldCapacity, Allocatable: r.oldAllocatable}
		before := old.DeepCopy()
		s := statusOf(facts(), Health{}, old, now)
		for what, pair := range map[string][2]corev1.ResourceList{"capacity": {s.Capacity,
			amounts(r.wantCPUCapacity, r.wantCapacity)},
			"allocatable": {s.Allocatable, amounts(r.wantCPUToSpare, r.wantAllocatable)}} {
			for _, name := range []corev1.ResourceName{dongle, corev1.ResourceCPU} {
				got, has := pair[0][name]
				want, wanted := pair[1][name]
				if has != wanted || got.Cmp(want) != 0 {
					t.Errorf("%s: %s of %s is %v (%v), want %v (%v)", r.name, what, name, got.String(), has,
						want.String(), wanted)
				}
			}
		}
		if !reflect.DeepEqual(before, old) {
			t.Errorf("%s: the input was changed", r.name)
		}
	}
	old := &corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeExternalIP, Address: "192.0.2.1"},
			{Type: corev1.NodeInternalIP, Address: "10.9.9.9"},
			{Type: corev1.NodeHostName, Address: "old"}, {Type: corev1.NodeExternalDNS, Address: "n1.example.com"}},
		VolumesInUse: []corev1.UniqueVolumeName{"old"}, VolumesAttached: []corev1.AttachedVolume{{Name: "theirs"}},
		Phase: corev1.NodeRunning,
	}
	s := statusOf(facts(), Health{VolumesInUse: []corev1.UniqueVolumeName{"own"}}, old, now)
	want := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"},
		{Type: corev1.NodeHostName, Address: "n1"},
		{Type: corev1.NodeExternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeExternalDNS, Address: "n1.example.com"}}
	if !reflect.DeepEqual(s.Addresses, want) {
		t.Errorf("addresses %v, want %v", s.Addresses, want)
	}
	if len(s.VolumesInUse) != 1 || s.VolumesInUse[0] != "own" {
		t.Errorf("in use are %v", s.VolumesInUse)
	}
	if len(s.VolumesAttached) != 1 || s.Phase != corev1.NodeRunning {
		t.Errorf("status %+v: fields that the node does not know must stay", s)
	}
}

func TestDue(t *testing.T) {
	first := statusOf(facts(), Health{}, &corev1.NodeStatus{}, now)
	later := now.Add(10 * time.Second)
	same := statusOf(facts(), Health{}, &first, later)
	worse := statusOf(facts(), Health{RuntimeProblem: "gone"}, &first, later)
	for _, r := range []struct {
		name    string
		stored  corev1.NodeStatus
		next    corev1.NodeStatus
		written time.Time
		at      time.Time
		want    bool
	}{
		{"the first", first, same, time.Time{}, now, true},
		{"nothing new", first, same, now, later, false},
		{"a change", first, worse, now, later, true},
		{"somebody has overwritten it", corev1.NodeStatus{}, same, now, later, true},
		{"nothing new for just under five minutes", first, same, now, now.Add(5*time.Minute - 1), false},
		{"nothing new for five minutes", first, same, now, now.Add(5 * time.Minute), true},
	} {
		if got := due(&r.stored, &r.next, r.written, r.at, apiequality.Semantic.DeepEqual); got != r.want {
			t.Errorf("%s: due = %v, want %v", r.name, got, r.want)
		}
	}
}

func TestMachineTexts(t *testing.T) {
	for text, want := range map[string]int64{"MemFree: 1 kB\nMemTotal:       16384 kB\n": 16 << 20,
		"MemTotal:5 kB": 5 << 10, "MemTotal: much kB\nMemTotal: 5 kB\n": 0, "MemFree: 1 kB\n": 0, "": 0,
		"xMemTotal: 5 kB\n": 0} {
		if got := memTotal(text); got != want {
			t.Errorf("%q: memory %d, want %d", text, got, want)
		}
	}
	for text, want := range map[string]int64{"MemTotal: 9 kB\nSwapTotal:  2 kB\nSwapFree: 1 kB\n": 2 << 10,
		"SwapTotal: 0 kB\n": 0, "SwapFree: 1 kB\n": 0, "": 0} {
		got := swapOf(text)
		if (got != nil) != (want > 0) || got != nil && *got.Capacity != want {
			t.Errorf("%q: swap %v, want %d", text, got, want)
		}
	}
	for text, want := range map[string]string{"ID=x\nPRETTY_NAME=\"Some OS 1\"\n": "Some OS 1", "": "Linux",
		"NAME=x\n": "Linux", "PRETTY_NAME=Plain\nPRETTY_NAME=Later\n": "Plain",
		"  PRETTY_NAME='Some OS'  ": "Some OS"} {
		if got := osImage(text); got != want {
			t.Errorf("%q: system %q, want %q", text, got, want)
		}
	}
}
