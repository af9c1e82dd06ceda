package service

import (
	"reflect"
	"slices"
	"strings"
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
	anyIP := []ipClaim{{family: "IPv4"}}
	certain := func(ip string) []ipClaim { return []ipClaim{{ip: ip}} }
	const six = "fd00::7"
	both := func(ips ...string) func(*corev1.Service) {
		return func(s *corev1.Service) {
			s.Spec.ClusterIPs, s.Spec.IPFamilies = ips, []corev1.IPFamily{"IPv4", "IPv6"}
			s.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
		}
	}
	for _, row := range []struct {
		name   string
		s, old *corev1.Service
		want   claims
	}{
		{"two families", service(cluster, bare, both()), nil,
			claims{ips: []ipClaim{{family: "IPv4"}, {index: 1, family: "IPv6"}}}},
		{"a second family", service(cluster, both("10.96.0.7")), service(cluster),
			claims{ips: []ipClaim{{index: 1, family: "IPv6"}}}},
		{"a certain second address", service(cluster, both("10.96.0.7", six)), service(cluster),
			claims{ips: []ipClaim{{index: 1, ip: six}}}},
		{"both that it has", service(cluster, both("10.96.0.7", six)), service(cluster, both("10.96.0.7", six)),
			claims{}},
		{"new", service(cluster, bare), nil, claims{ips: anyIP}},
		{"new with an address", service(cluster), nil, claims{ips: certain("10.96.0.7")}},
		{"new, headless", service(cluster, func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "None",
				[]string{"None"}
		}), nil, claims{}},
		{"DEP-226 new load balancer", service(balancer, bare), nil,
			claims{ips: anyIP, ports: []portClaim{{index: 0}}}},
		{"load balancer without node ports",
			service(balancer, bare, func(s *corev1.Service) { s.Spec.AllocateLoadBalancerNodePorts = ptr.To(false) }),
			nil, claims{ips: anyIP}},
		{"load balancer that asks its Nodes",
			service(balancer, func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = "Local" }), service(balancer),
			claims{ports: []portClaim{{index: -1}}}},
		{"external name", service(external), nil, claims{}},
		{"unchanged", service(nodePort), service(nodePort), claims{}},
		{"certain ports before any", service(nodePort, func(s *corev1.Service) {
			s.Spec.Ports = []corev1.ServicePort{{Name: "a", Port: 1}, {Name: "b", Port: 2, NodePort: 30002}}
		}), nil, claims{ips: certain("10.96.0.7"), ports: []portClaim{{1, 30002}, {0, 0}}}},
		{"one number for two protocols", service(nodePort, func(s *corev1.Service) {
			s.Spec.Ports = []corev1.ServicePort{{Name: "a", Port: 53, Protocol: "TCP", NodePort: 30053},
				{Name: "b", Port: 53, Protocol: "UDP", NodePort: 30053}}
		}), service(nodePort), claims{ports: []portClaim{{0, 30053}}}},
		{"back from external name", service(cluster, bare), service(external), claims{ips: anyIP}},
		{"the address that it has", service(cluster), service(cluster), claims{}},
		{"another address", service(cluster, func(s *corev1.Service) { s.Spec.ClusterIPs = []string{"10.96.0.8"} }),
			service(cluster), claims{ips: certain("10.96.0.8")}},
		{"from an address to none", service(cluster, func(s *corev1.Service) { s.Spec.ClusterIPs = []string{"None"} }),
			service(cluster), claims{}},
		{"new node port", service(nodePort, bare), nil, claims{ips: anyIP, ports: []portClaim{{index: 0}}}},
		{"new with a certain node port", service(nodePort), nil,
			claims{ips: certain("10.96.0.7"), ports: []portClaim{{index: 0, port: 30080}}}},
		{"node ports of a type that has none", service(cluster, func(s *corev1.Service) {
			s.Spec.Ports[0].NodePort = 30080
		}), nil, claims{ips: certain("10.96.0.7")}},
		{"load balancer without node ports that asks for one", service(balancer, func(s *corev1.Service) {
			s.Spec.AllocateLoadBalancerNodePorts = ptr.To(false)
		}), nil, claims{ips: certain("10.96.0.7"), ports: []portClaim{{index: 0, port: 30080}}}},
		{"a certain port to ask its Nodes at", service(balancer, asksNodes(30099)), service(balancer),
			claims{ports: []portClaim{{index: -1, port: 30099}}}},
		{"the port that it asks its Nodes at", service(balancer, asksNodes(30099)), service(balancer, asksNodes(30099)),
			claims{}},
		{"another port to ask its Nodes at", service(balancer, asksNodes(30098)), service(balancer, asksNodes(30099)),
			claims{ports: []portClaim{{index: -1, port: 30098}}}},
		{"any and certain ones, each in their order", service(balancer, asksNodes(30099), func(s *corev1.Service) {
			s.Spec.Ports = []corev1.ServicePort{{Name: "a", Port: 1}, {Name: "b", Port: 2, NodePort: 30002},
				{Name: "c", Port: 3}, {Name: "d", Port: 4, NodePort: 30001}}
		}), nil, claims{ips: certain("10.96.0.7"), ports: []portClaim{{1, 30002}, {3, 30001}, {-1, 30099}, {0, 0},
			{2, 0}}}},
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

