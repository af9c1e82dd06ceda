package containerconfig

import (
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/qos"
	"keelson.dev/services/nodeagent/internal/userns"
)

// SandboxInput is all that a Pod's sandbox depends on.
type SandboxInput struct {
	Node
	Pod     *corev1.Pod
	Attempt uint32
	// LogDir is the host's folder of the Pod's logs, CgroupParent the Pod's cgroup in the form of the cgroup driver.
	LogDir, CgroupParent string
	// UserNamespace is the Pod's range of host IDs; nil for a Pod in the host's user namespace.
	UserNamespace *userns.Range
	// UserNamespaces reports whether the runtime handler of the Pod supports user namespaces.
	UserNamespaces bool
}

// ErrUserNamespaces means that the Pod must not run on this node, because the runtime would give it the host's
// users.
var ErrUserNamespaces = errors.New(
	"pod asks for a user namespace (hostUsers: false), which this node's container runtime does not support for its " +
		"runtime class")

// OwnUsers reports whether the Pod needs a user namespace.
func OwnUsers(pod *corev1.Pod) bool { return !ptr.Deref(pod.Spec.HostUsers, true) }

// Sandbox computes the configuration of a Pod's sandbox.
func Sandbox(in SandboxInput) (*cri.PodSandboxConfig, error) {
	pod := in.Pod
	if OwnUsers(pod) && !in.UserNamespaces {
		return nil, ErrUserNamespaces
	}
	if OwnUsers(pod) != (in.UserNamespace != nil) {
		return nil,
			errors.New("a pod has a range of host IDs exactly if it asks for a user namespace (hostUsers: false)")
	}
	labels := podLabels(pod)
	maps.Copy(labels, pod.Labels)
	maps.Copy(labels, podLabels(pod)) // a Pod's own labels never replace the sandbox's identity
	config := &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID),
			Attempt: in.Attempt},
		LogDirectory: in.LogDir,
		Labels:       labels,
		Annotations:  maps.Clone(pod.Annotations),
		PortMappings: portMappings(pod),
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent:    in.CgroupParent,
			SecurityContext: sandboxSecurity(in),
			Sysctls:         sysctls(pod),
			Resources:       sandboxResources(pod),
			Overhead:        overhead(pod),
		},
	}
	config.DnsConfig, _ = DNS(pod, in.Node)
	if !pod.Spec.HostNetwork {
		hostname, err := kernelHostname(pod, in.ClusterDomain)
		if err != nil {
			return nil, err
		}
		config.Hostname = hostname
	}
	return config, nil
}

// portMappings lists the host ports of all containers; none on the host's network.
func portMappings(pod *corev1.Pod) []*cri.PortMapping {
	var mappings []*cri.PortMapping
	if pod.Spec.HostNetwork {
		return nil
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for _, port := range list[i].Ports {
				if port.HostPort > 0 {
					mappings = append(mappings, &cri.PortMapping{
						Protocol: protocol(port.Protocol), ContainerPort: port.ContainerPort, HostPort: port.HostPort,
						HostIp: port.HostIP})
				}
			}
		}
	}
	return mappings
}

func protocol(p corev1.Protocol) cri.Protocol {
	switch p {
	case corev1.ProtocolUDP:
		return cri.Protocol_UDP
	case corev1.ProtocolSCTP:
		return cri.Protocol_SCTP
	}
	return cri.Protocol_TCP
}

func sandboxSecurity(in SandboxInput) *cri.LinuxSandboxSecurityContext {
	pod := in.Pod
	security := &cri.LinuxSandboxSecurityContext{
		NamespaceOptions: namespaces(pod, in.UserNamespace),
		Privileged:       anyPrivileged(pod),
		Seccomp:          &cri.SecurityProfile{ProfileType: cri.SecurityProfile_RuntimeDefault},
	}
	if context := pod.Spec.SecurityContext; context != nil {
		security.SelinuxOptions = selinux(context.SELinuxOptions)
		security.RunAsUser = int64Value(context.RunAsUser)
		if context.RunAsUser != nil {
			security.RunAsGroup = int64Value(context.RunAsGroup)
		}
		security.SupplementalGroups = podGroups(pod)
		security.SupplementalGroupsPolicy = groupsPolicy(context)
	}
	return security
}

// namespaces returns which namespaces the Pod shares with the host or among its containers.
func namespaces(pod *corev1.Pod, own *userns.Range) *cri.NamespaceOption {
	options := &cri.NamespaceOption{Network: cri.NamespaceMode_POD, Pid: cri.NamespaceMode_CONTAINER,
		Ipc: cri.NamespaceMode_POD}
	if pod.Spec.HostNetwork {
		options.Network = cri.NamespaceMode_NODE
	}
	if pod.Spec.HostIPC {
		options.Ipc = cri.NamespaceMode_NODE
	}
	if pod.Spec.HostPID {
		options.Pid = cri.NamespaceMode_NODE
	} else if ptr.Deref(pod.Spec.ShareProcessNamespace, false) {
		options.Pid = cri.NamespaceMode_POD
	}
	if own != nil {
		options.UsernsOptions = &cri.UserNamespace{Mode: cri.NamespaceMode_POD, Uids: mapping(own), Gids: mapping(own)}
	}
	return options
}

// mapping maps ID 0 in the Pod to the first ID of the range on the host.
func mapping(own *userns.Range) []*cri.IDMapping {
	return []*cri.IDMapping{{HostId: own.First, ContainerId: 0, Length: own.Length}}
}

func anyPrivileged(pod *corev1.Pod) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if privileged(&list[i]) {
				return true
			}
		}
	}
	return false
}

func sysctls(pod *corev1.Pod) map[string]string {
	out := map[string]string{}
	if pod.Spec.SecurityContext != nil {
		for _, sysctl := range pod.Spec.SecurityContext.Sysctls {
			out[sysctlName(sysctl.Name)] = sysctl.Value
		}
	}
	return out
}

// sandboxResources returns the resources of the whole Pod, for runtimes that must know them at the start.
func sandboxResources(pod *corev1.Pod) *cri.LinuxContainerResources {
	options := resource.PodResourcesOptions{ExcludeOverhead: true}
	requests, limits := resource.PodRequests(pod, options), resource.PodLimits(pod, options)
	return &cri.LinuxContainerResources{
		CpuShares:          qos.CPUShares(requests.Cpu().MilliValue()),
		CpuQuota:           qos.CPUQuota(limits.Cpu().MilliValue()),
		CpuPeriod:          qos.CPUPeriod,
		MemoryLimitInBytes: limits.Memory().Value(),
	}
}

func overhead(pod *corev1.Pod) *cri.LinuxContainerResources {
	if len(pod.Spec.Overhead) == 0 {
		return nil
	}
	return &cri.LinuxContainerResources{
		CpuShares:          qos.CPUShares(pod.Spec.Overhead.Cpu().MilliValue()),
		MemoryLimitInBytes: pod.Spec.Overhead.Memory().Value(),
	}
}

// LogDir returns the name of the folder of a Pod's logs, in the node's log root.
func LogDir(pod *corev1.Pod) string {
	return fmt.Sprintf("%s_%s_%s", pod.Namespace, pod.Name, pod.UID)
}
