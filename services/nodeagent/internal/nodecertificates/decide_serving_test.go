package nodecertificates

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// addressesOf parses addresses of the form TYPE=ADDRESS, separated by spaces.
func addressesOf(text string) []corev1.NodeAddress {
	var out []corev1.NodeAddress
	for word := range strings.FieldsSeq(text) {
		kind, address, _ := strings.Cut(word, "=")
		out = append(out, corev1.NodeAddress{Type: corev1.NodeAddressType(kind), Address: address})
	}
	return out
}

// A node requests the names and addresses at which it is reached, in one order, each once.
func TestServingRequest(t *testing.T) {
	for _, row := range []struct{ addresses, want string }{
		{"", "nothing"},
		{"Hostname=n ExternalDNS=n.example.org", "nothing"},
		{"InternalIP=192.0.2.1", "[] [192.0.2.1]"},
		{"Hostname=n InternalIP=192.0.2.1", "[n] [192.0.2.1]"},
		{"InternalIP=192.0.2.10 InternalIP=2001:db8::1 ExternalIP=192.0.2.9 Hostname=n InternalDNS=n.internal " +
			"ExternalDNS=n.example.org", "[n n.example.org n.internal] [192.0.2.9 192.0.2.10 2001:db8::1]"},
		{"Hostname=n InternalDNS=n InternalIP=192.0.2.1 ExternalIP=192.0.2.1", "[n] [192.0.2.1]"},
		{"Hostname=192.0.2.7 InternalDNS=192.0.2.7", "[] [192.0.2.7]"},
		{"InternalIP=::ffff:192.0.2.1 ExternalIP=192.0.2.1", "[] [192.0.2.1]"},
		{"InternalIP=fe80::1%eth0 InternalIP=fe80::1", "[] [fe80::1]"},
		{"InternalIP=n Hostname=m InternalIP=192.0.2.1", "[m] [192.0.2.1]"},
		{"InternalIP=192.0.2.1 Hostname= InternalDNS=*.example.org ExternalDNS=füb", "[] [192.0.2.1]"},
		{"Other=n InternalIP=192.0.2.1", "[] [192.0.2.1]"},
	} {
		addresses := addressesOf(row.addresses)
		request := servingRequest("n", addresses)
		got := "nothing"
		if request != nil {
			if request.Subject.CommonName != "system:node:n" ||
				!slices.Equal(request.Subject.Organization, []string{"system:nodes"}) {
				t.Errorf("%s: it is for %s", row.addresses, request.Subject)
			}
			var ips []netip.Addr
			for _, ip := range request.IPAddresses {
				parsed, _ := netip.AddrFromSlice(ip)
				ips = append(ips, parsed)
			}
			got = fmt.Sprint(request.DNSNames, ips)
			got = strings.Replace(got, "][", "] [", 1)
		}
		if got != row.want {
			t.Errorf("%s: %s, want %s", row.addresses, got, row.want)
		}
		// Requests for the same addresses are equal, regardless of their order.
		slices.Reverse(addresses)
		if again := servingRequest("n", addresses); !reflect.DeepEqual(request, again) {
			t.Errorf("%s: in another order %+v, not %+v", row.addresses, again, request)
		}
	}
}
