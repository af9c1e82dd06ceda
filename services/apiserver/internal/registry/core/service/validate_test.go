package service

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

// service is a defaulted Service of a type that has been given what it needs, after edits.
func service(kind corev1.ServiceType, edits ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: corev1.ServiceSpec{Type: kind, Selector: map[string]string{"app": "web"},
			Ports: []corev1.ServicePort{{Port: 80}}},
	}
	switch kind {
	case corev1.ServiceTypeExternalName:
		s.Spec.ExternalName = "example.com"
	case corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer:
		s.Spec.Ports[0].NodePort = 30080
		fallthrough
	default:
		s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.0.7", []string{"10.96.0.7"}
	}
	for _, edit := range edits {
		edit(s)
	}
	Default(s)
	settleFamilies(s, nil, []corev1.IPFamily{corev1.IPv4Protocol})
	return s
}

func TestValidate(t *testing.T) {
	const cluster, nodePort, balancer, external = corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort,
		corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName
	ports := func(ports ...corev1.ServicePort) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Spec.Ports = ports }
	}
	headlessEdit := func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "None", []string{"None"} }
	for _, row := range []struct {
		name string
		kind corev1.ServiceType
		edit func(*corev1.Service)
		want []string
	}{
		{"POD-225 plain", cluster,
			func(s *corev1.Service) { s.Spec.Selector = nil; s.Spec.Ports[0].TargetPort = intstr.FromInt32(9376) },
			nil},
		{"node port", nodePort, func(*corev1.Service) {}, nil},
		{"DEP-225 load balancer", balancer, func(*corev1.Service) {}, nil},
		{"external name", external, func(s *corev1.Service) { s.Spec.Ports = nil }, nil},
		{"headless without ports", cluster, func(s *corev1.Service) { headlessEdit(s); s.Spec.Ports = nil }, nil},
		{"unknown type", "Other", func(*corev1.Service) {},
			[]string{
				`spec.type: Unsupported value: "Other": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"`}},
		{"no ports", cluster, ports(), []string{"spec.ports: Required value"}},
		{"two ports without names", cluster, ports(corev1.ServicePort{Port: 80}, corev1.ServicePort{Port: 81}),
			[]string{"spec.ports[0].name: Required value", "spec.ports[1].name: Required value"}},
		{"the same name", cluster, ports(corev1.ServicePort{Name: "a", Port: 80}, corev1.ServicePort{Name: "a",
			Port: 81}), []string{`spec.ports[1].name: Duplicate value: "a"`}},
		{"the same port", cluster, ports(corev1.ServicePort{Name: "a", Port: 80}, corev1.ServicePort{Name: "b",
			Port: 80}), []string{"spec.ports[1]: Duplicate value"}},
		{"one port, two protocols", cluster, ports(corev1.ServicePort{Name: "a", Port: 53, Protocol: "TCP"},
			corev1.ServicePort{Name: "b", Port: 53, Protocol: "UDP"}), nil},
		{"the same node port", nodePort, ports(corev1.ServicePort{Name: "a", Port: 80, NodePort: 30001},
			corev1.ServicePort{Name: "b", Port: 81, NodePort: 30001}),
			[]string{"spec.ports[1].nodePort: Duplicate value: 30001"}},
		{"node port without the type", cluster, ports(corev1.ServicePort{Port: 80, NodePort: 30001}),
			[]string{"spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"}},
		{"bad port", cluster, ports(corev1.ServicePort{Name: "A", Port: 70000, Protocol: "ICMP",
			TargetPort: intstr.FromString("a_b"), AppProtocol: ptr.To("a b")}), []string{
			`spec.ports[0].name: Invalid value: "A"`, "spec.ports[0].port: Invalid value: 70000",
			`spec.ports[0].protocol: Unsupported value: "ICMP"`,
			`spec.ports[0].targetPort: Invalid value: "a_b"`, `spec.ports[0].appProtocol: Invalid value: "a b"`}},
		{"bad selector", cluster, func(s *corev1.Service) { s.Spec.Selector = map[string]string{"a b": "c"} },
			[]string{"spec.selector: Invalid value"}},
		{"affinity", cluster, func(s *corev1.Service) { s.Spec.SessionAffinity = "ClientIP" }, nil},
		{"unknown affinity", cluster, func(s *corev1.Service) { s.Spec.SessionAffinity = "Sometimes" },
			[]string{`spec.sessionAffinity: Unsupported value: "Sometimes"`}},
		{"affinity too long", cluster, func(s *corev1.Service) {
			s.Spec.SessionAffinity = "ClientIP"
			s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{
				TimeoutSeconds: ptr.To[int32](86401)}}
		}, []string{"spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401"}},
		{"headless with node ports", nodePort, headlessEdit,
			[]string{"spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"}},
		{"headless load balancer", balancer, headlessEdit,
			[]string{
				"spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for LoadBalancer services"}},
		{"external name with an address", external, func(s *corev1.Service) {
			s.Spec.ClusterIP,
				s.Spec.ClusterIPs = "10.96.0.7", []string{"10.96.0.7"}
		}, []string{"spec.clusterIPs: Forbidden"}},
		{"external name without the name", external, func(s *corev1.Service) { s.Spec.ExternalName = "" },
			[]string{"spec.externalName: Required value"}},
		{"external name that is none", external, func(s *corev1.Service) { s.Spec.ExternalName = "a_b" },
			[]string{"spec.externalName: Invalid value"}},
		{"external name that ends in a dot", external, func(s *corev1.Service) { s.Spec.ExternalName = "example.com." },
			nil},
		{"no address", cluster, func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "web",
				[]string{"web"}
		}, []string{"spec.clusterIPs[0]: Invalid value"}},
		{"addresses that differ", cluster, func(s *corev1.Service) { s.Spec.ClusterIPs = []string{"10.96.0.8"} },
			[]string{"spec.clusterIPs[0]: Invalid value: \"10.96.0.8\": must match `clusterIP`"}},
		{"two of each", cluster, func(s *corev1.Service) {
			s.Spec.ClusterIPs, s.Spec.IPFamilies = []string{"10.96.0.7", "fd00::7"}, []corev1.IPFamily{"IPv4", "IPv6"}
		}, nil},
		{"three of each", cluster, func(s *corev1.Service) {
			s.Spec.ClusterIPs = []string{"10.96.0.7", "fd00::7", "10.96.0.8"}
			s.Spec.IPFamilies = []corev1.IPFamily{"IPv4", "IPv6", "IPv4"}
		}, []string{"spec.clusterIPs: Invalid value", "spec.ipFamilies: Invalid value"}},
		{"two of a family", cluster, func(s *corev1.Service) {
			s.Spec.ClusterIPs = []string{"10.96.0.7", "10.96.0.8"}
			s.Spec.IPFamilies = []corev1.IPFamily{"IPv4", "IPv4"}
		}, []string{"spec.clusterIPs: Invalid value", `spec.ipFamilies[1]: Duplicate value: "IPv4"`}},
		{"none and one", cluster, func(s *corev1.Service) { s.Spec.ClusterIPs = []string{"10.96.0.7", "None"} },
			[]string{"spec.clusterIPs[1]: Invalid value: \"None\": 'None' must be the first and only value"}},
		{"of another family", cluster, func(s *corev1.Service) { s.Spec.IPFamilies = []corev1.IPFamily{"IPv6"} },
			[]string{"spec.clusterIPs[0]: Invalid value: \"10.96.0.7\": expected an IPv6 value as indicated by " +
				"`ipFamilies[0]`"}},
		{"unknown family and policy", cluster, func(s *corev1.Service) {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "None", []string{"None"}
			s.Spec.IPFamilies = []corev1.IPFamily{"IPv5"}
			s.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicy("Some"))
		}, []string{`spec.ipFamilies[0]: Unsupported value: "IPv5"`, `spec.ipFamilyPolicy: Unsupported value: "Some"`}},
		{"external IP", cluster, func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"192.0.2.1", "127.0.0.1"} },
			[]string{`spec.externalIPs[1]: Invalid value: "127.0.0.1": may not be in the loopback range`}},
		{"external policy of a Service inside", cluster,
			func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = "Local" },
			[]string{"spec.externalTrafficPolicy: Invalid value"}},
		{"unknown policies", nodePort, func(s *corev1.Service) {
			s.Spec.ExternalTrafficPolicy, s.Spec.InternalTrafficPolicy, s.Spec.TrafficDistribution = "Some",
				ptr.To(corev1.ServiceInternalTrafficPolicy("Some")), ptr.To("Some")
		}, []string{`spec.externalTrafficPolicy: Unsupported value: "Some"`,
			`spec.internalTrafficPolicy: Unsupported value: "Some"`,
			`spec.trafficDistribution: Unsupported value: "Some"`}},
		{"health check port without use", nodePort, func(s *corev1.Service) { s.Spec.HealthCheckNodePort = 30099 },
			[]string{"spec.healthCheckNodePort: Invalid value: 30099"}},
		{"fields of a load balancer", cluster, func(s *corev1.Service) {
			s.Spec.AllocateLoadBalancerNodePorts, s.Spec.LoadBalancerClass,
				s.Spec.LoadBalancerSourceRanges = ptr.To(true), ptr.To("x.y/z"), []string{"10.0.0.0/8"}
		}, []string{"spec.allocateLoadBalancerNodePorts: Forbidden", "spec.loadBalancerClass: Forbidden",
			"spec.loadBalancerSourceRanges: Forbidden"}},
		{"bad fields of a load balancer", balancer, func(s *corev1.Service) {
			s.Spec.LoadBalancerClass, s.Spec.LoadBalancerSourceRanges = ptr.To("a b"), []string{"10.0.0.0"}
		}, []string{`spec.loadBalancerClass: Invalid value: "a b"`,
			`spec.loadBalancerSourceRanges[0]: Invalid value: "10.0.0.0"`}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(service(row.kind, row.edit)), row.want...) })
	}
}

