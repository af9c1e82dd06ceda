package app

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// No Service may take what the node reaches the API by, in whatever form that is written, nor the node's own port.
func TestProxyNodeKeeps(t *testing.T) {
	node := &corev1.Node{}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"},
		{Type: corev1.NodeHostName, Address: "192.0.2.9"}, {Type: corev1.NodeInternalIP, Address: "2001:db8::1"}}
	const own = "192.0.2.1:10250 [2001:db8::1]:10250"
	for host, want := range map[string]string{
		"https://192.0.2.7:6443":     own + " 192.0.2.7:6443",
		"https://192.0.2.7:6443/api": own + " 192.0.2.7:6443",
		"https://[2001:db8::7]:6443": own + " [2001:db8::7]:6443",
		"https://192.0.2.7":          own + " 192.0.2.7:443",
		"http://192.0.2.7":           own + " 192.0.2.7:80",
		"192.0.2.7:6443":             own + " 192.0.2.7:6443",
		"192.0.2.7":                  own + " 192.0.2.7:443",
		"https://api.example.com":    own,
		"https://192.0.2.7:66000":    own,
		"":                           own,
	} {
		got := fmt.Sprint(proxyNode(node, host, []uint16{10250}).Kept)
		if got != "["+want+"]" {
			t.Errorf("%q: %s, want [%s]", host, got, want)
		}
	}
}

// Where load balancers ask is the agent's as well.
func TestThePortsOfTheAgent(t *testing.T) {
	for health, want := range map[string]string{"": "[10250]", ":10256": "[10250 10256]",
		"[2001:db8::1]:9": "[10250 9]"} {
		a := &agent{Config: Config{Port: 10250, ServiceHealth: health}}
		if got := fmt.Sprint(a.ownPorts()); got != want {
			t.Errorf("%q: %s, want %s", health, got, want)
		}
	}
}
