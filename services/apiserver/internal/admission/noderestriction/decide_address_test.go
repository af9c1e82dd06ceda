package noderestriction

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestCheckAddresses(t *testing.T) {
	node := func(kind corev1.NodeAddressType, address string) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalDNS, Address: "anything"}, {Type: kind, Address: address}}}}
	}
	services := []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:96::/112")}
	for name, row := range map[string]struct {
		kind    corev1.NodeAddressType
		address string
		allowed bool
	}{
		"its own name":            {corev1.NodeHostName, "node-2", true},
		"its name in capitals":    {corev1.NodeHostName, "Node-2", true},
		"a node's to come":        {corev1.NodeHostName, "node-3", false},
		"an address":              {corev1.NodeInternalIP, "192.0.2.2", true},
		"of IPv6":                 {corev1.NodeInternalIP, "2001:db8::2", true},
		"of IPv6 in capitals":     {corev1.NodeExternalIP, "2001:DB8::2", true},
		"no address":              {corev1.NodeInternalIP, "node-2", false},
		"with a blank":            {corev1.NodeInternalIP, " 192.0.2.2", false},
		"with zeros":              {corev1.NodeInternalIP, "192.000.002.002", false},
		"a Service's":             {corev1.NodeInternalIP, "10.96.0.10", false},
		"beside the Services'":    {corev1.NodeInternalIP, "10.97.0.0", true},
		"a Service's of IPv6":     {corev1.NodeExternalIP, "fd00:96::a", false},
		"mapped":                  {corev1.NodeInternalIP, "::ffff:192.0.2.2", false},
		"with a zone":             {corev1.NodeInternalIP, "fe80::1%eth0", false},
		"in a long form":          {corev1.NodeExternalIP, "2001:db8:0::2", false},
		"nobody's":                {corev1.NodeInternalIP, "0.0.0.0", false},
		"everybody's":             {corev1.NodeInternalIP, "255.255.255.255", false},
		"a group's":               {corev1.NodeExternalIP, "224.0.0.1", false},
		"a name in another place": {corev1.NodeExternalDNS, "node-3", true},
	} {
		t.Run(name, func(t *testing.T) {
			claimed := node(row.kind, row.address)
			err := checkAddresses("node-2", claimed, nil, services)
			if row.allowed != (err == nil) || err != nil && !strings.HasPrefix(err.Error(),
				`status.addresses[1].address: node "node-2" is not allowed to have the `) {
				t.Errorf("%v, want it allowed: %v", err, row.allowed)
			}
			if err := checkAddresses("node-2", claimed, claimed.DeepCopy(), services); err != nil {
				t.Errorf("what it has had: %v", err)
			}
		})
	}
}
