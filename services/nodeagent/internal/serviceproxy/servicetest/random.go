package servicetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func chance(r *rand.Rand, of int) bool { return r.IntN(of) == 0 }

// Random returns the objects of one of a few Services, which compete for addresses.
func Random(r *rand.Rand, name string, number int) (*corev1.Service, []*discoveryv1.EndpointSlice) {
	s := New(func(s *corev1.Service) {
		s.Name = name
		s.CreationTimestamp = metav1.NewTime(time.Unix(int64(r.IntN(3)), 0))
		s.Spec.ClusterIP = fmt.Sprintf("10.96.0.%d", number+1)
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
		if chance(r, 2) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "dns", Protocol: "UDP", Port: 53})
		}
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].NodePort = int32(30000 + r.IntN(3))
		}
		s.Spec.Type = []corev1.ServiceType{"ClusterIP", "NodePort", "LoadBalancer", "ExternalName"}[r.IntN(4)]
		if chance(r, 2) {
			s.Spec.ExternalIPs = []string{fmt.Sprintf("10.96.0.%d", r.IntN(6)), "198.51.100.1"}
		}
		if chance(r, 2) {
			balancedIP := fmt.Sprintf("203.0.113.%d", r.IntN(2))
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: balancedIP}}
		}
		if chance(r, 3) {
			s.Spec.LoadBalancerSourceRanges = []string{fmt.Sprintf("10.0.0.0/%d", 8+r.IntN(3)), "192.0.2.0/24"}
		}
		if chance(r, 3) {
			s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		}
		if chance(r, 3) {
			ExternalLocal(s)
		}
		if chance(r, 3) {
			s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
		}
	})
	var all []*discoveryv1.EndpointSlice
	hinted := chance(r, 2)
	for range r.IntN(3) {
		slice := Slice(discoveryv1.AddressTypeIPv4, int32(8080+r.IntN(2)))
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: new("dns"), Protocol: new(corev1.ProtocolUDP),
			Port: new(int32(5353))})
		for range r.IntN(5) {
			words := fmt.Sprintf("10.244.1.%d ", 1+r.IntN(4)) +
				[]string{"", "ready", "unready", "draining", "ended"}[r.IntN(5)] + [...]string{" here", " there",
				""}[r.IntN(3)]
			if hinted && !chance(r, 6) {
				words += fmt.Sprintf(" zone:z%d node:%s", r.IntN(3), []string{"here", "there"}[r.IntN(2)])
			}
			slice.Endpoints = append(slice.Endpoints, Endpoint(words))
		}
		all = append(all, slice)
	}
	return s, all
}
