package endpointslice

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

type edit = func(*discoveryv1.EndpointSlice)

func slice(edits ...edit) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{AddressType: "IPv4"}
	for _, edit := range edits {
		edit(s)
	}
	Default(s)
	return s
}

func at(addresses ...string) edit {
	return func(s *discoveryv1.EndpointSlice) {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: addresses})
	}
}

func of(family discoveryv1.AddressType) edit {
	return func(s *discoveryv1.EndpointSlice) { s.AddressType = family }
}

func endpoints(n int) edit {
	return func(s *discoveryv1.EndpointSlice) {
		for range n {
			at("10.0.0.1")(s)
		}
	}
}

func port(p discoveryv1.EndpointPort) edit {
	return func(s *discoveryv1.EndpointSlice) { s.Ports = append(s.Ports, p) }
}

func portsNamed(n int) edit {
	return func(s *discoveryv1.EndpointSlice) {
		for i := range n {
			port(discoveryv1.EndpointPort{Name: ptr.To(fmt.Sprintf("p%d", i))})(s)
		}
	}
}

func numbered(n int) []string {
	all := make([]string, 0, n)
	for i := range n {
		all = append(all, fmt.Sprintf("10.0.0.%d", i+1))
	}
	return all
}

func hints(zones, nodes []string) edit {
	return func(s *discoveryv1.EndpointSlice) {
		h := &discoveryv1.EndpointHints{}
		for _, zone := range zones {
			h.ForZones = append(h.ForZones, discoveryv1.ForZone{Name: zone})
		}
		for _, node := range nodes {
			h.ForNodes = append(h.ForNodes, discoveryv1.ForNode{Name: node})
		}
		s.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Hints: h}}
	}
}

func letters(n int) []string {
	all := make([]string, 0, n)
	for i := range n {
		all = append(all, string(rune('a'+i)))
	}
	return all
}

func TestValidate(t *testing.T) {
	for _, row := range []struct {
		name  string
		slice *discoveryv1.EndpointSlice
		want  []string
	}{
		{"empty", slice(), nil},
		{"no family", slice(of("")), []string{"addressType: Required value"}},
		{"family", slice(of("IPX")), []string{
			`addressType: Unsupported value: "IPX": supported values: "FQDN", "IPv4", "IPv6"`}},
		{"most endpoints", slice(endpoints(1000)), nil},
		{"one more", slice(endpoints(1001)), []string{"endpoints: Too many: 1001: must have at most 1000 items"}},
		{"no address", slice(at()),
			[]string{"endpoints[0].addresses: Required value: must contain at least 1 address"}},
		{"most addresses", slice(at(numbered(100)...)), nil},
		{"an address more", slice(at(numbered(101)...)),
			[]string{"endpoints[0].addresses: Too many: 101: must have at"}},
		{"of the other family", slice(at("fd00::1")), []string{`endpoints[0].addresses[0]: Invalid value: "fd00::1"`}},
		{"of the other family, reversed", slice(of("IPv6"), at("10.0.0.1"), at("fd00::1")),
			[]string{`endpoints[0].addresses[0]: Invalid value: "10.0.0.1"`}},
		{"to itself", slice(at("127.0.0.1")), []string{
			`endpoints[0].addresses[0]: Invalid value: "127.0.0.1": may not be in the loopback range`}},
		{"names", slice(of("FQDN"), at("a.example.com"), at("a")),
			[]string{`endpoints[1].addresses[0]: Invalid value: "a"`}},
		{"node and host", slice(func(s *discoveryv1.EndpointSlice) {
			s.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, NodeName: ptr.To("A"),
				Hostname: ptr.To("a.b")}}
		}), []string{`endpoints[0].nodeName: Invalid value: "A"`, `endpoints[0].hostname: Invalid value: "a.b"`}},
		{"most hints", slice(hints(letters(8), letters(8))), nil},
		{"a hint more", slice(hints(letters(9), letters(9))),
			[]string{"endpoints[0].hints.forZones: Too many: 9: must have at most 8 items",
				"endpoints[0].hints.forNodes: Too many: 9: must have at most 8 items"}},
		{"malformed hints", slice(hints([]string{"a", "a", "a b"}, []string{"", "A"})), []string{
			`endpoints[0].hints.forZones[1].name: Duplicate value: "a"`,
			`endpoints[0].hints.forZones[2].name: Invalid value: "a b"`,
			"endpoints[0].hints.forNodes[0].name: Required value",
			`endpoints[0].hints.forNodes[1].name: Invalid value: "A"`}},
		{"most ports", slice(portsNamed(100)), nil},
		{"a port more", slice(portsNamed(101)), []string{"ports: Too many: 101: must have at most 100 items"}},
		{"two ports without a name", slice(port(discoveryv1.EndpointPort{}), port(discoveryv1.EndpointPort{})),
			[]string{`ports[1].name: Duplicate value: ""`}},
		{"last port", slice(port(discoveryv1.EndpointPort{Port: ptr.To[int32](65535)})), nil},
		{"malformed port", slice(port(discoveryv1.EndpointPort{Name: ptr.To("A"), Port: ptr.To[int32](65536),
			Protocol: ptr.To(corev1.Protocol("ICMP")), AppProtocol: ptr.To("a b")})), []string{
			`ports[0].name: Invalid value: "A"`, "ports[0].port: Invalid value: 65536: must be between 1 and 65535",
			`ports[0].protocol: Unsupported value: "ICMP"`, `ports[0].appProtocol: Invalid value: "a b"`}},
	} {
		t.Run(row.name, func(t *testing.T) { fieldtest.Check(t, Validate(row.slice), row.want...) })
	}
}

