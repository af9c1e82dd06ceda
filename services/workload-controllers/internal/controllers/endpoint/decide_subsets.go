package endpoint

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/endpointslice"

	"keelson.dev/kit/podview"
)

// subsets groups the addresses of the Pods by their ports, in the order in which they are written.
func subsets(service *corev1.Service, pods []*corev1.Pod) []corev1.EndpointSubset {
	byPorts := map[string]*corev1.EndpointSubset{}
	for _, pod := range pods {
		address, found := addressOf(service, pod)
		if !found {
			continue
		}
		ports := portsOf(service, pod)
		headless := service.Spec.ClusterIP == corev1.ClusterIPNone && len(service.Spec.Ports) == 0
		if len(ports) == 0 && !headless {
			continue
		}
		key := fmt.Sprint(texts(ports))
		if byPorts[key] == nil {
			byPorts[key] = &corev1.EndpointSubset{Ports: ports}
		}
		if subset := byPorts[key]; isReady(service, pod) {
			subset.Addresses = append(subset.Addresses, address)
		} else {
			subset.NotReadyAddresses = append(subset.NotReadyAddresses, address)
		}
	}
	var all []corev1.EndpointSubset
	for _, subset := range byPorts {
		slices.SortFunc(subset.Addresses, compareAddresses)
		slices.SortFunc(subset.NotReadyAddresses, compareAddresses)
		all = append(all, *subset)
	}
	slices.SortFunc(all, func(a, b corev1.EndpointSubset) int {
		return slices.Compare(texts(a.Ports), texts(b.Ports))
	})
	return all
}

// isReady reports whether a Pod may receive requests: as in EndpointSlices, a terminating Pod may not.
func isReady(service *corev1.Service, pod *corev1.Pod) bool {
	return service.Spec.PublishNotReadyAddresses || podview.IsReady(pod) && !podview.IsTerminating(pod)
}

// addressOf returns the address of a Pod in the Service's first family. A Pod that has ended has none.
func addressOf(service *corev1.Service, pod *corev1.Pod) (corev1.EndpointAddress, bool) {
	if podview.IsTerminal(pod) {
		return corev1.EndpointAddress{}, false
	}
	ips := pod.Status.PodIPs
	if len(ips) == 0 {
		ips = []corev1.PodIP{{IP: pod.Status.PodIP}}
	}
	for _, ip := range ips {
		parsed, err := netip.ParseAddr(ip.IP)
		if err != nil || parsed.Is6() != wantsIPv6(service, parsed) {
			continue
		}
		address := corev1.EndpointAddress{IP: ip.IP, TargetRef: &corev1.ObjectReference{Kind: "Pod",
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
		if pod.Spec.NodeName != "" {
			name := pod.Spec.NodeName
			address.NodeName = &name
		}
		if pod.Spec.Hostname != "" && pod.Spec.Subdomain == service.Name {
			address.Hostname = pod.Spec.Hostname
		}
		return address, true
	}
	return corev1.EndpointAddress{}, false
}

// wantsIPv6 reports whether the addresses must be IPv6. A Service without families accepts either.
func wantsIPv6(service *corev1.Service, found netip.Addr) bool {
	if len(service.Spec.IPFamilies) > 0 {
		return service.Spec.IPFamilies[0] == corev1.IPv6Protocol
	}
	if own, err := netip.ParseAddr(service.Spec.ClusterIP); err == nil {
		return own.Is6()
	}
	return found.Is6()
}

// portsOf returns the Service's ports at the Pod, sorted, without named ports that the Pod does not define.
func portsOf(service *corev1.Service, pod *corev1.Pod) []corev1.EndpointPort {
	var ports []corev1.EndpointPort
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		if number, err := endpointslice.FindPort(pod, port); err == nil {
			ports = append(ports, corev1.EndpointPort{Name: port.Name, Port: int32(number), Protocol: port.Protocol,
				AppProtocol: port.AppProtocol})
		}
	}
	slices.SortFunc(ports, func(a, b corev1.EndpointPort) int { return cmp.Compare(text(a), text(b)) })
	return ports
}

func texts(ports []corev1.EndpointPort) []string {
	all := make([]string, 0, len(ports))
	for _, port := range ports {
		all = append(all, text(port))
	}
	return all
}

func text(port corev1.EndpointPort) string {
	protocol := ""
	if port.AppProtocol != nil {
		protocol = *port.AppProtocol
	}
	return strings.Join([]string{port.Name, fmt.Sprint(port.Port), string(port.Protocol), protocol}, "/")
}
