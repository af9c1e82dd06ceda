package plan

import (
	"net/netip"
	"testing"
)

func TestDecideAdvertise(t *testing.T) {
	addresses := func(texts ...string) (all []netip.Addr) {
		for _, text := range texts {
			all = append(all, netip.MustParseAddr(text))
		}
		return all
	}
	for _, row := range []struct {
		name, bind, recorded string
		have                 []netip.Addr
		nodes                int
		want                 string
	}{
		{"the best of the machine's", "0.0.0.0", "", addresses("192.0.2.1", "198.51.100.1"), 1, "192.0.2.1"},
		{"as before", "0.0.0.0", "198.51.100.1", addresses("192.0.2.1", "198.51.100.1"), 1, "198.51.100.1"},
		{"the one of before has gone", "0.0.0.0", "203.0.113.1", addresses("192.0.2.1"), 1, "192.0.2.1"},
		{"the only one listened on", "198.51.100.1", "", addresses("192.0.2.1", "198.51.100.1"), 1, "198.51.100.1"},
		{"no network", "0.0.0.0", "", nil, 1, "10.241.0.1"},
		{"no network any more", "0.0.0.0", "192.0.2.1", nil, 1, "10.241.0.1"},
		{"neither network nor nodes", "0.0.0.0", "", nil, 0, "127.0.0.1"},
		{"the control plane on the loopback address", "127.0.0.1", "", addresses("192.0.2.1"), 0, "127.0.0.1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := AdvertiseInput{Bind: netip.MustParseAddr(row.bind), Addresses: row.have, Nodes: row.nodes,
				Between: netip.MustParsePrefix("10.241.0.0/24")}
			in.Recorded, _ = netip.ParseAddr(row.recorded)
			if got := DecideAdvertise(in).String(); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}
