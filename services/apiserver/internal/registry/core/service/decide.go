package service

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// portClaim is one node port that a Service needs: a certain one, or any if port is 0. index tells which entry of
// spec.ports it is for; healthCheckIndex stands for spec.healthCheckNodePort.
type portClaim struct {
	index int
	port  int32
}

const healthCheckIndex = -1

// ipClaim is one cluster IP that a Service needs: a certain one, or any of the family if ip is empty. index tells which
// entry of spec.clusterIPs it is for.
type ipClaim struct {
	index  int
	family corev1.IPFamily
	ip     string
}

// claims is what has to be taken from the ranges before a Service can be stored.
type claims struct {
	ips   []ipClaim
	ports []portClaim
}

// decideClaims tells what s, whose families are settled, needs beyond what old, which is nil for a new Service, already
// has.
func decideClaims(s, old *corev1.Service) claims {
	var held corev1.ServiceSpec
	if old != nil {
		held = old.Spec
	}
	return claims{ips: claimIPs(&s.Spec, held.ClusterIPs), ports: claimPorts(&s.Spec, nodePorts(&held))}
}

// certain are the claims of certain addresses and ports.
func (c claims) certain() claims {
	return claims{
		ips:   slices.DeleteFunc(slices.Clone(c.ips), func(claim ipClaim) bool { return claim.ip == "" }),
		ports: slices.DeleteFunc(slices.Clone(c.ports), func(claim portClaim) bool { return claim.port == 0 }),
	}
}

// claimIPs leaves out what is held already. Those that are asked for by their number come first, so that none is given
// away as any address.
func claimIPs(spec *corev1.ServiceSpec, held []string) []ipClaim {
	if !needsClusterIP(spec) || slices.Contains(spec.ClusterIPs, corev1.ClusterIPNone) {
		return nil
	}
	var found []ipClaim
	for i, ip := range spec.ClusterIPs {
		if !slices.Contains(held, ip) {
			found = append(found, ipClaim{index: i, ip: ip})
		}
	}
	for i := len(spec.ClusterIPs); i < len(spec.IPFamilies); i++ {
		found = append(found, ipClaim{index: i, family: spec.IPFamilies[i]})
	}
	return found
}

// claimPorts leaves out what is held already. One number may serve several protocols of a Service.
func claimPorts(spec *corev1.ServiceSpec, held []int32) []portClaim {
	var found []portClaim
	if mayHaveNodePorts(spec) {
		seen := slices.Clone(held)
		for i, port := range spec.Ports {
			switch {
			case port.NodePort == 0 && needsNodePorts(spec):
				found = append(found, portClaim{index: i})
			case port.NodePort != 0 && !slices.Contains(seen, port.NodePort):
				found = append(found, portClaim{index: i, port: port.NodePort})
				seen = append(seen, port.NodePort)
			}
		}
	}
	if needsHealthCheckPort(spec) && (spec.HealthCheckNodePort == 0 ||
		!slices.Contains(held, spec.HealthCheckNodePort)) {
		found = append(found, portClaim{index: healthCheckIndex, port: spec.HealthCheckNodePort})
	}
	// Those who ask for a certain port come first, so that none is given away as any port.
	slices.SortStableFunc(found, func(a, b portClaim) int {
		switch {
		case (a.port == 0) == (b.port == 0):
			return 0
		case a.port != 0:
			return -1
		}
		return 1
	})
	return found
}

// nodePorts lists every port that a Service has open on the Nodes.
func nodePorts(spec *corev1.ServiceSpec) []int32 {
	var ports []int32
	for _, port := range spec.Ports {
		if port.NodePort != 0 {
			ports = append(ports, port.NodePort)
		}
	}
	if spec.HealthCheckNodePort != 0 {
		ports = append(ports, spec.HealthCheckNodePort)
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// inherit keeps in s what old was given and the request leaves out: a client that replaces a Service with its own
// manifest does not mean to give up the cluster IP and the node ports.
func inherit(s, old *corev1.Service) {
	now, was := &s.Spec, &old.Spec
	if needsClusterIP(now) && needsClusterIP(was) {
		if now.ClusterIP == "" && len(now.ClusterIPs) == 0 {
			now.ClusterIP, now.ClusterIPs = was.ClusterIP, slices.Clone(was.ClusterIPs)
		}
		if len(now.IPFamilies) == 0 {
			now.IPFamilies = slices.Clone(was.IPFamilies)
		}
		if now.IPFamilyPolicy == nil {
			now.IPFamilyPolicy = was.IPFamilyPolicy
		}
		dropSecondFamily(now, was)
	}
	if needsNodePorts(now) && mayHaveNodePorts(was) {
		inheritNodePorts(now.Ports, was.Ports)
	}
	if needsHealthCheckPort(now) && needsHealthCheckPort(was) && now.HealthCheckNodePort == 0 {
		now.HealthCheckNodePort = was.HealthCheckNodePort
	}
}

func inheritNodePorts(now, was []corev1.ServicePort) {
	var asked []int32
	for _, port := range now {
		if port.NodePort != 0 {
			asked = append(asked, port.NodePort)
		}
	}
	for i := range now {
		if now[i].NodePort != 0 {
			continue
		}
		for _, port := range was {
			if port.Port == now[i].Port && port.Protocol == now[i].Protocol && !slices.Contains(asked, port.NodePort) {
				now[i].NodePort = port.NodePort
				break
			}
		}
	}
}

// dropDependents clears in s what only the type of old had a use for, if the request has not touched it.
func dropDependents(s, old *corev1.Service) {
	now, was := &s.Spec, &old.Spec
	if needsClusterIP(was) && !needsClusterIP(now) && slices.Equal(now.ClusterIPs, was.ClusterIPs) {
		now.ClusterIP, now.ClusterIPs, now.IPFamilies, now.IPFamilyPolicy = "", nil, nil, nil
		now.InternalTrafficPolicy = nil
	}
	dropPorts(now, was)
	if externallyAccessible(was) && !externallyAccessible(now) &&
		now.ExternalTrafficPolicy == was.ExternalTrafficPolicy {
		now.ExternalTrafficPolicy = ""
	}
	if was.Type == corev1.ServiceTypeLoadBalancer && now.Type != corev1.ServiceTypeLoadBalancer {
		now.AllocateLoadBalancerNodePorts, now.LoadBalancerClass = nil, nil
	}
}

// dropPorts clears the ports on the Nodes that the new type has no use for.
func dropPorts(now, was *corev1.ServiceSpec) {
	if mayHaveNodePorts(was) && !mayHaveNodePorts(now) {
		held := nodePorts(was)
		for i := range now.Ports {
			if slices.Contains(held, now.Ports[i].NodePort) {
				now.Ports[i].NodePort = 0
			}
		}
	}
	if needsHealthCheckPort(was) && !needsHealthCheckPort(now) && now.HealthCheckNodePort == was.HealthCheckNodePort {
		now.HealthCheckNodePort = 0
	}
}

// normalize brings the two forms of the cluster IP together. old is nil for a new Service; else the form that differs
// from old's is what the client means.
func normalize(s, old *corev1.Service) {
	spec := &s.Spec
	if old != nil && spec.ClusterIP != old.Spec.ClusterIP && slices.Equal(spec.ClusterIPs, old.Spec.ClusterIPs) {
		spec.ClusterIPs = nil
	}
	if spec.ClusterIP != "" && len(spec.ClusterIPs) == 0 {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
	if spec.ClusterIP == "" && old != nil && old.Spec.ClusterIP == "" && len(spec.ClusterIPs) > 0 {
		spec.ClusterIP = spec.ClusterIPs[0]
	}
}
