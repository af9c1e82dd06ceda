package bootstrap

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// slicesManager marks the EndpointSlices that the apiservers write.
const slicesManager = "apiserver.keelson.dev"

// slicePlan is what has to be written so that the EndpointSlices tell the apiservers.
type slicePlan struct {
	create, update []*discoveryv1.EndpointSlice
	remove         []string
}

// decideSlices compares the slices that there are with those of the addresses: one for each family and port.
func decideSlices(addresses []netip.AddrPort, have []discoveryv1.EndpointSlice) slicePlan {
	var plan slicePlan
	missing := endpointSlices(addresses)
	for i := range have {
		slice := &have[i]
		at := slices.IndexFunc(missing, func(s *discoveryv1.EndpointSlice) bool { return s.Name == slice.Name })
		if at < 0 {
			plan.remove = append(plan.remove, slice.Name)
			continue
		}
		want := missing[at]
		missing = slices.Delete(missing, at, at+1)
		if apiequality.Semantic.DeepEqual(slice.Endpoints, want.Endpoints) &&
			apiequality.Semantic.DeepEqual(slice.Ports, want.Ports) {
			continue
		}
		changed := slice.DeepCopy()
		changed.Endpoints, changed.Ports = want.Endpoints, want.Ports
		plan.update = append(plan.update, changed)
	}
	plan.create = missing
	return plan
}

// endpointSlices are the EndpointSlices of the Service of the apiservers.
func endpointSlices(addresses []netip.AddrPort) []*discoveryv1.EndpointSlice {
	byName := map[string]*discoveryv1.EndpointSlice{}
	var all []*discoveryv1.EndpointSlice
	sorted := slices.Clone(addresses)
	slices.SortFunc(sorted, netip.AddrPort.Compare)
	for _, address := range sorted {
		family := discoveryv1.AddressTypeIPv4
		if address.Addr().Is6() {
			family = discoveryv1.AddressTypeIPv6
		}
		name := fmt.Sprintf("%s-%s-%d", serviceName, strings.ToLower(string(family)), address.Port())
		slice := byName[name]
		if slice == nil {
			slice = endpointSlice(name, family, int32(address.Port()))
			byName[name] = slice
			all = append(all, slice)
		}
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{address.Addr().String()},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		})
	}
	return all
}

func endpointSlice(name string, family discoveryv1.AddressType, port int32) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{discoveryv1.LabelServiceName: serviceName,
				discoveryv1.LabelManagedBy: slicesManager},
		},
		AddressType: family,
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To(portName), Port: &port,
			Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
}
