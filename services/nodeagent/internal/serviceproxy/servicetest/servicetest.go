// Package servicetest makes Services, EndpointSlices and Nodes for the tests of the Service proxy.
package servicetest

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodePort is the node port that WithNodePorts sets.
const NodePort = 30080

// New returns a Service with one IPv4 port.
func New(change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.50",
		ClusterIPs: []string{"10.96.0.50"},
		Ports:      []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}}}
	for _, c := range change {
		c(s)
	}
	return s
}

// WithNodePorts gives each port of a Service the same node port.
func WithNodePorts(s *corev1.Service) {
	s.Spec.Type = corev1.ServiceTypeNodePort
	for i := range s.Spec.Ports {
		s.Spec.Ports[i].NodePort = NodePort
	}
}

// Balanced gives a Service addresses of a load balancer.
func Balanced(ips ...string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		for _, ip := range ips {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
		}
	}
}

// ExternalLocal keeps external traffic to the node's own endpoints.
func ExternalLocal(s *corev1.Service) {
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
}

// Endpoint parses an endpoint: an address, then any of "here", "there", "ready", "unready", "draining", "ended",
// "node:NAME", "zone:NAME".
func Endpoint(words string) discoveryv1.Endpoint {
	fields := strings.Fields(words)
	e := discoveryv1.Endpoint{Addresses: fields[:1]}
	hints := func() *discoveryv1.EndpointHints {
		if e.Hints == nil {
			e.Hints = &discoveryv1.EndpointHints{}
		}
		return e.Hints
	}
	for _, word := range fields[1:] {
		kind, name, _ := strings.Cut(word, ":")
		switch kind {
		case "here", "there":
			e.NodeName = new(kind)
		case "ready":
			e.Conditions.Ready, e.Conditions.Serving = new(true), new(true)
		case "unready":
			e.Conditions.Ready, e.Conditions.Serving = new(false), new(false)
		case "draining":
			e.Conditions.Ready, e.Conditions.Terminating = new(false), new(true)
		case "ended":
			e.Conditions.Ready, e.Conditions.Serving, e.Conditions.Terminating = new(false), new(false), new(true)
		case "node":
			hints().ForNodes = append(hints().ForNodes, discoveryv1.ForNode{Name: name})
		case "zone":
			hints().ForZones = append(hints().ForZones, discoveryv1.ForZone{Name: name})
		}
	}
	return e
}

// Slice returns a slice of New's port, with endpoints as Endpoint parses them.
func Slice(kind discoveryv1.AddressType, port int32, endpoints ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{AddressType: kind, ObjectMeta: metav1.ObjectMeta{Name: "web-1"},
		Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(port)}}}
	for _, e := range endpoints {
		s.Endpoints = append(s.Endpoints, Endpoint(e))
	}
	return s
}

// NodeAt returns a Node whose agent listens on a port of its addresses.
func NodeAt(name string, agent int32, addresses ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = agent
	for _, a := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return n
}
