package containerconfig

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/userns"
)

// A Pod has a user namespace exactly if it requests one.
func TestOwnUsers(t *testing.T) {
	own := &userns.Range{First: 131072, Length: 65536}
	for name, row := range map[string]struct {
		asks *bool
		own  *userns.Range
		ok   bool
	}{
		"asks and has": {ptr.To(false), own, true}, "asks and has none": {ptr.To(false), nil, false},
		"asks for the host's": {ptr.To(true), nil, true}, "asks for the host's and has its own": {ptr.To(true), own,
			false},
		"asks for nothing": {nil, nil, true}, "asks for nothing and has its own": {nil, own, false},
	} {
		pod := named("web", func(s *corev1.PodSpec) { s.HostUsers = row.asks })
		config, err := Sandbox(SandboxInput{Pod: pod, UserNamespace: row.own, UserNamespaces: true})
		if (err == nil) != row.ok || err != nil && config != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (config.Linux.SecurityContext.NamespaceOptions.UsernsOptions != nil) != (row.own != nil) {
			t.Errorf("%s: %v", name, config.Linux.SecurityContext.NamespaceOptions)
		}
	}
}

// POD-061: the requested host ports of all containers.
func TestPortMappings(t *testing.T) {
	ports := func(p ...corev1.ContainerPort) []corev1.Container { return []corev1.Container{{Ports: p}} }
	pod := named("web", func(s *corev1.PodSpec) {
		s.InitContainers = ports(corev1.ContainerPort{ContainerPort: 1, HostPort: 10, Protocol: "SCTP"})
		s.Containers = append(ports(corev1.ContainerPort{ContainerPort: 2}, corev1.ContainerPort{ContainerPort: 3,
			HostPort: 30, Protocol: "TCP", HostIP: "192.0.2.1"}), ports(corev1.ContainerPort{ContainerPort: 4,
			HostPort: 40})...)
	})
	want := []*cri.PortMapping{{Protocol: cri.Protocol_SCTP, ContainerPort: 1, HostPort: 10},
		{Protocol: cri.Protocol_TCP, ContainerPort: 3, HostPort: 30, HostIp: "192.0.2.1"},
		{Protocol: cri.Protocol_TCP, ContainerPort: 4, HostPort: 40}}
	if got := sandbox(t, pod).PortMappings; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// POD-233: the runtime gets the size of the Pod, and separately its overhead.
func TestSandboxResources(t *testing.T) {
	amounts := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
			corev1.ResourceMemory: resource.MustParse(memory)}
	}
	pod := named("web", func(s *corev1.PodSpec) {
		s.Containers[0].Resources = corev1.ResourceRequirements{Requests: amounts("250m", "1Mi"),
			Limits: amounts("500m", "64Mi")}
	})
	bare := sandbox(t, pod).Linux
	want := &cri.LinuxContainerResources{CpuShares: 256, CpuQuota: 50000, CpuPeriod: 100000,
		MemoryLimitInBytes: 64 << 20}
	if !reflect.DeepEqual(bare.Resources, want) || bare.Overhead != nil {
		t.Errorf("%v and %v, want %v", bare.Resources, bare.Overhead, want)
	}
	pod.Spec.Overhead = amounts("125m", "8Mi")
	whole := sandbox(t, pod).Linux
	overhead := &cri.LinuxContainerResources{CpuShares: 128, MemoryLimitInBytes: 8 << 20}
	if !reflect.DeepEqual(whole.Resources, want) || !reflect.DeepEqual(whole.Overhead, overhead) {
		t.Errorf("%v and %v, want %v and %v", whole.Resources, whole.Overhead, want, overhead)
	}
}

// SAF-018: each pair of switches leads to its own namespaces; hostPID shows processes of the host regardless of
// sharing.
func TestNamespaces(t *testing.T) {
	const host, pod, alone = cri.NamespaceMode_NODE, cri.NamespaceMode_POD, cri.NamespaceMode_CONTAINER
	for name, row := range map[string]struct {
		change            func(*corev1.PodSpec)
		network, pid, ipc cri.NamespaceMode
	}{
		"nothing":   {nil, pod, alone, pod},
		"network":   {func(s *corev1.PodSpec) { s.HostNetwork = true }, host, alone, pod},
		"processes": {func(s *corev1.PodSpec) { s.HostPID = true }, pod, host, pod},
		"memory":    {func(s *corev1.PodSpec) { s.HostIPC = true }, pod, alone, host},
		"shared processes": {func(s *corev1.PodSpec) { s.ShareProcessNamespace = ptr.To(true) }, pod, pod,
			pod},
		"expressly not shared": {func(s *corev1.PodSpec) { s.ShareProcessNamespace = ptr.To(false) }, pod, alone,
			pod},
		"shared and those of a host": {func(s *corev1.PodSpec) {
			s.ShareProcessNamespace, s.HostPID = ptr.To(true),
				true
		}, pod, host, pod},
	} {
		p := named("web", row.change)
		for what, got := range map[string]*cri.NamespaceOption{
			"sandbox":   sandbox(t, p).Linux.SecurityContext.NamespaceOptions,
			"container": container(t, p, nil).Linux.SecurityContext.NamespaceOptions,
		} {
			if got.Network != row.network || got.Pid != row.pid || got.Ipc != row.ipc || got.TargetId != "" {
				t.Errorf("%s: the %s has %v", name, what, got)
			}
		}
	}
}

// The node sets what identifies a sandbox; the Pod's own labels and annotations are added unchanged.
func TestSandboxIdentity(t *testing.T) {
	pod := named("web", nil)
	pod.Labels = map[string]string{"io.kubernetes.pod.name": "forged", "io.kubernetes.pod.namespace": "forged",
		"io.kubernetes.pod.uid": "forged", "app": "web"}
	pod.Annotations = map[string]string{"a": "b"}
	before := pod.DeepCopy()
	config := sandbox(t, pod)
	if want := map[string]string{"io.kubernetes.pod.name": "web", "io.kubernetes.pod.namespace": "foo",
		"io.kubernetes.pod.uid": "u-1", "app": "web"}; !maps.Equal(config.Labels, want) {
		t.Errorf("labels %v, want %v", config.Labels, want)
	}
	config.Annotations["more"] = "x"
	if !reflect.DeepEqual(before, pod) {
		t.Error("the Pod was changed")
	}
	if m := config.Metadata; m.Name != "web" || m.Namespace != "foo" || m.Uid != "u-1" {
		t.Errorf("metadata %v", m)
	}
	if got := LogDir(pod); got != "foo_web_u-1" {
		t.Errorf("logs lie in %s", got)
	}
	long := named(strings.Repeat("n", 60), func(s *corev1.PodSpec) {
		s.Subdomain, s.SetHostnameAsFQDN = "nginx", ptr.To(true)
	})
	if config, err := Sandbox(SandboxInput{Pod: long, Node: Node{ClusterDomain: "kube.local"}}); err == nil ||
		config != nil {
		t.Errorf("a name that the kernel does not take: %v, %v", config, err)
	}
	long.Spec.HostNetwork = true
	if config, err := Sandbox(SandboxInput{Pod: long, Node: Node{ClusterDomain: "kube.local"}}); err != nil ||
		config.Hostname != "" {
		t.Errorf("on the host's network the name is the host's: %v, %v", config, err)
	}
}
