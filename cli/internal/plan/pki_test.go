package plan

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// The users and groups are the contract of docs/explanation/architecture.md with the apiserver's roles.
func TestDecidePKI(t *testing.T) {
	got := map[string]string{}
	for _, c := range DecidePKI(PKIInput{
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.7")}, HostName: "machine", Service: prefix("10.96.0.0/16"),
		Nodes: []string{"node-1"},
	}) {
		line := c.User + " " + strings.Join(c.Groups, ",")
		if c.Serves() {
			line += " serves"
			if c.File != StatusCertificate && !slices.Contains(c.Addresses, netip.MustParseAddr("192.0.2.7")) {
				t.Errorf("%s is not valid for the machine's address", c.File)
			}
		}
		if c.File == "apiserver" && (!slices.Contains(c.Addresses, netip.MustParseAddr("10.96.0.1")) ||
			!slices.Contains(c.Hosts, "kubernetes.default.svc")) {
			t.Errorf("the apiserver's is not valid for its Service: %v %v", c.Addresses, c.Hosts)
		}
		got[c.File] = line
	}
	want := map[string]string{
		"apiserver":                  "keelson-apiserver  serves",
		"status":                     "keelson-status  serves",
		"admin":                      "kubernetes-admin system:masters",
		"apiserver-nodeagent-client": "system:keelson:apiserver ",
		"scheduler":                  "system:kube-scheduler ",
		"workload-controllers":       "system:keelson:workload-controllers ",
		"podgc":                      "system:keelson:podgc ",
		"node-1":                     "system:node:node-1 system:nodes",
		"node-1-serving":             "system:node:node-1  serves",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

// The apiserver of every machine of the control plane has a certificate for the endpoint that leads to any of
// them.
func TestEndpointInCertificates(t *testing.T) {
	address := netip.MustParseAddr("192.0.2.100")
	for endpoint, want := range map[string]string{"": "", "mesh.example.com:6443": "mesh.example.com",
		"192.0.2.100:6443": "192.0.2.100"} {
		for _, c := range DecidePKI(PKIInput{HostName: "machine", Service: prefix("10.96.0.0/16"), Nodes: []string{"n"},
			Store: true, Endpoint: endpoint}) {
			got := ""
			if slices.Contains(c.Hosts, "mesh.example.com") {
				got = "mesh.example.com"
			}
			if slices.Contains(c.Addresses, address) {
				got += "192.0.2.100"
			}
			if apiserver := c.File == "apiserver"; apiserver && got != want || !apiserver && got != "" {
				t.Errorf("with endpoint %q the certificate %s is for %q", endpoint, c.File, got)
			}
		}
	}
}

func TestDueForRenewal(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	end := begin.Add(30 * 24 * time.Hour)
	const day = 24 * time.Hour
	for after, want := range map[time.Duration]bool{-day: true, -1: true, 0: false, 19 * day: false,
		20*day - 1: false, 20 * day: true, 30 * day: true, 31 * day: true} {
		if got := DueForRenewal(begin, end, begin.Add(after)); got != want {
			t.Errorf("after %v of 30 days: %t", after, got)
		}
	}
}

// Ten years for the CA, which no program renews; two for what it signs.
func TestLife(t *testing.T) {
	const year = 365 * 24 * time.Hour
	if ca, leaf := Life(true), Life(false); ca != 10*year || leaf != 2*year {
		t.Errorf("a CA lives for %v, what it signs for %v", ca, leaf)
	}
}

// A serving certificate names its own hosts only: with another's name it could impersonate that one. A client
// certificate names no host.
func TestHosts(t *testing.T) {
	machine, loopback := []string{"192.0.2.7", "2001:db8::7"}, []string{"127.0.0.1", "::1"}
	want := map[string][]string{
		"apiserver": slices.Concat([]string{"kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local", "localhost", "machine"}, loopback, machine, []string{"10.96.0.1"}),
		"status":         slices.Concat([]string{"localhost"}, loopback),
		"node-1-serving": slices.Concat([]string{"node-1", "machine", "localhost"}, loopback, machine),
		"node-2-serving": slices.Concat([]string{"node-2", "machine", "localhost"}, loopback, machine),
	}
	files := map[string]bool{}
	for _, c := range DecidePKI(PKIInput{Domain: "cluster.local", HostName: "machine", Service: prefix("10.96.0.0/16"),
		Addresses: []netip.Addr{netip.MustParseAddr(machine[0]), netip.MustParseAddr(machine[1])},
		Nodes:     []string{"node-1", "node-2"}}) {
		got := slices.Clone(c.Hosts)
		for _, address := range c.Addresses {
			got = append(got, address.String())
		}
		if !slices.Equal(got, want[c.File]) || c.Serves() != (len(want[c.File]) > 0) {
			t.Errorf("%s is valid for %v, want %v", c.File, got, want[c.File])
		}
		if files[c.File] || c.User == "" {
			t.Errorf("%s of %q is made twice or is nobody's", c.File, c.User)
		}
		files[c.File] = true
		if slices.Contains(c.Groups, "system:masters") != (c.File == "admin") {
			t.Errorf("%s is in %v", c.File, c.Groups)
		}
	}
	if len(files) != 11 {
		t.Errorf("%d certificates, want 11", len(files))
	}
	if !(Certificate{Hosts: []string{"a"}}).Serves() || !(Certificate{Addresses: []netip.Addr{{}}}).Serves() {
		t.Error("a host or an address alone makes a certificate serve")
	}
}