func TestValidateUpdate(t *testing.T) {
	const cluster, balancer, external = corev1.ServiceTypeClusterIP, corev1.ServiceTypeLoadBalancer,
		corev1.ServiceTypeExternalName
	two := func(policy corev1.IPFamilyPolicy, second string) func(*corev1.Service) {
		return func(s *corev1.Service) {
			s.Spec.ClusterIPs, s.Spec.IPFamilyPolicy = []string{"10.96.0.7", second}, &policy
			s.Spec.IPFamilies = []corev1.IPFamily{"IPv4", "IPv6"}
		}
	}
	asks := func(port int32) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = "Local", port }
	}
	move := func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.96.0.8", []string{"10.96.0.8"} }
	for _, row := range []struct {
		name   string
		s, old *corev1.Service
		want   []string
	}{
		{"itself", service(cluster), service(cluster), nil},
		{"another type with the same address", service(balancer), service(cluster), nil},
		{"another address", service(cluster, move), service(cluster),
			[]string{"spec.clusterIPs[0]: Invalid value: [\"10.96.0.8\"]: may not change once set"}},
		{"another address after none", service(cluster, move), service(external), nil},
		{"another class", service(balancer, func(s *corev1.Service) { s.Spec.LoadBalancerClass = ptr.To("a/b") }),
			service(balancer), []string{"spec.loadBalancerClass: Invalid value: \"a/b\": may not change once set"}},
		{"another family", service(cluster, func(s *corev1.Service) { s.Spec.IPFamilies = []corev1.IPFamily{"IPv6"} }),
			service(cluster), []string{"spec.ipFamilies[0]: Invalid value: [\"IPv6\"]: may not change once set",
				"spec.clusterIPs[0]: Invalid value: \"10.96.0.7\": expected an IPv6 value"}},
		{"a second family", service(cluster, two("RequireDualStack", "fd00::7")), service(cluster), nil},
		{"another second address", service(cluster, two("RequireDualStack", "fd00::8")),
			service(cluster, two("RequireDualStack", "fd00::7")),
			[]string{"spec.clusterIPs[1]: Invalid value: [\"10.96.0.7\",\"fd00::8\"]: may not change once set"}},
		{"the second family goes", service(cluster), service(cluster, two("PreferDualStack", "fd00::7")), nil},
		{"the second family goes and is asked for", service(cluster, func(s *corev1.Service) {
			s.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyPreferDualStack)
		}), service(cluster, two("PreferDualStack", "fd00::7")), []string{
			"spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be set to 'SingleStack' when releasing " +
				"the secondary clusterIP", "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be set to " +
				"'SingleStack' when releasing the secondary ipFamily"}},
		{"another port to ask its Nodes at", service(balancer, asks(30098)), service(balancer, asks(30099)),
			[]string{"spec.healthCheckNodePort: Forbidden: field is immutable"}},
		{"a first port to ask its Nodes at", service(balancer, asks(30098)), service(balancer), nil},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, ValidateUpdate(row.s, row.old), row.want...) })
	}
}

