package service

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

func TestProxiedPort(t *testing.T) {
	one := service(corev1.ServiceTypeClusterIP)
	one.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}}
	two := service(corev1.ServiceTypeClusterIP)
	two.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "admin", Port: 8080}}
	for _, row := range []struct {
		service *corev1.Service
		asked   string
		want    string
		found   bool
	}{
		{one, "", "http", true}, {one, "80", "http", true}, {one, "http", "http", true}, {one, "8080", "", false},
		{two, "", "", false}, {two, "8080", "admin", true}, {two, "admin", "admin", true}, {two, "other", "", false},
	} {
		got, err := proxiedPort(row.service, row.asked)
		if got != row.want || (err == nil) != row.found {
			t.Errorf("%q of %d: %q, %v", row.asked, len(row.service.Spec.Ports), got, err)
		}
	}
}

// Requests are handed on only to Pods of the Service's own namespace that are ready.
func TestBackends(t *testing.T) {
	pod := func(namespace, name string) *corev1.ObjectReference {
		return &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: name}
	}
	at := func(ip string, ready *bool, target *corev1.ObjectReference) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: []string{ip}, TargetRef: target,
			Conditions: discoveryv1.EndpointConditions{Ready: ready}}
	}
	named := func(name string, port *int32) []discoveryv1.EndpointPort {
		return []discoveryv1.EndpointPort{{Name: &name, Port: port}}
	}
	parts := []discoveryv1.EndpointSlice{
		{AddressType: "IPv4", Ports: named("http", ptr.To[int32](8080)), Endpoints: []discoveryv1.Endpoint{
			at("10.0.0.1", ptr.To(true), pod("ns", "a")), at("10.0.0.2", nil, pod("ns", "b")),
			at("10.0.0.3", ptr.To(false), pod("ns", "unready")), at("10.0.0.4", nil, nil),
			at("10.0.0.5", nil, pod("other", "c")), {TargetRef: pod("ns", "d")},
			at("10.0.0.6", nil, &corev1.ObjectReference{Kind: "Node", Namespace: "ns", Name: "e"}),
		}},
		{AddressType: "IPv6", Ports: named("http", ptr.To[int32](8081)), Endpoints: []discoveryv1.Endpoint{
			at("fd00::1", nil, pod("ns", "a"))}},
		{AddressType: "IPv4", Ports: named("admin", ptr.To[int32](1)), Endpoints: []discoveryv1.Endpoint{
			at("10.0.0.1", nil, pod("ns", "a"))}},
		{AddressType: "IPv4", Ports: named("http", nil), Endpoints: []discoveryv1.Endpoint{
			at("10.0.0.7", nil, pod("ns", "f"))}},
		{AddressType: "FQDN", Ports: named("http", ptr.To[int32](80)), Endpoints: []discoveryv1.Endpoint{
			at("example.com", nil, pod("ns", "g"))}},
	}
	var got []string
	for _, b := range backends("ns", "http", parts) {
		got = append(got, fmt.Sprintf("%s at %s port %d", b.pod, b.ip, b.port))
	}
	want := []string{"a at 10.0.0.1 port 8080", "b at 10.0.0.2 port 8080", "a at fd00::1 port 8081"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestIsAt(t *testing.T) {
	p := &corev1.Pod{Status: corev1.PodStatus{PodIP: "10.0.0.1",
		PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}}}}
	for ip, want := range map[string]bool{"10.0.0.1": true, "fd00::1": true, "10.0.0.2": false, "": false} {
		if got := isAt(p, ip); got != want {
			t.Errorf("%q: %t", ip, got)
		}
	}
}
