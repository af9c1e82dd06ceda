package service

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/defaults"
)

// defaultAffinitySeconds is how long a client is sent to the same Pod: three hours.
const defaultAffinitySeconds = 3 * 60 * 60

// Default fills in the fields that s leaves out, except those that are allocated.
func Default(s *corev1.Service) {
	spec := &s.Spec
	defaults.Set(&spec.Type, corev1.ServiceTypeClusterIP)
	defaultAffinity(spec)
	for i := range spec.Ports {
		defaultPort(&spec.Ports[i])
	}
	if spec.ExternalTrafficPolicy == "" && externallyAccessible(spec) {
		spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	if spec.InternalTrafficPolicy == nil && needsClusterIP(spec) {
		spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		defaults.SetPtr(&spec.AllocateLoadBalancerNodePorts, true)
		defaultIngress(s.Status.LoadBalancer.Ingress)
	}
}

func defaultAffinity(spec *corev1.ServiceSpec) {
	switch spec.SessionAffinity {
	case "":
		spec.SessionAffinity = corev1.ServiceAffinityNone
		spec.SessionAffinityConfig = nil
	case corev1.ServiceAffinityNone:
		spec.SessionAffinityConfig = nil
	case corev1.ServiceAffinityClientIP:
		if spec.SessionAffinityConfig == nil || spec.SessionAffinityConfig.ClientIP == nil ||
			spec.SessionAffinityConfig.ClientIP.TimeoutSeconds == nil {
			spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{
				ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](defaultAffinitySeconds)},
			}
		}
	}
}

func defaultPort(port *corev1.ServicePort) {
	defaults.Set(&port.Protocol, corev1.ProtocolTCP)
	if port.TargetPort == intstr.FromInt32(0) || port.TargetPort == intstr.FromString("") {
		port.TargetPort = intstr.FromInt32(port.Port)
	}
}

func defaultIngress(ingress []corev1.LoadBalancerIngress) {
	for i := range ingress {
		if ingress[i].IP != "" && ingress[i].IPMode == nil {
			ingress[i].IPMode = ptr.To(corev1.LoadBalancerIPModeVIP)
		}
	}
}

// needsClusterIP reports whether a Service of this type has a cluster IP, be it None.
func needsClusterIP(spec *corev1.ServiceSpec) bool {
	switch spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer:
		return true
	}
	return false
}

// needsNodePorts reports whether each port of the Service is to be open on the Nodes.
func needsNodePorts(spec *corev1.ServiceSpec) bool {
	return spec.Type == corev1.ServiceTypeNodePort ||
		spec.Type == corev1.ServiceTypeLoadBalancer && ptr.Deref(spec.AllocateLoadBalancerNodePorts, true)
}

// mayHaveNodePorts reports whether a client may ask for node ports.
func mayHaveNodePorts(spec *corev1.ServiceSpec) bool {
	return spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeLoadBalancer
}

// needsHealthCheckPort reports whether a load balancer asks the Nodes which of them have Pods.
func needsHealthCheckPort(spec *corev1.ServiceSpec) bool {
	return spec.Type == corev1.ServiceTypeLoadBalancer &&
		spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// externallyAccessible reports whether traffic from outside the cluster can reach the Service.
func externallyAccessible(spec *corev1.ServiceSpec) bool {
	return mayHaveNodePorts(spec) || spec.Type == corev1.ServiceTypeClusterIP && len(spec.ExternalIPs) > 0
}

func headless(spec *corev1.ServiceSpec) bool {
	return len(spec.ClusterIPs) == 1 && spec.ClusterIPs[0] == corev1.ClusterIPNone
}
