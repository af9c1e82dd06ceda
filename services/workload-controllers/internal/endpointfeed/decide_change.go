package endpointfeed

import (
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/podview"
)

// Selects reports whether the addresses behind a Service are those of the Pods that it selects.
func Selects(service *corev1.Service) bool {
	return len(service.Spec.Selector) > 0 && service.Spec.Type != corev1.ServiceTypeExternalName
}

// addressable reports whether the API takes a Pod's addresses into what it says of a Service: one that it refuses
// would keep the addresses of all other Pods out too. A Pod without an address is left out by who decides.
func addressable(pod *corev1.Pod) bool {
	for _, ip := range pod.Status.PodIPs {
		address, err := netip.ParseAddr(ip.IP)
		if err != nil || address.IsUnspecified() || address.IsLoopback() || address.IsLinkLocalUnicast() ||
			address.IsMulticast() {
			return false
		}
	}
	return true
}

// Changed reports whether a Service that selects the Pod, or did, may have to say something else of it.
func Changed(last, pod *corev1.Pod) bool {
	return podview.IsReady(last) != podview.IsReady(pod) ||
		podview.IsTerminal(last) != podview.IsTerminal(pod) ||
		podview.IsTerminating(last) != podview.IsTerminating(pod) ||
		last.Spec.NodeName != pod.Spec.NodeName ||
		last.Spec.Hostname != pod.Spec.Hostname ||
		last.Spec.Subdomain != pod.Spec.Subdomain ||
		last.Status.PodIP != pod.Status.PodIP ||
		!slices.Equal(last.Status.PodIPs, pod.Status.PodIPs) ||
		!maps.Equal(last.Labels, pod.Labels)
}
