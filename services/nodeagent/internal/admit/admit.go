// Package admit decides whether a node admits a Pod that was bound to it. The scheduler has decided the same
// before, but from what it knew; the node has the last word. It is pure.
//
//keelson:decision
package admit

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"keelson.dev/kit/keptport"
	"keelson.dev/kit/noderesources"
	"keelson.dev/services/nodeagent/internal/containerconfig"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/sizes"
)

// Reasons of a refusal, as the API names them; OutOf is followed by the resource.
const (
	outOf                = "OutOf"
	reasonNodeAffinity   = "NodeAffinity"
	reasonNodePorts      = "NodePorts"
	reasonOS             = "PodOSNotSupported"
	reasonSysctl         = "SysctlForbidden"
	operatingSystemLinux = corev1.Linux
)

// Input is all that an admission depends on.
type Input struct {
	Pod *corev1.Pod
	// Others are the Pods that hold resources of the node.
	Others []*corev1.Pod
	// Node has the current labels and allocatable amounts.
	Node *corev1.Node
	// AllowedSysctls are permitted in addition to the safe ones.
	AllowedSysctls []string
	// Kept are the ports of the node that no Pod with a network of its own gets.
	Kept []keptport.Port
	// Devices reports whether a resource belongs to device plugins, which is admitted elsewhere; nil: none does.
	Devices func(corev1.ResourceName) bool
}

// Decide returns why the node refuses the Pod; nil admits it.
func Decide(in Input) *podstate.Outcome {
	for _, check := range []func(Input) *podstate.Outcome{system, affinity, sysctls, kept, ports, fit} {
		if out := check(in); out != nil {
			return out
		}
	}
	return nil
}

func system(in Input) *podstate.Outcome {
	if os := in.Pod.Spec.OS; os != nil && os.Name != operatingSystemLinux {
		return &podstate.Outcome{Reason: reasonOS, Message: "Failed to admit pod as the OS field doesn't match node OS"}
	}
	return nil
}

func affinity(in Input) *podstate.Outcome {
	match, err := nodeaffinity.GetRequiredNodeAffinity(in.Pod).Match(in.Node)
	if err != nil || !match {
		return &podstate.Outcome{Reason: reasonNodeAffinity,
			Message: "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node " +
				"affinity/selector"}
	}
	return nil
}

func sysctls(in Input) *podstate.Outcome {
	if err := containerconfig.CheckSysctls(in.Pod, in.AllowedSysctls); err != nil {
		return &podstate.Outcome{Reason: reasonSysctl, Message: err.Error()}
	}
	return nil
}

// hostPort is a port of the node that a Pod requests.
type hostPort struct {
	ip       string
	protocol corev1.Protocol
	port     int32
}

// kept ignores a Pod on the node's own network: the kernel allows only one process to listen on a port, and the Pod
// may be the keeper itself.
func kept(in Input) *podstate.Outcome {
	if in.Pod.Spec.HostNetwork {
		return nil
	}
	for _, wanted := range hostPorts(in.Pod) {
		protocol := cmp.Or(string(wanted.protocol), keptport.TCP)
		if by, refused := keptport.Refusing(in.Kept, wanted.address(), protocol, uint16(wanted.port)); refused {
			return &podstate.Outcome{Reason: reasonNodePorts, Message: fmt.Sprintf(
				"Pod was rejected: Predicate NodePorts failed: port %d/%s of the node is kept for %s", wanted.port,
				protocol, by.Keeper)}
		}
	}
	return nil
}

func ports(in Input) *podstate.Outcome {
	wanted := hostPorts(in.Pod)
	for _, other := range in.Others {
		for _, taken := range hostPorts(other) {
			if slices.ContainsFunc(wanted, taken.conflicts) {
				return &podstate.Outcome{Reason: reasonNodePorts, Message: fmt.Sprintf(
					"Pod was rejected: Predicate NodePorts failed: port %d/%s of the node is taken by pod %s/%s",
					taken.port, taken.protocol, other.Namespace, other.Name)}
			}
		}
	}
	return nil
}

func hostPorts(pod *corev1.Pod) []hostPort {
	var out []hostPort
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for _, p := range list[i].Ports {
				if p.HostPort > 0 {
					out = append(out, hostPort{ip: p.HostIP, protocol: p.Protocol, port: p.HostPort})
				}
			}
		}
	}
	return out
}

// conflicts reports whether both use the same port and protocol on the same address, or on all addresses for
// either.
func (a hostPort) conflicts(b hostPort) bool {
	if a.port != b.port || a.protocol != b.protocol {
		return false
	}
	return a.ip == b.ip || a.everywhere() || b.everywhere()
}

// address returns the zero Addr for all addresses of the node.
func (a hostPort) address() netip.Addr {
	address, err := netip.ParseAddr(a.ip)
	if err != nil || address.IsUnspecified() {
		return netip.Addr{}
	}
	return address.Unmap()
}

func (a hostPort) everywhere() bool { return a.ip == "" || a.ip == "0.0.0.0" }

// fit refuses the Pod unless the requests of all Pods together stay within what is allocatable.
func fit(in Input) *podstate.Outcome {
	var used noderesources.Usage
	for _, other := range in.Others {
		used.Add(requestsOf(other))
	}
	wanted := requestsOf(in.Pod)
	if in.Devices != nil {
		maps.DeleteFunc(wanted, func(name corev1.ResourceName, _ apiresource.Quantity) bool { return in.Devices(name) })
	}
	lack := used.Insufficient(wanted, in.Node.Status.Allocatable)
	if lack == nil {
		return nil
	}
	return &podstate.Outcome{Reason: outOf + string(lack.Name), Message: "Pod was rejected: " + sizes.Lacks(lack)}
}
