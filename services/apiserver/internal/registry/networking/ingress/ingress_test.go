package ingress

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func web() networkingv1.IngressBackend { return at("web", "", 80) }

func at(name, port string, number int32) networkingv1.IngressBackend {
	return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: name,
		Port: networkingv1.ServiceBackendPort{Name: port, Number: number}}}
}

func toResource(r corev1.TypedLocalObjectReference) networkingv1.IngressBackend {
	return networkingv1.IngressBackend{Resource: &r}
}

// fallback is for everything that no rule is about.
func fallback(b networkingv1.IngressBackend) *networkingv1.Ingress {
	return &networkingv1.Ingress{Spec: networkingv1.IngressSpec{DefaultBackend: &b}}
}

func hosts(names ...string) *networkingv1.Ingress {
	i := &networkingv1.Ingress{}
	for _, name := range names {
		i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: name})
	}
	return i
}

func paths(kind networkingv1.PathType, texts ...string) *networkingv1.Ingress {
	http := &networkingv1.HTTPIngressRuleValue{}
	for _, text := range texts {
		http.Paths = append(http.Paths, networkingv1.HTTPIngressPath{Path: text, PathType: &kind, Backend: web()})
	}
	i := hosts("")
	i.Spec.Rules[0].HTTP = http
	return i
}

func edited(edit func(*networkingv1.Ingress)) *networkingv1.Ingress {
	i := fallback(web())
	edit(i)
	return i
}

func TestValidate(t *testing.T) {
	const first = "spec.rules[0].http.paths[0]"
	for _, row := range []struct {
		name    string
		ingress *networkingv1.Ingress
		want    []string
	}{
		{"nothing", &networkingv1.Ingress{}, []string{"spec: Invalid value"}},
		{"hosts", hosts("example.com", "*.example.com", ""), nil},
		{"bad hosts", hosts("192.0.2.1", "a_b", "*", "a.*.b"), []string{
			`spec.rules[0].host: Invalid value: "192.0.2.1": must be a DNS name, not an IP address`,
			`spec.rules[1].host: Invalid value: "a_b"`, `spec.rules[2].host: Invalid value: "*"`,
			`spec.rules[3].host: Invalid value: "a.*.b"`}},
		{"no paths", paths("Exact"), []string{"spec.rules[0].http.paths: Required value"}},
		{"paths", paths("Prefix", "/", "/a/b", "/a/.b"), nil},
		{"relative paths", paths("Exact", "", "a"), []string{first + `.path: Invalid value: ""`,
			`spec.rules[0].http.paths[1].path: Invalid value: "a": must be an absolute path`}},
		{"paths that lead elsewhere", paths("Exact", "//", "/./", "/../", "/%2f", "/%2F", "/..", "/."), []string{
			first + ".path: Invalid value: \"//\": must not contain '//'", "spec.rules[0].http.paths[1].path: Invalid",
			"spec.rules[0].http.paths[2].path: Invalid", "spec.rules[0].http.paths[3].path: Invalid",
			"spec.rules[0].http.paths[4].path: Invalid", "spec.rules[0].http.paths[5].path: Invalid",
			"spec.rules[0].http.paths[6].path: Invalid value: \"/.\": cannot end with '/.'"}},
		{"of the controller's kind", paths("ImplementationSpecific", "", "/..", "/a//b"), nil},
		{"of the controller's kind, relative", paths("ImplementationSpecific", "a"),
			[]string{first + ".path: Invalid"}},
		{"of an unknown kind", paths("Regex", "/"), []string{first + `.pathType: Unsupported value: "Regex"`}},
		{"of no kind", paths("", "/"), []string{first + ".pathType: Required value"}},
		{"no backend", fallback(networkingv1.IngressBackend{}), []string{"spec.defaultBackend: Invalid value"}},
		{"two backends", fallback(networkingv1.IngressBackend{Service: web().Service,
			Resource: &corev1.TypedLocalObjectReference{}}), []string{"spec.defaultBackend: Invalid value"}},
		{"named port", fallback(at("web", "http", 0)), nil},
		{"no port", fallback(at("web", "", 0)), []string{"spec.defaultBackend.service.port: Required value"}},
		{"two ports", fallback(at("web", "http", 80)), []string{"spec.defaultBackend.service: Invalid value"}},
		{"last port", fallback(at("web", "", 65535)), nil},
		{"a name that begins with a digit", fallback(at("1web", "http", 0)), nil},
		{"bad ports", fallback(at("web.a", "a_b", 0)), []string{"spec.defaultBackend.service.name: Invalid value",
			"spec.defaultBackend.service.port.name: Invalid value"}},
		{"a port beyond", fallback(at("", "", 65536)), []string{"spec.defaultBackend.service.name: Required value",
			"spec.defaultBackend.service.port.number: Invalid value: 65536"}},
		{"a resource", fallback(toResource(corev1.TypedLocalObjectReference{Kind: "Bucket", Name: "a",
			APIGroup: ptr.To("example.com")})), nil},
		{"a bad resource", fallback(toResource(corev1.TypedLocalObjectReference{APIGroup: ptr.To("a b")})), []string{
			"spec.defaultBackend.resource.apiGroup: Invalid value", "spec.defaultBackend.resource.kind: Required value",
			"spec.defaultBackend.resource.name: Required value"}},
		{"certificates", edited(func(i *networkingv1.Ingress) {
			i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"*.example.com"}, SecretName: "cert"},
				{Hosts: []string{"a_b"}, SecretName: "a_b"}}
		}), []string{"spec.tls[1].hosts[0]: Invalid value", "spec.tls[1].secretName: Invalid value"}},
		{"class", edited(func(i *networkingv1.Ingress) { i.Spec.IngressClassName = ptr.To("public") }), nil},
		{"bad class", edited(func(i *networkingv1.Ingress) { i.Spec.IngressClassName = ptr.To("") }),
			[]string{"spec.ingressClassName: Invalid value"}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, ValidateCreate(row.ingress), row.want...) })
	}
}

// A new Ingress names its class once; one from before may have done so twice.
func TestClassIsNamedOnce(t *testing.T) {
	twice := edited(func(i *networkingv1.Ingress) {
		i.Annotations = map[string]string{"kubernetes.io/ingress.class": "old"}
		i.Spec.IngressClassName = ptr.To("public")
	})
	fieldtest.Check(t, ValidateCreate(twice), `metadata.annotations.kubernetes.io/ingress.class: Invalid value: "old"`)
	fieldtest.Check(t, Resource.Strategy.ValidateUpdate(twice, twice))
	want := []string{
		"annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead"}
	if got := Resource.Strategy.Warnings(twice); !slices.Equal(got, want) {
		t.Errorf("warns %v", got)
	}
	if got := Resource.Strategy.WarningsOnUpdate(fallback(web()), twice); len(got) > 0 {
		t.Errorf("warns %v", got)
	}
}

func TestValidateStatusUpdate(t *testing.T) {
	i := fallback(web())
	i.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"},
		{Hostname: "lb.example.com"}, {IP: "192.0.2"}, {Hostname: "a_b"}, {Hostname: "192.0.2.1"}}
	fieldtest.Check(t, ValidateStatusUpdate(i, i), "status.loadBalancer.ingress[2].ip: Invalid value",
		"status.loadBalancer.ingress[3].hostname: Invalid value",
		`status.loadBalancer.ingress[4].hostname: Invalid value: "192.0.2.1": must be a DNS name, not an IP address`)
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
