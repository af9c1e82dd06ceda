package keptport

import (
	"encoding/json"
	"net/netip"
	"testing"
)

func mustParse(t *testing.T, text string) Port {
	t.Helper()
	p, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What is written down reads as it was, in the flag and in the plugin's configuration.
func TestForms(t *testing.T) {
	for text, want := range map[string]string{
		"6443/tcp=apiserver":              "6443/tcp=apiserver",
		"0.0.0.0:6443/TCP=apiserver":      "6443/tcp=apiserver",
		":6443/tcp=apiserver":             "6443/tcp=apiserver",
		"[::]:6443/tcp=apiserver":         "6443/tcp=apiserver",
		"127.0.0.1:20001/tcp=scheduler":   "127.0.0.1:20001/tcp=scheduler",
		"[2001:db8::1]:1-65535/udp=x":     "[2001:db8::1]:1-65535/udp=x",
		"[::ffff:192.0.2.1]:9/sctp=x=y":   "192.0.2.1:9/sctp=x=y",
		"192.0.2.1:30000-32767/udp=ports": "192.0.2.1:30000-32767/udp=ports",
	} {
		p := mustParse(t, text)
		if p.String() != want {
			t.Errorf("%s reads as %s, want %s", text, p, want)
		}
		data, err := json.Marshal(p)
		var back Port
		if err != nil || json.Unmarshal(data, &back) != nil || back != p {
			t.Errorf("%s reads as %+v: %v", data, back, err)
		}
	}
}

// The error for a wrong text says what is wrong.
func TestParseRefuses(t *testing.T) {
	const form = " in [IP:]PORT[-PORT]/PROTOCOL=KEEPER"
	const keeper, protocol = "KEEPER must be one word", "PROTOCOL must be tcp, udp or sctp"
	const address, port = "IP must be an address, one of IPv6 in brackets,",
		"PORT must be from 1 to 65535, the second one not before the first,"
	for text, want := range map[string]string{
		"6443/tcp": keeper, "6443/tcp=": keeper, "6443/tcp=an apiserver": keeper, "6443=x": protocol,
		"6443/icmp=x": protocol, "here:6443/tcp=x": address, "::1:6443/tcp=x": address, "[192.0.2.1]:9/tcp=x": address,
		"[fe80::1%eth0]:9/tcp=x": address, "[::1:9/tcp=x": address,
		"0/tcp=x": port, "65536/tcp=x": port, "9-8/tcp=x": port, "/tcp=x": port,
		"-1/tcp=x": port, "9-/tcp=x": port,
	} {
		if _, err := Parse(text); err == nil || err.Error() != `"`+text+`": `+want+form {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A packet is the keeper's, and a Pod is refused, on both sides of each bound.
func TestWhatIsKept(t *testing.T) {
	const tcp, udp = TCP, UDP
	everywhere := netip.Addr{}
	one, another := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	loopback := netip.MustParseAddr("127.0.0.1")
	elsewhere := mustParse(t, "192.0.2.1:6443/tcp=x")
	elsewhere.Elsewhere = true
	for _, r := range []struct {
		name         string
		kept         Port
		address      netip.Addr
		protocol     string
		number       uint16
		has, refuses bool
	}{
		{"before", mustParse(t, "10-20/tcp=x"), one, tcp, 9, false, false},
		{"first", mustParse(t, "10-20/tcp=x"), one, tcp, 10, true, true},
		{"last", mustParse(t, "10-20/tcp=x"), one, tcp, 20, true, true},
		{"behind", mustParse(t, "10-20/tcp=x"), one, tcp, 21, false, false},
		{"another protocol", mustParse(t, "10-20/tcp=x"), one, udp, 15, false, false},
		{"all addresses", mustParse(t, "10/tcp=x"), everywhere, tcp, 10, true, true},
		{"the address", mustParse(t, "192.0.2.1:10/tcp=x"), one, tcp, 10, true, true},
		{"another address", mustParse(t, "192.0.2.1:10/tcp=x"), another, tcp, 10, false, false},
		{"all addresses of which one is kept", mustParse(t, "192.0.2.1:10/tcp=x"), everywhere, tcp, 10, false, true},
		{"all addresses but the loopback one", mustParse(t, "127.0.0.1:10/tcp=x"), everywhere, tcp, 10, false, false},
		{"the loopback one", mustParse(t, "127.0.0.1:10/tcp=x"), loopback, tcp, 10, true, true},
		{"all addresses but another machine's", elsewhere, everywhere, tcp, 6443, false, false},
		{"another machine's", elsewhere, one, tcp, 6443, true, true},
	} {
		has, refuses := r.kept.Has(r.address, r.protocol, r.number), r.kept.Refuses(r.address, r.protocol, r.number)
		if has != r.has || refuses != r.refuses {
			t.Errorf("%s: has %v, refuses %v", r.name, has, refuses)
		}
		if by, found := Refusing([]Port{mustParse(t, "1/udp=y"), r.kept}, r.address, r.protocol, r.number); found !=
			r.refuses || found && by != r.kept {
			t.Errorf("%s: %v refuses: %v", r.name, by, found)
		}
	}
	for text, want := range map[string]bool{"10/tcp=x": true, "192.0.2.1:10/tcp=x": true, "127.0.0.1:10/tcp=x": false} {
		if mustParse(t, text).AtPeers() != want {
			t.Errorf("%s at peers: %v", text, !want)
		}
	}
	if elsewhere.AtPeers() {
		t.Error("what is one machine's is kept at all")
	}
}

// Services have their ports of every protocol.
func TestNodePorts(t *testing.T) {
	for _, protocol := range []string{TCP, UDP, SCTP} {
		for number, want := range map[uint16]bool{29999: false, 30000: true, 32767: true, 32768: false} {
			if p, found := Refusing(NodePorts(), netip.Addr{}, protocol, number); found != want || p.NodePorts != want {
				t.Errorf("%d/%s: %v, want %v", number, protocol, found, want)
			}
		}
	}
}