func TestValidateStatusUpdate(t *testing.T) {
	vip, odd := corev1.LoadBalancerIPModeVIP, corev1.LoadBalancerIPMode("Odd")
	for _, row := range []struct {
		name    string
		ingress corev1.LoadBalancerIngress
		want    []string
	}{
		{"address", corev1.LoadBalancerIngress{IP: "192.0.2.1", IPMode: &vip}, nil},
		{"name", corev1.LoadBalancerIngress{Hostname: "lb.example.com"}, nil},
		{"bad address", corev1.LoadBalancerIngress{IP: "192.0.2", IPMode: &vip},
			[]string{"status.loadBalancer.ingress[0].ip: Invalid value"}},
		{"unknown mode", corev1.LoadBalancerIngress{IP: "192.0.2.1", IPMode: &odd},
			[]string{"status.loadBalancer.ingress[0].ipMode: Unsupported value"}},
		{"mode of a name", corev1.LoadBalancerIngress{Hostname: "lb.example.com", IPMode: &vip},
			[]string{"status.loadBalancer.ingress[0].ipMode: Forbidden"}},
		{"address as a name", corev1.LoadBalancerIngress{Hostname: "192.0.2.1"},
			[]string{"status.loadBalancer.ingress[0].hostname: Invalid value"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := service(corev1.ServiceTypeLoadBalancer)
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{row.ingress}
			fieldtest.Check(t, ValidateStatusUpdate(s, s), row.want...)
		})
	}
}

// What a controller says of a Service is its own: it may leave out when, and why.
func TestConditionsAreTheirWriters(t *testing.T) {
	s := service(corev1.ServiceTypeLoadBalancer)
	s.Status.Conditions = []metav1.Condition{{Type: "StatusUpdate", Status: "True", Reason: "E2E"},
		{Type: "StatusUpdate", Status: "Maybe"}, {}}
	fieldtest.Check(t, ValidateStatusUpdate(s, s))
}