func TestValidateUpdate(t *testing.T) {
	fieldtest.Check(t, ValidateUpdate(slice(at("10.0.0.2")), slice(at("10.0.0.1"))))
	fieldtest.Check(t, ValidateUpdate(slice(of("IPv6")), slice()),
		`addressType: Invalid value: "IPv6": field is immutable`)
}

func TestDefault(t *testing.T) {
	if p := slice(port(discoveryv1.EndpointPort{})).Ports[0]; *p.Name != "" || *p.Protocol != "TCP" || p.Port != nil {
		t.Errorf("%+v", p)
	}
}

func TestGeneration(t *testing.T) {
	labelled := func(s *discoveryv1.EndpointSlice) { s.Labels = map[string]string{"a": "b"} }
	annotated := func(s *discoveryv1.EndpointSlice) { s.Annotations = map[string]string{"a": "b"} }
	for _, row := range []struct {
		name string
		to   *discoveryv1.EndpointSlice
		want int64
	}{
		{"nothing", slice(at("10.0.0.1")), 1},
		{"annotation", slice(at("10.0.0.1"), annotated), 1},
		{"label", slice(at("10.0.0.1"), labelled), 2},
		{"address", slice(at("10.0.0.2")), 2},
		{"port", slice(at("10.0.0.1"), port(discoveryv1.EndpointPort{})), 2},
	} {
		old := slice(at("10.0.0.1"))
		Resource.ObjectWrites().PrepareForCreate(old)
		Resource.ObjectWrites().PrepareForUpdate(row.to, old)
		if old.Generation != 1 || row.to.Generation != row.want {
			t.Errorf("%s: %d, then %d, want %d", row.name, old.Generation, row.to.Generation, row.want)
		}
	}
}

func TestTopologyIsDropped(t *testing.T) {
	s, old := slice(at("10.0.0.1")), slice(at("10.0.0.1"))
	s.Endpoints[0].DeprecatedTopology = map[string]string{"a": "b"}
	Resource.ObjectWrites().PrepareForUpdate(s, old)
	if s.Endpoints[0].DeprecatedTopology != nil {
		t.Error("the field of an earlier version is written")
	}
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
