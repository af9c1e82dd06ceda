package node

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func facts() Facts {
	return Facts{Name: "n1", IPs: []string{"10.0.0.1"}, Port: 10250, MilliCPU: 2000, Memory: 4 << 30, Storage: 1 << 30, MaxPods: 110,
		Labels: map[string]string{"zone": "a", corev1.LabelHostname: "liar"}, PodCIDR: "10.1.0.0/24",
		Info: corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64"}}
}

func TestRegister(t *testing.T) {
	f := facts()
	f.Taints = []corev1.Taint{{Key: "new", Effect: corev1.TaintEffectNoSchedule}}
	node := register(f, nil)
	want := map[string]string{"zone": "a", corev1.LabelHostname: "n1", corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"} // POD-035
	if !reflect.DeepEqual(node.Labels, want) || node.Spec.PodCIDR != "10.1.0.0/24" || len(node.Spec.Taints) != 1 {
		t.Errorf("new node %+v %+v", node.Labels, node.Spec)
	}
	old := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"theirs": "x"}},
		Spec: corev1.NodeSpec{PodCIDR: "10.9.0.0/24", Unschedulable: true}}
	again := register(f, old)
	if again.Labels["theirs"] != "x" || again.Spec.PodCIDR != "10.9.0.0/24" || !again.Spec.Unschedulable || len(again.Spec.Taints) != 0 {
		t.Errorf("known node %+v %+v: what others have set must stay", again.Labels, again.Spec)
	}
}

func TestStatus(t *testing.T) {
	hour := metav1.NewTime(now.Add(-time.Hour))
	old := &corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: hour},
		{Type: "Theirs", Status: corev1.ConditionTrue, LastTransitionTime: hour},
	}}
	s := statusOf(facts(), Health{}, old, now)
	if c := s.Conditions[0]; c.Status != corev1.ConditionTrue || c.Reason != "KubeletReady" || !c.LastTransitionTime.Equal(&hour) || !c.LastHeartbeatTime.Time.Equal(now) {
		t.Errorf("Ready %+v", c)
	}
	if s.Conditions[1].Type != "Theirs" || len(s.Conditions) != 5 {
		t.Errorf("conditions %+v: those of others must stay", s.Conditions)
	}
	if s.Allocatable.Pods().Value() != 110 || s.Capacity.Cpu().MilliValue() != 2000 || s.DaemonEndpoints.KubeletEndpoint.Port != 10250 {
		t.Errorf("status %+v", s)
	}
	s = statusOf(facts(), Health{NetworkProblem: "no network"}, old, now)
	if c := s.Conditions[0]; c.Status != corev1.ConditionFalse || c.Reason != "KubeletNotReady" || c.Message != "no network" || !c.LastTransitionTime.Time.Equal(now) {
		t.Errorf("Ready without a network %+v", c)
	}
}

func TestDue(t *testing.T) {
	first := statusOf(facts(), Health{}, &corev1.NodeStatus{}, now)
	later := now.Add(10 * time.Second)
	same := statusOf(facts(), Health{}, &first, later)
	worse := statusOf(facts(), Health{RuntimeProblem: "gone"}, &first, later)
	for _, r := range []struct {
		name string
		last *corev1.NodeStatus
		next corev1.NodeStatus
		at   time.Time
		want bool
	}{
		{"the first", nil, first, now, true},
		{"nothing new", &first, same, later, false},
		{"a change", &first, worse, later, true},
		{"nothing new for five minutes", &first, same, now.Add(reportEvery), true},
	} {
		if got := due(r.last, &r.next, now, r.at, apiequality.Semantic.DeepEqual); got != r.want {
			t.Errorf("%s: due = %v, want %v", r.name, got, r.want)
		}
	}
}

func TestMachineTexts(t *testing.T) {
	if got := memTotal("MemFree: 1 kB\nMemTotal:       16384 kB\n"); got != 16<<20 {
		t.Errorf("memory %d", got)
	}
	if got := osImage("ID=x\nPRETTY_NAME=\"Some OS 1\"\n"); got != "Some OS 1" {
		t.Errorf("system %q", got)
	}
	if got := osImage(""); got != "Linux" {
		t.Errorf("system %q", got)
	}
}
