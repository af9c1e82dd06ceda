package admit

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func node() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"kubernetes.io/os": "linux", "disk": "ssd"}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi"), "pods": resource.MustParse("3")}},
	}
}

func pod(cpu string, edit ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
	if cpu != "" {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
	}
	for _, e := range edit {
		e(p)
	}
	return p
}

func port(n int32, ip string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: n, HostIP: ip, Protocol: corev1.ProtocolTCP}}
	}
}

func TestDecide(t *testing.T) {
	for _, r := range []struct {
		name   string
		pod    *corev1.Pod
		others []*corev1.Pod
		want   string
	}{
		{"fits", pod("500m"), []*corev1.Pod{pod("1500m")}, ""},
		{"no cpu left", pod("600m"), []*corev1.Pod{pod("1500m")}, "OutOfcpu"},
		{"no request always fits", pod(""), []*corev1.Pod{pod("2")}, ""},
		{"POD-229 init containers count by their maximum", pod("500m", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					"cpu": resource.MustParse("2100m")}}}}
		}), nil, "OutOfcpu"},
		{"too many Pods", pod(""), []*corev1.Pod{pod(""), pod(""), pod("")}, "OutOfpods"},
		{"a resource that the node has not", pod("", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
		}), nil, "OutOfexample.com/gpu"},
		{"selector matches", pod("", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }),
			nil, ""},
		{"POD-035 selector does not match",
			pod("", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "hdd"} }), nil,
			"NodeAffinity"},
		{"another operating system", pod("", func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: "windows"} }), nil,
			"PodOSNotSupported"},
		{"SET-149 a free port", pod("", port(80, "")), []*corev1.Pod{pod("", port(81, ""))}, ""},
		{"a taken port", pod("", port(80, "10.0.0.1")), []*corev1.Pod{pod("", port(80, ""))}, "NodePorts"},
		{"the same port of another address", pod("", port(80, "10.0.0.1")),
			[]*corev1.Pod{pod("", port(80, "10.0.0.2"))}, ""},
		{"an unsafe sysctl", pod("", func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax",
				Value: "1"}}}
		}), nil, "SysctlForbidden"},
	} {
		t.Run(r.name, func(t *testing.T) {
			got := ""
			if out := Decide(Input{Pod: r.pod, Others: r.others, Node: node()}); out != nil {
				got = out.Reason
			}
			if got != r.want {
				t.Errorf("reason %q, want %q", got, r.want)
			}
		})
	}
}

// The message tells what was asked for and what there is, CPU in thousandths.
func TestOutOf(t *testing.T) {
	memory := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"memory": resource.MustParse("1Gi")}
	}
	for _, r := range []struct {
		pod    *corev1.Pod
		others []*corev1.Pod
		want   string
	}{
		{pod("600m"), []*corev1.Pod{pod("1"), pod("500m")}, "cpu, requested: 600, used: 1500, capacity: 2000"},
		{pod("", memory), []*corev1.Pod{pod("", memory)},
			"memory, requested: 1073741824, used: 1073741824, capacity: 1073741824"},
		{pod("9"), []*corev1.Pod{pod(""), pod(""), pod("")}, "pods, requested: 1, used: 3, capacity: 3"},
	} {
		out := Decide(Input{Pod: r.pod, Others: r.others, Node: node()})
		if want := "Pod was rejected: Node didn't have enough resource: " + r.want; out == nil || out.Message != want {
			t.Errorf("%+v, want %q", out, want)
		}
	}
}