// asksNodes makes a load balancer ask the Nodes at a port which of them have Pods.
func asksNodes(port int32) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = corev1.ServiceExternalTrafficPolicyLocal, port
	}
}

// A request leaves out what it does not mean to change, and says what it does; an old Service of another type has left
// what only that type has a use for.
func TestUpdates(t *testing.T) {
	const cluster, nodePort, balancer, external = corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort,
		corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName
	type edit = func(*corev1.ServiceSpec)
	becomes := func(kind corev1.ServiceType) edit { return func(s *corev1.ServiceSpec) { s.Type = kind } }
	two := func(first, second corev1.ServicePort) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Spec.Ports = []corev1.ServicePort{first, second} }
	}
	tcp := func(port, node int32) corev1.ServicePort {
		return corev1.ServicePort{Port: port, NodePort: node, Protocol: corev1.ProtocolTCP}
	}
	udp := corev1.ServicePort{Port: 53, NodePort: 30054, Protocol: corev1.ProtocolUDP}
	class := func(s *corev1.Service) { s.Spec.LoadBalancerClass = ptr.To("example.com/lb") }
	for _, row := range []struct {
		name string
		old  *corev1.Service
		// asked turns the old spec into the request, want the request into what is stored.
		asked, want edit
	}{
		{"no address at all", service(cluster), func(s *corev1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = "", nil },
			func(s *corev1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = "10.96.0.7", []string{"10.96.0.7"} }},
		{"only the list of a new address", service(cluster), func(s *corev1.ServiceSpec) {
			s.ClusterIP, s.ClusterIPs = "", []string{"10.96.0.8"}
		}, func(*corev1.ServiceSpec) {}},
		{"only a new address", service(cluster), func(s *corev1.ServiceSpec) {
			s.ClusterIP, s.ClusterIPs = "10.96.0.8", nil
		}, func(s *corev1.ServiceSpec) { s.ClusterIPs = []string{"10.96.0.8"} }},
		{"both forms of a new address", service(cluster), func(s *corev1.ServiceSpec) {
			s.ClusterIP, s.ClusterIPs = "10.96.0.8", []string{"10.96.0.9"}
		}, func(*corev1.ServiceSpec) {}},
		{"the address emptied", service(cluster), func(s *corev1.ServiceSpec) { s.ClusterIP = "" },
			func(s *corev1.ServiceSpec) { s.ClusterIPs = nil }},
		{"families alone left out", service(cluster), func(s *corev1.ServiceSpec) { s.IPFamilies = nil },
			func(s *corev1.ServiceSpec) { s.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol} }},
		{"their policy alone left out", service(cluster), func(s *corev1.ServiceSpec) { s.IPFamilyPolicy = nil },
			func(s *corev1.ServiceSpec) { s.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicySingleStack) }},
		{"families and policy of its own", service(cluster), func(s *corev1.ServiceSpec) {
			s.IPFamilies, s.IPFamilyPolicy = []corev1.IPFamily{corev1.IPv6Protocol},
				ptr.To(corev1.IPFamilyPolicyPreferDualStack)
		}, func(*corev1.ServiceSpec) {}},
		{"an external name leaves nothing to keep", service(external, func(s *corev1.Service) {
			s.Spec.ClusterIP = "odd"
		}), func(s *corev1.ServiceSpec) { s.Type, s.ClusterIP = cluster, "" }, func(*corev1.ServiceSpec) {}},
		{"an external name to an address's list", service(external), func(s *corev1.ServiceSpec) {
			s.Type, s.ClusterIPs = cluster, []string{"10.96.0.8"}
		}, func(s *corev1.ServiceSpec) { s.ClusterIP = "10.96.0.8" }},

		{"a port of another protocol", service(nodePort, two(tcp(53, 30053), udp)), func(s *corev1.ServiceSpec) {
			s.Ports = []corev1.ServicePort{udp, tcp(53, 0)}
			s.Ports[0].NodePort = 0
		}, func(s *corev1.ServiceSpec) { s.Ports[0].NodePort, s.Ports[1].NodePort = 30054, 30053 }},
		{"a node port that another port asks for", service(nodePort, two(tcp(1, 30001), tcp(2, 30002))),
			func(s *corev1.ServiceSpec) { s.Ports[0].NodePort, s.Ports[1].NodePort = 0, 30001 },
			func(*corev1.ServiceSpec) {}},
		{"the node port of the second alone", service(nodePort, two(tcp(1, 30001), tcp(2, 30002))),
			func(s *corev1.ServiceSpec) { s.Ports[1].NodePort = 0 },
			func(s *corev1.ServiceSpec) { s.Ports[1].NodePort = 30002 }},
		{"another node port", service(nodePort), func(s *corev1.ServiceSpec) { s.Ports[0].NodePort = 30081 },
			func(*corev1.ServiceSpec) {}},
		{"node ports of one without", service(cluster), becomes(nodePort), func(*corev1.ServiceSpec) {}},
		{"a load balancer that wants none any more", service(balancer), func(s *corev1.ServiceSpec) {
			s.AllocateLoadBalancerNodePorts, s.Ports[0].NodePort = ptr.To(false), 0
		}, func(*corev1.ServiceSpec) {}},
		{"the port at which Nodes are asked", service(balancer, asksNodes(30099)), func(s *corev1.ServiceSpec) {
			s.HealthCheckNodePort = 0
		}, func(s *corev1.ServiceSpec) { s.HealthCheckNodePort = 30099 }},
		{"another port at which Nodes are asked", service(balancer, asksNodes(30099)), func(s *corev1.ServiceSpec) {
			s.HealthCheckNodePort = 30098
		}, func(*corev1.ServiceSpec) {}},
		{"Nodes are asked for the first time", service(balancer, func(s *corev1.Service) {
			s.Spec.HealthCheckNodePort = 30099 // of one that the library refuses
		}), func(s *corev1.ServiceSpec) { s.ExternalTrafficPolicy, s.HealthCheckNodePort = "Local", 0 },
			func(*corev1.ServiceSpec) {}},

		{"to an external name", service(nodePort), becomes(external), func(s *corev1.ServiceSpec) {
			s.ClusterIP, s.ClusterIPs, s.IPFamilies, s.IPFamilyPolicy, s.InternalTrafficPolicy = "", nil, nil, nil, nil
			s.ExternalTrafficPolicy, s.Ports[0].NodePort = "", 0
		}},
		{"to an external name, with another address", service(cluster), func(s *corev1.ServiceSpec) {
			s.Type, s.ClusterIP, s.ClusterIPs = external, "10.96.0.8", []string{"10.96.0.8"}
		}, func(*corev1.ServiceSpec) {}},
		{"to one inside, with another node port", service(nodePort), func(s *corev1.ServiceSpec) {
			s.Type, s.Ports[0].NodePort = cluster, 30081
		}, func(s *corev1.ServiceSpec) { s.ExternalTrafficPolicy = "" }},
		{"to one inside, with another policy", service(nodePort), func(s *corev1.ServiceSpec) {
			s.Type, s.ExternalTrafficPolicy = cluster, "Local"
		}, func(s *corev1.ServiceSpec) { s.Ports[0].NodePort = 0 }},
		{"to one inside that the outside reaches", service(nodePort, func(s *corev1.Service) {
			s.Spec.ExternalIPs = []string{"192.0.2.1"}
		}), becomes(cluster), func(s *corev1.ServiceSpec) { s.Ports[0].NodePort = 0 }},
		{"from a load balancer to its Nodes", service(balancer, class, asksNodes(30099)), becomes(nodePort),
			func(s *corev1.ServiceSpec) {
				s.AllocateLoadBalancerNodePorts, s.LoadBalancerClass, s.HealthCheckNodePort = nil, nil, 0
			}},
		{"from Nodes to a load balancer of a class", service(nodePort), func(s *corev1.ServiceSpec) {
			s.Type, s.LoadBalancerClass = balancer, ptr.To("example.com/lb")
		}, func(*corev1.ServiceSpec) {}},
		{"a load balancer keeps its class", service(balancer, class), func(*corev1.ServiceSpec) {},
			func(*corev1.ServiceSpec) {}},
		{"Nodes are asked no more", service(balancer, asksNodes(30099)), func(s *corev1.ServiceSpec) {
			s.ExternalTrafficPolicy = "Cluster"
		}, func(s *corev1.ServiceSpec) { s.HealthCheckNodePort = 0 }},
		{"Nodes are asked no more, at another port", service(balancer, asksNodes(30099)),
			func(s *corev1.ServiceSpec) { s.ExternalTrafficPolicy, s.HealthCheckNodePort = "Cluster", 30098 },
			func(*corev1.ServiceSpec) {}},
	} {
		t.Run(row.name, func(t *testing.T) {
			before, s := row.old.DeepCopy(), row.old.DeepCopy()
			row.asked(&s.Spec)
			want := s.DeepCopy()
			row.want(&want.Spec)
			inherit(s, row.old)
			dropDependents(s, row.old)
			normalize(s, row.old)
			if !equality.Semantic.DeepEqual(s, want) {
				t.Errorf("stored is\n%+v, want\n%+v", s.Spec, want.Spec)
			}
			if !equality.Semantic.DeepEqual(before, row.old) {
				t.Error("the stored Service was changed")
			}
		})
	}
}

func TestNormalizeANewOne(t *testing.T) {
	for _, row := range []struct{ ip, ips, wantIP, wantIPs string }{
		{"", "", "", ""}, {"10.96.0.8", "", "10.96.0.8", "10.96.0.8"}, {"None", "", "None", "None"},
		{"", "10.96.0.8", "", "10.96.0.8"}, {"10.96.0.8", "10.96.0.9", "10.96.0.8", "10.96.0.9"},
	} {
		s := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: row.ip, ClusterIPs: strings.Fields(row.ips)}}
		normalize(s, nil)
		if s.Spec.ClusterIP != row.wantIP || strings.Join(s.Spec.ClusterIPs, " ") != row.wantIPs {
			t.Errorf("%q and [%s] become %q and %v, want %q and [%s]", row.ip, row.ips, s.Spec.ClusterIP,
				s.Spec.ClusterIPs, row.wantIP, row.wantIPs)
		}
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
