package plan

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestDNSAddress(t *testing.T) {
	for text, want := range map[string]string{"10.96.0.0/16": "10.96.0.10", "192.0.2.16/28": "192.0.2.26"} {
		if got := DNSAddress(prefix(text)); got.String() != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestWhoAnswersForNames(t *testing.T) {
	for _, row := range []struct {
		dns, server string
		taken       bool
	}{
		{"coredns", "10.96.0.10", true}, {"none", "", true}, {"10.96.0.53", "10.96.0.53", true},
		{"169.254.20.10", "169.254.20.10", true}, {"bind", "", false}, {"", "", false}, {"127.0.0.53", "", false},
		{"0.0.0.0", "", false}, {"224.0.0.251", "", false}, {"2001:db8::1", "", false}, {"10.96.0.10/16", "", false},
	} {
		err := CheckDNS(row.dns)
		if (err == nil) != row.taken {
			t.Errorf("%q: %v", row.dns, err)
		}
		server := DNSServer(row.dns, prefix("10.96.0.0/16"))
		if row.taken && (server.IsValid() != (row.server != "") || server.IsValid() && server.String() != row.server) {
			t.Errorf("%q: Pods ask %s, want %s", row.dns, server, row.server)
		}
	}
}

// Every node gives its Pods the DNS server, and all use one cluster domain.
//
// SET-047
func TestNodesKnowTheClustersDNS(t *testing.T) {
	for _, dns := range []string{"", "10.96.0.10"} {
		in := input("node-1", "node-2")
		in.Domain = "kube.local"
		if dns != "" {
			in.DNS = netip.MustParseAddr(dns)
		}
		agents := 0
		for _, process := range in.flat() {
			if _, ok := NodeOfAgent(process.Name); !ok {
				continue
			}
			agents++
			flags := flagsOf(process)
			if flags["--cluster-dns"] != dns || flags["--cluster-domain"] != "kube.local" {
				t.Errorf("%s: %v", process.Name, process.Args)
			}
			if dns == "" && slices.ContainsFunc(process.Args,
				func(a string) bool { return strings.Contains(a, "dns") }) {
				t.Errorf("%s is told of a DNS: %v", process.Name, process.Args)
			}
		}
		if agents != 2 {
			t.Errorf("%d agents", agents)
		}
	}
	for _, c := range DecidePKI(PKIInput{Service: prefix("10.96.0.0/16"), Domain: "kube.local"}) {
		if c.File == "apiserver" && !slices.Contains(c.Hosts, "kubernetes.default.svc.kube.local") {
			t.Errorf("the apiserver's certificate is valid for %v", c.Hosts)
		}
	}
}
