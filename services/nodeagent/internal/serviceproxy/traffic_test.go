package serviceproxy

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Every client reaches every endpoint at the Service's address, over both families and protocols, and endpoints see
// who asks: this node's Pods by their own address.
func TestClusterIP(t *testing.T) {
	m := newMachine(t)
	s := newService()
	m.put(append(newSlices(s, m.a, m.b, m.remote), s)...)
	for _, r := range []struct {
		client  string
		do      func(func())
		sees    [2]string
		network string
	}{
		{"the node", m.here, [2]string{}, "tcp"},
		{"a Pod", m.a.Do, [2]string{"10.244.1.5", "fd00:1::5"}, "tcp"},
		{"the other Pod", m.b.Do, [2]string{"10.244.1.6", "fd00:1::6"}, "tcp"},
		{"another machine", m.stranger.Do, [2]string{}, "tcp"},
		{"the node", m.here, [2]string{}, "udp"},
		{"a Pod", m.a.Do, [2]string{"10.244.1.5", "fd00:1::5"}, "udp"},
		{"another machine", m.stranger.Do, [2]string{}, "udp"},
	} {
		for i, to := range []netip.Addr{clusterIP, clusterIP6} {
			r.do(func() {
				answers := map[string]int{}
				for range 60 {
					got := ask(r.network, to, servicePort)
					if got.err != nil {
						t.Errorf("%s asks %s over %s: %v", r.client, to, r.network, got.err)
						return
					}
					answers[got.who]++
					itself := got.who == "a" && r.client == "a Pod" || got.who == "b" && r.client == "the other Pod"
					if r.sees[i] != "" && !itself && got.from != r.sees[i] {
						t.Errorf("%s asks %s over %s: %s, want %s", r.client, to, r.network, got, r.sees[i])
					}
				}
				for _, who := range []string{"a", "b", "remote"} {
					if answers[who] < 5 {
						t.Errorf("%s asks %s over %s: %s answered %d of 60", r.client, to, r.network, who, answers[who])
					}
				}
			})
		}
	}
}

var _ = corev1.ServiceTypeClusterIP
