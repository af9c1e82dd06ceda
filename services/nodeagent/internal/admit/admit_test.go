package admit

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/keptport"
)

func node() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"kubernetes.io/os": "linux", "disk": "ssd"}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi"), "pods": resource.MustParse("3"),
			"example.com/none": resource.MustParse("0")}},
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

func port(n int32, ip string, protocol ...corev1.Protocol) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: n, HostIP: ip,
			Protocol: append(protocol, corev1.ProtocolTCP)[0]}}
	}
}

func affineTo(disks ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: disks}}}}}}}
	}
}

func asking(name corev1.ResourceName) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{name: resource.MustParse("1")}
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
		{"an extended resource that the node does not name", pod("", asking("example.com/gpu")), nil, ""},
		{"an extended resource of which there is none", pod("", asking("example.com/none")), nil,
			"OutOfexample.com/none"},
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
		{"all that there is", pod("2"), nil, ""},
		{"more than there is", pod("2001m"), nil, "OutOfcpu"},
		{"the last Pod", pod(""), []*corev1.Pod{pod(""), pod("")}, ""},
		{"this operating system", pod("", func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: "linux"} }), nil, ""},
		{"POD-035 affinity matches", pod("", affineTo("ssd", "nvme")), nil, ""},
		{"POD-035 affinity does not match", pod("", affineTo("hdd")), nil, "NodeAffinity"},
		{"the same port by another protocol", pod("", port(80, "", corev1.ProtocolUDP)),
			[]*corev1.Pod{pod("", port(80, ""))}, ""},
		{"the same port everywhere", pod("", port(80, "0.0.0.0")), []*corev1.Pod{pod("", port(80, "10.0.0.1"))},
			"NodePorts"},
		{"the same port of the same address", pod("", port(80, "10.0.0.1")),
			[]*corev1.Pod{pod("", port(80, "10.0.0.1"))}, "NodePorts"},
		{"a port that all addresses but one leave free", pod("", port(80, "10.0.0.1")),
			[]*corev1.Pod{pod("", port(80, "0.0.0.0"))}, "NodePorts"},
		{"a port of an init container", pod("", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i", Ports: []corev1.ContainerPort{{HostPort: 80,
				Protocol: corev1.ProtocolTCP}}}}
		}), []*corev1.Pod{pod("", port(80, ""))}, "NodePorts"},
		{"a port that is not one of the node's", pod("", port(0, "")), []*corev1.Pod{pod("", port(0, ""))}, ""},
		{"the second of two Pods holds the port", pod("", port(80, "")),
			[]*corev1.Pod{pod("", port(81, "")), pod("", port(80, ""))}, "NodePorts"},
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

// A sysctl that is not safe is admitted if the node allows it.
func TestAllowedSysctls(t *testing.T) {
	unsafe := pod("", func(p *corev1.Pod) {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax",
			Value: "1"}}}
	})
	for allowed, want := range map[string]bool{"kernel.msgmax": true, "kernel.msg*": true, "kernel.sem": false} {
		out := Decide(Input{Pod: unsafe, Node: node(), AllowedSysctls: []string{allowed}})
		if (out == nil) != want {
			t.Errorf("with %s allowed: %+v, want it taken in: %v", allowed, out, want)
		}
	}
}

// The message says which port is taken, and by which Pod.
func TestNodePortsMessage(t *testing.T) {
	out := Decide(Input{Pod: pod("", port(80, "")), Others: []*corev1.Pod{pod("", port(80, "10.0.0.1"))}, Node: node()})
	want := "Pod was rejected: Predicate NodePorts failed: port 80/TCP of the node is taken by pod ns/p"
	if out == nil || out.Message != want {
		t.Errorf("%+v, want %q", out, want)
	}
}

// SET-149: no Pod with a network of its own gets the ports that the node keeps, at any address, and the message
// names the keeper.
func TestKeptPorts(t *testing.T) {
	kept := []keptport.Port{{Keeper: "apiserver", Protocol: keptport.TCP, First: 6443, Last: 6443},
		{Keeper: "nodeagent", Protocol: keptport.TCP, Address: netip.MustParseAddr("192.0.2.1"), First: 10250,
			Last: 10250},
		{Keeper: "scheduler", Protocol: keptport.TCP, Address: netip.MustParseAddr("127.0.0.1"), First: 20001,
			Last: 20001}}
	kept = append(kept, keptport.NodePorts()...)
	onHost := func(p *corev1.Pod) { p.Spec.HostNetwork = true }
	early := func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "i", Ports: []corev1.ContainerPort{{HostPort: 6443,
			Protocol: corev1.ProtocolTCP}}}}
	}
	for _, r := range []struct {
		name string
		pod  *corev1.Pod
		want string
	}{
		{"another port", pod("", port(6444, "")), ""},
		{"everywhere", pod("", port(6443, "")), "6443/TCP of the node is kept for apiserver"},
		{"everywhere, written out", pod("", port(6443, "0.0.0.0")), "6443/TCP of the node is kept for apiserver"},
		{"at an address", pod("", port(6443, "192.0.2.9")), "6443/TCP of the node is kept for apiserver"},
		{"of an init container", pod("", early), "6443/TCP of the node is kept for apiserver"},
		{"without a protocol", pod("", port(6443, "", "")), "6443/TCP of the node is kept for apiserver"},
		{"of another protocol", pod("", port(6443, "", corev1.ProtocolUDP)), ""},
		{"everywhere, kept at an address", pod("", port(10250, "::")), "10250/TCP of the node is kept for nodeagent"},
		{"at the address", pod("", port(10250, "192.0.2.1")), "10250/TCP of the node is kept for nodeagent"},
		{"at another address", pod("", port(10250, "192.0.2.2")), ""},
		{"where nobody from beyond asks", pod("", port(20001, "")), ""},
		{"at the loopback address", pod("", port(20001, "127.0.0.1")), "20001/TCP of the node is kept for scheduler"},
		{"a node port", pod("", port(30080, "", corev1.ProtocolSCTP)), "30080/SCTP of the node is kept for node-ports"},
		{"the apiserver itself, on the node's network", pod("", port(6443, ""), onHost), ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			out := Decide(Input{Pod: r.pod, Node: node(), Kept: kept})
			if r.want == "" && out != nil {
				t.Errorf("refused: %+v", out)
			}
			want := "Pod was rejected: Predicate NodePorts failed: port " + r.want
			if r.want != "" && (out == nil || out.Reason != "NodePorts" || out.Message != want) {
				t.Errorf("%+v, want %q", out, want)
			}
		})
	}
}

// The message has the requested and the available amount, CPU in thousandths.
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

// A resource of device plugins is not checked here, because the allocated devices are known elsewhere.
func TestDevicesAreAdmittedElsewhere(t *testing.T) {
	in := Input{Pod: pod("", asking("example.com/none")), Node: node()}
	if why := Decide(in); why == nil || why.Reason != "OutOfexample.com/none" {
		t.Errorf("without plugins: %+v", why)
	}
	in.Devices = func(name corev1.ResourceName) bool { return name == "example.com/none" }
	if why := Decide(in); why != nil {
		t.Errorf("with a plugin: %+v", why)
	}
	in.Devices = func(name corev1.ResourceName) bool { return name == "example.com/other" }
	if why := Decide(in); why == nil {
		t.Error("a plugin of another resource")
	}
}
