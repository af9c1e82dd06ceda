package bootstrap

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
)

func addressesOf(list string) []netip.AddrPort {
	var all []netip.AddrPort
	for _, text := range strings.Fields(list) {
		all = append(all, netip.MustParseAddrPort(text))
	}
	return all
}

// described is name, and in brackets the addresses and the ports.
func described(s *discoveryv1.EndpointSlice) string {
	var all []string
	for _, endpoint := range s.Endpoints {
		if endpoint.Conditions.Ready == nil || !*endpoint.Conditions.Ready {
			return "an endpoint that is not ready"
		}
		all = append(all, endpoint.Addresses...)
	}
	return s.Name + "[" + strings.Join(all, " ") + "]"
}

// The slices tell those apiservers that are alive, whatever their number, families
// and ports, and nothing is written when nothing changed.
func TestDecideSlices(t *testing.T) {
	for _, row := range []struct {
		name, have, alive      string
		create, update, remove []string
	}{
		{name: "the first", alive: "10.0.0.1:6443", create: []string{"kubernetes-ipv4-6443[10.0.0.1]"}},
		{name: "the same again", have: "10.0.0.2:6443 10.0.0.1:6443", alive: "10.0.0.1:6443 10.0.0.2:6443"},
		{name: "one more", have: "10.0.0.2:6443", alive: "10.0.0.1:6443 10.0.0.2:6443",
			update: []string{"kubernetes-ipv4-6443[10.0.0.1 10.0.0.2]"}},
		{name: "one has died", have: "10.0.0.1:6443 10.0.0.2:6443", alive: "10.0.0.2:6443",
			update: []string{"kubernetes-ipv4-6443[10.0.0.2]"}},
		{name: "another port", have: "10.0.0.1:6443", alive: "10.0.0.1:6444",
			create: []string{"kubernetes-ipv4-6444[10.0.0.1]"}, remove: []string{"kubernetes-ipv4-6443"}},
		{name: "both families", alive: "10.0.0.1:6443 [fd00::1]:6443",
			create: []string{"kubernetes-ipv4-6443[10.0.0.1]", "kubernetes-ipv6-6443[fd00::1]"}},
		{name: "all have gone", have: "10.0.0.1:6443", remove: []string{"kubernetes-ipv4-6443"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var have []discoveryv1.EndpointSlice
			for _, slice := range endpointSlices(addressesOf(row.have)) {
				have = append(have, *slice)
			}
			plan := decideSlices(addressesOf(row.alive), have)
			var create, update []string
			for _, slice := range plan.create {
				create = append(create, described(slice))
			}
			for _, slice := range plan.update {
				update = append(update, described(slice))
			}
			if !slices.Equal(create, row.create) || !slices.Equal(update, row.update) ||
				!slices.Equal(plan.remove, row.remove) {
				t.Errorf("creates %v, updates %v, removes %v", create, update, plan.remove)
			}
		})
	}
}

func TestSlicesAreTheServices(t *testing.T) {
	slice := endpointSlices(addressesOf("10.0.0.1:6443"))[0]
	port := slice.Ports[0]
	if slice.Labels["kubernetes.io/service-name"] != "kubernetes" || slice.AddressType != "IPv4" ||
		slice.Namespace != "default" || *port.Name != "https" || *port.Port != 6443 || *port.Protocol != "TCP" {
		t.Errorf("%+v", slice)
	}
	if skip := endpoints(nil).Labels["endpointslice.kubernetes.io/skip-mirror"]; skip != "true" {
		t.Errorf("skip-mirror is %q: the slices would be made twice", skip)
	}
}
