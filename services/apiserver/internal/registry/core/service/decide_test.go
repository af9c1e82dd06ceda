package service

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

func TestDefault(t *testing.T) {
	s := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}},
		SessionAffinity: corev1.ServiceAffinityClientIP}}
	Default(s)
	port := s.Spec.Ports[0]
	if s.Spec.Type != corev1.ServiceTypeClusterIP || port.Protocol != corev1.ProtocolTCP ||
		port.TargetPort.IntVal != 80 ||
		*s.Spec.InternalTrafficPolicy != corev1.ServiceInternalTrafficPolicyCluster ||
		*s.Spec.SessionAffinityConfig.ClientIP.TimeoutSeconds != 10800 || s.Spec.ExternalTrafficPolicy != "" {
		t.Errorf("got %+v", s.Spec)
	}
	for _, kind := range serviceTypes {
		s := service(kind)
		again := s.DeepCopy()
		if Default(again); !equality.Semantic.DeepEqual(s, again) {
			t.Errorf("%s: defaults are not idempotent", kind)
		}
	}
	if lb := service(corev1.ServiceTypeLoadBalancer); !*lb.Spec.AllocateLoadBalancerNodePorts ||
		lb.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyCluster {
		t.Errorf("load balancer %+v", lb.Spec)
	}
}

func TestDecideClaims(t *testing.T) {
	bare := func(s *corev1.Service) {
		s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].NodePort = 0
		}
	}
	const cluster, nodePort, balancer, external = corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort,
		corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName
	for _, row := range []struct {
		name   string
		s, old *corev1.Service
		want   claims
	}{
		{"new", service(cluster, bare), nil, claims{anyIP: true}},
		{"new with an address", service(cluster), nil, claims{ip: "10.96.0.7"}},
		{"new, headless", service(cluster, func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "None",
				[]string{"None"}
		}), nil, claims{}},
		{"DEP-226 new load balancer", service(balancer, bare), nil,
			claims{anyIP: true, ports: []portClaim{{index: 0}}}},
		{"load balancer without node ports",
			service(balancer, bare, func(s *corev1.Service) { s.Spec.AllocateLoadBalancerNodePorts = ptr.To(false) }),
			nil, claims{anyIP: true}},
		{"load balancer that asks its Nodes",
			service(balancer, func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = "Local" }), service(balancer),
			claims{ports: []portClaim{{index: healthCheckIndex}}}},
		{"external name", service(external), nil, claims{}},
		{"unchanged", service(nodePort), service(nodePort), claims{}},
		{"certain ports before any", service(nodePort, func(s *corev1.Service) {
			s.Spec.Ports = []corev1.ServicePort{{Name: "a", Port: 1}, {Name: "b", Port: 2, NodePort: 30002}}
		}), nil, claims{ip: "10.96.0.7", ports: []portClaim{{1, 30002}, {0, 0}}}},
		{"one number for two protocols", service(nodePort, func(s *corev1.Service) {
			s.Spec.Ports = []corev1.ServicePort{{Name: "a", Port: 53, Protocol: "TCP", NodePort: 30053},
				{Name: "b", Port: 53, Protocol: "UDP", NodePort: 30053}}
		}), service(nodePort), claims{ports: []portClaim{{0, 30053}}}},
		{"back from external name", service(cluster, bare), service(external), claims{anyIP: true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := row.s.DeepCopy()
			if got := decideClaims(row.s, row.old); !reflect.DeepEqual(got, row.want) {
				t.Errorf("got %+v, want %+v", got, row.want)
			}
			if !equality.Semantic.DeepEqual(before, row.s) {
				t.Error("the decision changed its input")
			}
		})
	}
}

func TestInheritAndDrop(t *testing.T) {
	const cluster, nodePort, balancer, external = corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort,
		corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName
	bare := func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs, s.Spec.Ports[0].NodePort = "", nil, 0 }
	update := func(s, old *corev1.Service) *corev1.Service {
		inherit(s, old)
		dropDependents(s, old)
		normalize(s, old)
		return s
	}
	t.Run("a client that leaves out keeps", func(t *testing.T) {
		s := update(service(nodePort, bare), service(nodePort))
		if s.Spec.ClusterIP != "10.96.0.7" || !slices.Equal(s.Spec.ClusterIPs, []string{"10.96.0.7"}) ||
			s.Spec.Ports[0].NodePort != 30080 {
			t.Errorf("got %+v", s.Spec)
		}
	})
	t.Run("another port gets another node port", func(t *testing.T) {
		s := update(service(nodePort, bare, func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 }), service(nodePort))
		if s.Spec.Ports[0].NodePort != 0 {
			t.Errorf("node port %d", s.Spec.Ports[0].NodePort)
		}
	})
	t.Run("to an external name", func(t *testing.T) {
		s := service(nodePort)
		s.Spec.Type = external
		update(s, service(nodePort))
		if s.Spec.ClusterIP != "" || s.Spec.ClusterIPs != nil || s.Spec.Ports[0].NodePort != 0 ||
			s.Spec.IPFamilies != nil || s.Spec.ExternalTrafficPolicy != "" {
			t.Errorf("got %+v", s.Spec)
		}
	})
	t.Run("from a load balancer to inside", func(t *testing.T) {
		old := service(balancer, func(s *corev1.Service) {
			s.Spec.ExternalTrafficPolicy,
				s.Spec.HealthCheckNodePort = "Local", 30099
		})
		s := old.DeepCopy()
		s.Spec.Type = cluster
		update(s, old)
		if s.Spec.ClusterIP == "" || s.Spec.Ports[0].NodePort != 0 || s.Spec.HealthCheckNodePort != 0 ||
			s.Spec.AllocateLoadBalancerNodePorts != nil || s.Spec.ExternalTrafficPolicy != "" {
			t.Errorf("got %+v", s.Spec)
		}
	})
	t.Run("an address that is asked for anew is not papered over", func(t *testing.T) {
		s := service(cluster, func(s *corev1.Service) { s.Spec.ClusterIP = "10.96.0.8" })
		if update(s, service(cluster)); !slices.Equal(s.Spec.ClusterIPs, []string{"10.96.0.8"}) {
			t.Errorf("clusterIPs %v", s.Spec.ClusterIPs)
		}
	})
	for _, kind := range serviceTypes {
		s := service(kind)
		if update(s, s.DeepCopy()); !equality.Semantic.DeepEqual(s, service(kind)) {
			t.Errorf("%s: an update to itself changes it: %+v", kind, s.Spec)
		}
	}
}
