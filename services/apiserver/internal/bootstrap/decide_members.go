package bootstrap

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/seconds"
)

// members are the addresses of all apiservers whose Lease holds at now, and the names of the Leases that are no longer
// renewed.
func members(leases []coordinationv1.Lease, now time.Time) (alive []netip.AddrPort, expired []string) {
	for i := range leases {
		spec := &leases[i].Spec
		if spec.RenewTime == nil || spec.LeaseDurationSeconds == nil || spec.HolderIdentity == nil {
			continue
		}
		if spec.RenewTime.Add(seconds.Of(*spec.LeaseDurationSeconds)).Before(now) {
			expired = append(expired, leases[i].Name)
			continue
		}
		if address, err := netip.ParseAddrPort(*spec.HolderIdentity); err == nil && !slices.Contains(alive, address) {
			alive = append(alive, address)
		}
	}
	slices.SortFunc(alive, netip.AddrPort.Compare)
	slices.Sort(expired)
	return alive, expired
}

// subsets groups addresses by port, in the order of both.
func subsets(addresses []netip.AddrPort) []corev1.EndpointSubset {
	var all []corev1.EndpointSubset
	sorted := slices.Clone(addresses)
	slices.SortFunc(sorted, func(a, b netip.AddrPort) int {
		return cmp.Or(cmp.Compare(a.Port(), b.Port()), a.Addr().Compare(b.Addr()))
	})
	for _, address := range sorted {
		port := int32(address.Port())
		if len(all) == 0 || all[len(all)-1].Ports[0].Port != port {
			all = append(all, corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: portName, Port: port,
				Protocol: corev1.ProtocolTCP}}})
		}
		last := &all[len(all)-1]
		last.Addresses = append(last.Addresses, corev1.EndpointAddress{IP: address.Addr().String()})
	}
	return all
}
