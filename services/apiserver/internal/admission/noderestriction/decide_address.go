package noderestriction

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// checkAddresses lets a node newly say that it is reached by what can be its machine's: as a host by its own name, so
// that it keeps no other node from its name, and by addresses of one machine in the form in which others compare them,
// none of the ranges of Services. old is nil for a new Node.
func checkAddresses(node string, updated, old *corev1.Node, services []netip.Prefix) error {
	var had []corev1.NodeAddress
	if old != nil {
		had = old.Status.Addresses
	}
	for i, a := range updated.Status.Addresses {
		if slices.Contains(had, a) {
			continue
		}
		path := fmt.Sprintf("status.addresses[%d].address", i)
		switch a.Type {
		case corev1.NodeHostName:
			if !strings.EqualFold(a.Address, node) {
				return fmt.Errorf(
					"%s: node %q is not allowed to have the Hostname %q: it must be its own name",
					path,
					node,
					a.Address,
				)
			}
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
			ip, err := netip.ParseAddr(a.Address)
			if err != nil || ip.Unmap().WithZone("").String() != strings.ToLower(a.Address) || !ofOneMachine(ip) {
				return fmt.Errorf(
					"%s: node %q is not allowed to have the %s %q: it must be the IP address of one machine in "+
						"its usual form",
					path,
					node,
					a.Type,
					a.Address,
				)
			}
			if i := slices.IndexFunc(services, func(r netip.Prefix) bool { return r.Contains(ip) }); i >= 0 {
				return fmt.Errorf("%s: node %q is not allowed to have the %s %s: it is of the Services' range %s",
					path, node, a.Type, ip, services[i])
			}
		}
	}
	return nil
}

func ofOneMachine(ip netip.Addr) bool {
	return !ip.IsUnspecified() && !ip.IsMulticast() && ip != broadcast
}
