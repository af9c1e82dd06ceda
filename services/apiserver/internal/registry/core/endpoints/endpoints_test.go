package endpoints

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func TestValidate(t *testing.T) {
	at := func(ips ...string) []corev1.EndpointAddress {
		var addresses []corev1.EndpointAddress
		for _, ip := range ips {
			addresses = append(addresses, corev1.EndpointAddress{IP: ip})
		}
		return addresses
	}
	for _, row := range []struct {
		name   string
		subset corev1.EndpointSubset
		want   []string
	}{
		{"ready", corev1.EndpointSubset{Addresses: at("10.1.0.1", "fd00::1"), Ports: []corev1.EndpointPort{{Port: 80}}},
			nil},
		{"not ready", corev1.EndpointSubset{NotReadyAddresses: at("10.1.0.1")}, nil},
		{"nobody", corev1.EndpointSubset{},
			[]string{"subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"}},
		{"no address", corev1.EndpointSubset{Addresses: at("web")},
			[]string{`subsets[0].addresses[0].ip: Invalid value: "web"`}},
		{"nowhere to send to", corev1.EndpointSubset{Addresses: at("127.0.0.1", "169.254.1.1", "0.0.0.0", "224.0.0.1")},
			[]string{
				`subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": may not be in the loopback range`,
				`subsets[0].addresses[1].ip: Invalid value: "169.254.1.1": may not be in the link-local range`,
				`subsets[0].addresses[2].ip: Invalid value: "0.0.0.0": may not be unspecified`,
				`subsets[0].addresses[3].ip: Invalid value: "224.0.0.1": may not be in the link-local multicast range`}},
		{"names", corev1.EndpointSubset{NotReadyAddresses: []corev1.EndpointAddress{{IP: "10.1.0.1", Hostname: "a.b",
			NodeName: ptr.To("n_1")}}},
			[]string{`subsets[0].notReadyAddresses[0].hostname: Invalid value: "a.b"`,
				`subsets[0].notReadyAddresses[0].nodeName: Invalid value: "n_1"`}},
		{"ports", corev1.EndpointSubset{Addresses: at("10.1.0.1"), Ports: []corev1.EndpointPort{{Port: 80},
			{Name: "A", Port: 0, Protocol: "ICMP", AppProtocol: ptr.To("a b")}}}, []string{
			"subsets[0].ports[0].name: Required value", `subsets[0].ports[1].name: Invalid value: "A"`,
			"subsets[0].ports[1].port: Invalid value: 0",
			`subsets[0].ports[1].protocol: Unsupported value: "ICMP"`,
			`subsets[0].ports[1].appProtocol: Invalid value: "a b"`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := &corev1.Endpoints{Subsets: []corev1.EndpointSubset{row.subset}}
			Default(e)
			fieldtest.Check(t, Validate(e), row.want...)
		})
	}
}
